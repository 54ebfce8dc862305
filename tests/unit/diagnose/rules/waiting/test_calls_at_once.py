"""Calls to another program, as the kernel saw them: formulas over users N, throughput X and times R of a
closed loop. A request takes 10 ms and then makes a call of 20 ms, of which S at once may go:
X = min(N / 0.03, S / 0.02).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from loadlens import diagnose
from loadlens.diagnose.observe import calls_seen
from loadlens.diagnose.rules.waiting.calls_at_once import assess
from loadlens.model.facts import CallsWatch, ConcurrencyLimit, Curve, LabelPart, LabelSplit
from loadlens.model.finding import Absent, Estimate, Finding, Grade
from loadlens.model.shapes import Spacing
from tests.unit.diagnose.build import curve as build_curve
from tests.unit.diagnose.build import estimate, facts, process
from tests.unit.diagnose.build import step as build_step
from tests.unit.diagnose.waiting import gauge, waiting

CALL_S, BASE_S = 0.02, 0.01
Course = Callable[[float, float], float]  # users, throughput -> calls under way


def calling(
    size: int,
    course: Course,
    *,
    coupling: float = 0.0,
    stand: float | None = 8.0,
    before: float = 0.0,
    each: float = 1.0,
    base_s: float = BASE_S,
) -> Curve:
    """A service that lets `size` requests at once make their call.

    Args:
        course: Calls that the kernel sees under way.
        coupling: What a probe waits, over what the load waits.
        stand: Connections in use; none: not read.
        before: Calls under way without any load, which are among those that it sees.
        each: Segments of calls for each request.
        base_s: Time of a request besides its call.
    """
    built = waiting(CALL_S, base_s=base_s, size=size, coupling=coupling)
    steps = []
    for step in built.steps:
        rate = step.throughput_trials[0]
        mean = course(step.load, rate) + before
        shown = replace(
            gauge("calls to db:5432", mean), highest=float(-(-round(mean, 6) // 1)), before=before
        )
        steps.append(replace(step, calls=(CallsWatch("db:5432", shown, each, stand),)))
    return replace(built, steps=tuple(steps))


def under_way(users: float, rate: float) -> float:
    """Of those that are let through; a place is free for a moment between two."""
    return 0.96 * rate * CALL_S


def with_gaps(users: float, rate: float) -> float:
    """As above, where 2.6 ms of 20 pass until the next call is sent on a new connection."""
    return 0.87 * rate * CALL_S


def all_but_own_work(users: float, rate: float) -> float:
    """All that wait do so in the other program."""
    return users - rate * BASE_S


def test_threads_before_calls_that_go_one_at_a_time_are_not_the_limit() -> None:
    """Two threads, which are at work all the time: 38 ms for each request, at 50/s 1.9 of them."""
    pool = ConcurrencyLimit(
        "threads", gauge("threads at work:", 2.0), bound=gauge("threads:", 2.0), seen_in="stacks"
    )
    built = calling(1, under_way, base_s=0.018)
    sampled = replace(built.steps[-1], places=(pool,))
    seen = replace(built, steps=(*built.steps[:-1], sampled))
    unseen = replace(seen, steps=tuple(replace(each, calls=()) for each in seen.steps))

    assert "threads.pool-limit" in findings(unseen)
    assert "threads.pool-limit" not in findings(seen)
    assert "calls.at-once" in findings(seen)


def test_one_of_several_programs_that_is_full_is_named() -> None:
    """Of four shards one gets every second request, and lets one at a time through: 100/s in all."""

    def counted(rate: float) -> Estimate:
        return replace(estimate(rate, unit="1/s"), samples=500)

    steps = []
    for users in (1, 2, 4, 8, 16):
        rate = min(users / 0.02, 100.0)
        hot_s = max(0.02, (users - rate / 2 * 0.02) / (rate / 2))
        parts = tuple(
            LabelPart(f"shard:{number}", counted(rate * share), estimate(seconds))
            for number, share, seconds in ((1, 0.5, hot_s), (2, 0.2, 0.02), (3, 0.2, 0.02), (4, 0.1, 0.02))
        )
        split = LabelSplit("calls", "to", parts, is_of_calls=True)
        idle = (process(0.1),)
        steps.append(build_step(users, rate, users / rate, splits=(split,), processes=idle))
    finding = findings(build_curve(*steps, think=0.0))["part.full"]

    assert finding.statement.startswith("shard:1 is full at 50.0 /s: 50 % of the calls")


def findings(curve: Curve) -> dict[str, Finding]:
    return {finding.rule: finding for finding in diagnose.assess(facts(curve)).findings}


def test_of_calls_that_go_one_at_a_time_the_line_is_in_front_and_a_lock() -> None:
    seen = findings(calling(1, under_way))

    assert seen["calls.at-once"].grade >= Grade.PROBABLE
    assert seen["calls.at-once"].statement == (
        "Calls to db:5432 go one at a time: 50.0 /s; 30.5 requests wait in front"
    )
    assert "downstream.serialised" not in seen


def test_the_rule_alone_needs_always_as_many_under_way() -> None:
    assert isinstance(assess(facts(calling(4, under_way))), Finding)
    assert isinstance(assess(facts(calling(4, all_but_own_work))), Absent)


def test_of_calls_that_go_four_at_a_time_the_line_is_in_front_and_a_pool() -> None:
    seen = findings(calling(4, under_way))

    assert seen["calls.at-once"].grade >= Grade.PROBABLE
    assert "Calls to db:5432 go 4 at a time: 200 /s" in seen["calls.at-once"].statement
    assert "the most under way: 4" in seen["calls.at-once"].evidence[1].text
    assert seen["calls.at-once"].unknown, "a pool of connections, or of something else"


def test_places_that_are_free_until_the_next_call_is_sent_are_taken_all_the_same() -> None:
    assert isinstance(assess(facts(calling(4, with_gaps))), Finding)
    assert isinstance(assess(facts(calling(4, lambda _, rate: 0.84 * rate * CALL_S))), Absent)


def test_as_many_calls_as_users_at_the_level_below_are_places_if_more_users_make_no_more() -> None:
    seen = findings(calling(16, under_way, base_s=0.0))  # 16 users, then 32

    assert "Calls to db:5432 go 16 at a time" in seen["calls.at-once"].statement


def test_where_answers_come_one_at_a_time_several_calls_under_way_are_no_pool() -> None:
    """A lock lets a request through every 5 ms, and its call takes 20 ms: four are under way at any time."""
    built = calling(4, under_way)
    apart = Spacing(close=0, gaps=300)
    seen = findings(replace(built, steps=tuple(replace(step, spacing=apart) for step in built.steps)))

    assert not {"db.lock", "db.pool", "calls.at-once"} & seen.keys()
    assert "one at a time" in seen["downstream.serialised"].statement


def test_requests_that_are_all_in_calls_wait_in_the_other_program() -> None:
    seen = findings(calling(1, all_but_own_work))

    assert "calls.at-once" not in seen
    assert "Requests wait in calls to db:5432" in seen["downstream.serialised"].statement
    assert "other program" in seen["downstream.serialised"].advice


def test_calls_that_are_nearly_the_whole_request_may_be_seen_a_little_longer_than_it() -> None:
    """Of few looks at a light load: 1.05 calls of one user are 31.5 ms of each request of 30 ms."""

    def seen_longer(users: float, rate: float) -> float:
        return 1.05 * users

    whole = findings(calling(1, seen_longer))["downstream.serialised"]
    assert "Requests wait in calls to db:5432" in whole.statement


def test_connections_that_were_not_read_rule_nothing_out() -> None:
    lock = findings(calling(1, under_way, stand=None))["calls.at-once"]

    assert "in front" not in lock.statement


def test_a_connection_that_carries_many_calls_at_once_leaves_open_where_they_wait() -> None:
    """The other program does one call at a time, and all are on the only connection: the kernel sees one."""
    lock = findings(calling(1, under_way, stand=1.0))["calls.at-once"]

    assert "in front" not in lock.statement
    assert "carries many calls at once" in lock.advice
    assert any(rival.ruled_out is None and "on a connection" in rival.rival for rival in lock.counter)


def test_several_calls_at_once_of_a_request_are_no_line_unless_they_take_nearly_all_of_the_waiting() -> None:
    def side_by_side(users: float, rate: float) -> float:  # ten of 1 ms, which take 0.6 of the waiting more
        return rate * 0.01 + 0.6 * (users - rate * (CALL_S + BASE_S))

    assert "calls to" in findings(calling(1, side_by_side, each=1.0))["downstream.serialised"].statement
    assert "calls to" not in findings(calling(1, side_by_side, each=10.0))["downstream.serialised"].statement


def test_what_is_under_way_without_load_is_no_time_of_a_request() -> None:
    curve = calling(4, under_way, before=4.0)

    (calls,) = calls_seen.spent(calls_seen.light(curve))

    assert calls.seconds == pytest.approx(0.96 * CALL_S)


@pytest.mark.parametrize(
    "course",
    [
        pytest.param(lambda users, rate: min(1.0, rate * CALL_S), id="one connection for all of them"),
        pytest.param(lambda users, rate: 0.1 * rate * CALL_S, id="a short call besides"),
    ],
)
def test_other_calls_name_no_lock_and_no_pool(course: Course) -> None:
    seen = findings(calling(4, course))

    assert not {"db.lock", "db.pool", "calls.at-once"} & seen.keys()
    assert "calls to" not in seen["downstream.serialised"].statement


def test_where_cheap_requests_wait_as_well_the_threads_may_be_full() -> None:
    assert not {"db.lock", "db.pool", "calls.at-once"} & findings(calling(4, under_way, coupling=0.9)).keys()


def test_the_time_of_a_request_in_calls_is_calls_under_way_over_throughput() -> None:
    curve = calling(4, under_way)

    (calls,) = calls_seen.spent(calls_seen.light(curve))

    assert calls.seconds == pytest.approx(0.96 * CALL_S)
    assert calls.name == "calls to db:5432"
    assert [step.load for step in calls_seen.light(curve)] == [1, 2, 4]  # 6 fit without waiting
