"""Users who get nothing: found next to users who are served, apart from a pause and from a late load."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.overload.requests_stuck import assess
from loadlens.model.facts import CallsWatch, Crowd, Curve, Jam, KernelWatch, Locked, StuckWatch
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed, Setting
from tests.unit.diagnose.build import curve, facts, found, generator, process, step
from tests.unit.diagnose.waiting import gauge


def level(users: float, *counts: int, since: int = 500) -> Curve:
    """A level of the load, of so many trials; the longest answer takes 20 ms."""
    watch = StuckWatch(counts, 2.5 if any(counts) else 0.0, 0.02, since if any(counts) else 0)
    return curve(step(1, 50.0, 0.02), replace(step(users, 600.0, 0.02), stuck=watch))


def test_users_without_an_answer_next_to_others_who_are_served_are_probable() -> None:
    finding = assess(facts(level(16, 3, 4, 3)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE  # never more: they may take that long by nature
    assert finding.statement == "3.33 of 16 users wait for an answer that does not come (2.50 s and more)"
    assert finding.impact == pytest.approx(10 / 3 / 16)


def test_threads_that_are_locked_without_load_are_named_with_their_lines() -> None:
    locked = Locked(87, ("at Bank.both() bank.py:40", "at Bank.both() bank.py:42", "at log() bank.py:9"))

    finding = assess(facts(replace(level(16, 16), locked=locked)))

    assert isinstance(finding, Finding)
    assert (
        finding.statement == "16 of 16 users get no answer: threads are locked at bank.py:40 and bank.py:42"
    )
    assert "one order" in finding.advice
    assert finding.unknown == ()
    fewer = assess(facts(replace(level(16, 16), locked=replace(locked, threads=15))))
    assert isinstance(fewer, Finding)
    assert "locked" not in fewer.statement  # one at least waits for something else


@pytest.mark.parametrize(("waiting", "are_named"), [(48.0, True), (36.0, True), (35.0, False), (None, False)])
def test_connections_that_nobody_accepts_are_named_with_those_that_are_served(
    waiting: float | None, *, are_named: bool
) -> None:
    built = level(64, 48)
    kernel = KernelWatch(None, None, 0.0, 0.0, 0.0, unaccepted=waiting)

    finding = assess(facts(replace(built, steps=(built.steps[0], replace(built.steps[1], kernel=kernel)))))

    assert isinstance(finding, Finding)
    assert ("connections are served" in finding.statement) is are_named
    if are_named:
        expected = "48 of 64 users get no answer: 16 connections are served, the rest is not accepted"
        assert finding.statement == expected
        assert finding.setting == Setting.exactly("places", 16)
        assert finding.unknown == ()


@pytest.mark.parametrize("counts", [(2,), (48, 47), (64,)])
def test_a_queue_of_connections_is_not_that_of_few_stuck_users(counts: tuple[int, ...]) -> None:
    """Two of 64 users are stuck next to 40 whose connections get their turn; or as many as there are."""
    built = level(64, *counts)
    kernel = KernelWatch(None, None, 0.0, 0.0, 0.0, unaccepted=48.0)

    finding = assess(facts(replace(built, steps=(built.steps[0], replace(built.steps[1], kernel=kernel)))))

    assert isinstance(finding, Finding)
    assert "connections are served" not in finding.statement


def test_in_some_trials_only_they_are_suspected() -> None:
    finding = assess(facts(level(16, 3, 0, 3)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


@pytest.mark.parametrize(("users", "kind"), [(100, Finding), (101, Absent)])  # 1 %
def test_a_single_request_among_very_many_users_is_no_finding(users: float, kind: type) -> None:
    assert isinstance(assess(facts(level(users, 1, 1, 1))), kind)


@pytest.mark.parametrize(("since", "ruled_out"), [(20, True), (19, None)])
def test_a_service_that_answered_others_since_did_not_pause(since: int, *, ruled_out: bool | None) -> None:
    finding = assess(facts(level(16, 3, since=since)))

    assert isinstance(finding, Finding)
    assert finding.counter[0].ruled_out is ruled_out


@pytest.mark.parametrize(("drops", "kind"), [(8.0, Finding), (9.0, Absent)])
def test_users_whose_connections_were_dropped_are_not_stuck(drops: float, kind: type) -> None:
    """3 stuck users in each of three trials, and so many drops in all of them."""
    built = level(64, 3, 3)
    kernel = KernelWatch(None, None, drops, 0.0, 0.0)
    steps = (built.steps[0], replace(built.steps[1], kernel=kernel))

    assert isinstance(assess(facts(replace(built, steps=steps))), kind)


@pytest.mark.parametrize(
    ("under_way", "per_request", "kind"),
    [
        (14.0, 0.01, Absent),  # 6/s end there, each after 2.3 s: in 2.5 s 15 would
        (14.0, 0.005, Finding),  # 3/s: 8 of 10 at most would be answered in that time
        (4.0, 0.01, Finding),  # most of the stuck are elsewhere
        (11.0, 1.0, Finding),  # 600/s of 18 ms each, of the 20 ms of a request: no call takes long there
    ],
)
def test_users_in_a_line_before_what_is_called_are_not_stuck(
    under_way: float, per_request: float, kind: type
) -> None:
    stuck = level(16, 10, 10)
    calls = CallsWatch("db:5432", gauge("calls to db:5432", under_way), per_request, 8.0)
    top = replace(stuck.steps[1], calls=(calls,))

    assert isinstance(assess(facts(replace(stuck, steps=(stuck.steps[0], top)))), kind)


def test_a_late_generator_removes_it() -> None:
    built = level(16, 3)
    late = generator(verdict="late", lag_p99_s=0.02)
    steps = tuple(replace(each, generator=late) for each in built.steps)

    answer = assess(facts(replace(built, steps=steps)))

    assert isinstance(answer, Absent)


def test_where_nothing_is_stuck_it_says_how_long_answers_took() -> None:
    answer = assess(facts(level(16, 0, 0, 0)))

    assert isinstance(answer, Absent)
    assert "20.0 ms" in answer.reason


def test_without_a_log_of_requests_it_is_not_assessed() -> None:
    assert isinstance(assess(facts(curve(step(1, 50.0, 0.02)))), NotAssessed)


def jammed(*jams: Jam) -> Curve:
    return curve(step(1, 50.0, 0.02), replace(step(64, 600.0, 0.1), jams=jams))


def test_standstills_that_end_in_failures_are_probable_from_the_second_on() -> None:
    finding = assess(facts(jammed(Jam(64, 4.0), Jam(128, 3.9))))
    once = assess(facts(jammed(Jam(64, 4.0))))

    assert isinstance(finding, Finding)
    assert isinstance(once, Finding)
    assert (finding.grade, once.grade) == (Grade.PROBABLE, Grade.SUSPECTED)
    assert finding.statement == (
        "2 times all requests stand still for up to 4.00 s and then fail together, as in a deadlock"
    )
    assert "128 of them at most" in finding.evidence[0].text


def deadlocked(crowd: Crowd, *, ok: float = 0.0, cores: float = 0.0, calls: float = 0.0) -> Curve:
    """One standstill, and a level at which nothing succeeds; its threads were sampled."""
    asked = (CallsWatch("python store.py:81", gauge("calls to python store.py:81", calls), 0.1, 4.0),)
    seen = asked if calls >= 0 else ()
    top = step(16, ok, 2.0, failed_count=16, crowd=crowd, calls=seen, processes=(process(cores),))
    return curve(step(1, 50.0, 0.02), replace(step(8, 50.0, 0.1), jams=(Jam(8, 2.0),)), top)


ALL_WAIT = Crowd(8.0, 8.1, "planner.py:61", is_for_threads=True)


def test_threads_that_wait_for_each_other_are_a_deadlock_the_first_time() -> None:
    finding = found(assess(facts(deadlocked(ALL_WAIT))))

    assert finding.grade is Grade.PROBABLE
    assert finding.statement == "8 threads wait for each other at planner.py:61: a deadlock"


@pytest.mark.parametrize(
    "built",
    [
        deadlocked(replace(ALL_WAIT, is_for_threads=False)),  # for sockets, or for a time to pass
        deadlocked(replace(ALL_WAIT, waiting=7.0)),  # one of eight gets on
        deadlocked(ALL_WAIT, ok=3.0),
        deadlocked(ALL_WAIT, cores=0.5),
        deadlocked(ALL_WAIT, calls=1.0),
        deadlocked(ALL_WAIT, calls=-1.0),
    ],
    ids=[
        "for others",
        "one is past it",
        "some succeed",
        "it computes",
        "a call is under way",
        "none was seen",
    ],
)
def test_threads_that_wait_for_something_else_are_no_deadlock(built: Curve) -> None:
    assert found(assess(facts(built))).grade is Grade.SUSPECTED
