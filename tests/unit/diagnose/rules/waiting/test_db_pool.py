"""A pool by its gauges; taken, waiting and rates are by the bounds of a closed loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.waiting import db_lock, db_pool
from loadlens.model.facts import ConcurrencyLimit, Curve, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.shapes import LetThrough
from tests.unit.diagnose.build import estimate, facts, process
from tests.unit.diagnose.long_holds import MEAN_S, held_long, with_alone
from tests.unit.diagnose.waiting import (
    LOCK,
    POOL,
    THREADS,
    gauge,
    places,
    renamed,
    waiting,
    with_places,
)

# 4 places held for 20 ms: 200/s; at 32 users the response takes 0.16 s, and 200 x (0.16 - 0.03) = 26 wait.


def pool(**more: object) -> Curve:
    return waiting(0.02, size=4, **{"exports": "pool", **more})  # type: ignore[arg-type]


def assessed(built: Curve) -> Finding:
    answer = db_pool.assess(facts(built))
    assert isinstance(answer, Finding)
    return answer


def silence(built: Curve) -> str:
    answer = db_pool.assess(facts(built))
    assert isinstance(answer, Absent)
    return answer.reason


def test_a_pool_whose_places_are_all_taken_with_a_line_is_the_limit() -> None:
    finding = assessed(pool())

    assert finding.grade is Grade.PROBABLE  # first and last bytes were not timed
    assert finding.statement == "The pool is full: 4 connections carry 200 /s; 26 requests wait for one"
    by_signal = {e.signal: e for e in finding.evidence}
    assert by_signal["pool.size"].value == 4.0
    assert by_signal["pool.hold"].value == pytest.approx(0.02)
    assert by_signal["pool.size"].text == "pool_in_use 4, of pool_max 4 (limit 90 %)"
    assert "8 connections carry 400 /s" in finding.advice


@pytest.mark.parametrize(("ahead", "is_pool"), [(9.0, False), (7.0, True)])
def test_places_that_let_more_in_at_once_than_there_are_belong_to_a_rate_limiter(
    ahead: float, is_pool: bool
) -> None:
    """Seen by samples of threads alone: as many are always past the wait, as the rate is even."""
    seen = LetThrough(400.0, 400, ahead, 0.5, None, (), 0.0)

    def sampled(level: Step) -> Step:
        places = tuple(replace(place, seen_in="stacks") for place in level.places)
        return replace(level, places=places, let_through=(seen,) if level.load >= 16 else ())

    watched = waiting(0.02, size=8, exports="pool")
    built = replace(watched, steps=tuple(map(sampled, watched.steps)))

    assert isinstance(db_pool.assess(facts(built)), Finding) == is_pool
    pairs = zip(built.steps, watched.steps, strict=True)
    of_gauges = replace(built, steps=tuple(replace(s, places=p.places) for s, p in pairs))
    assert isinstance(db_pool.assess(facts(of_gauges)), Finding)


@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_pools_the_one_with_the_longest_line_speaks(is_first: bool) -> None:
    """At 16 users the response takes 0.08 s: 200 x (0.08 - 0.03) = 10 wait, at 32 users 26."""
    short, long = pool(users=(1, 2, 4, 8, 16)), replace(pool(), label="long")
    built = (short, long) if is_first else (long, short)

    answer = db_pool.assess(facts(*built))

    assert isinstance(answer, Finding)
    assert answer.scope == "long"
    assert answer.statement.endswith("26 requests wait for one")


def test_it_is_strong_when_every_rival_was_looked_at() -> None:
    built = pool()
    top = built.steps[-1]
    quick = replace(top.classes[0], transfer=estimate(0.0001))
    seen = replace(top, classes=(quick,), host_cpu=estimate(0.3, unit="cores"))

    assert assessed(replace(built, steps=(*built.steps[:-1], seen))).grade is Grade.STRONG


def test_other_names_give_the_same_finding() -> None:
    assert assessed(renamed(pool())).grade is assessed(pool()).grade


@pytest.mark.parametrize(("taken", "waiters"), [(3.5, 26.0), (4.0, 0.4)])
def test_a_pool_with_a_free_place_or_no_line_does_not_limit(taken: float, waiters: float) -> None:
    assert silence(with_places(pool(exports=""), places("pool", taken, waiters, 4, POOL)))


def test_a_pool_at_which_few_of_those_who_wait_do_so_is_suspected() -> None:
    """200/s x (0.16 - 0.03) s: 26 wait somewhere, 12 or 14 of them here."""

    def line(waiters: float) -> Curve:
        return with_places(pool(exports=""), places("pool", 4.0, waiters, 4, POOL))

    assert assessed(line(12.0)).grade is Grade.SUSPECTED
    assert assessed(line(14.0)).grade is Grade.PROBABLE


@pytest.mark.parametrize(("then", "is_bound"), [(4, True), (3, False)])
def test_a_most_that_grows_with_the_users_is_a_mark_and_no_bound(then: int, is_bound: bool) -> None:
    """5 users ask 167/s, 32 get 200/s: the last level alone is the plateau. 4 are taken, of 4 so far."""
    built = pool(exports="", users=(1, 5, 32))
    below = replace(built.steps[1], places=(places("pool", 3.3, 0.0, then, POOL),))
    top = replace(built.steps[2], places=(places("pool", 4.0, 26.0, 4, POOL),))

    grade = assessed(replace(built, steps=(built.steps[0], below, top))).grade

    assert grade is (Grade.PROBABLE if is_bound else Grade.SUSPECTED)


def test_an_ample_pool_is_silent() -> None:
    built = waiting(0.02, base_s=0.01, size=2000, exports="pool")

    assert "no plateau" in silence(built)


def test_a_pool_of_one_is_a_pool_and_a_lock_none() -> None:
    single = waiting(0.02, size=1, exports="pool")

    assert assessed(single).statement.startswith("The pool is full: 1 connection carries 50.0 /s")
    assert isinstance(db_lock.assess(facts(single)), NotAssessed)
    assert isinstance(db_pool.assess(facts(waiting(0.02, exports="lock"))), NotAssessed)


def test_without_a_bound_a_number_that_stays_the_same_while_more_ask_is_the_size() -> None:
    built = pool()
    unbounded = tuple(replace(s, places=tuple(replace(p, bound=None) for p in s.places)) for s in built.steps)

    finding = assessed(replace(built, steps=unbounded))

    size = next(e for e in finding.evidence if e.signal == "pool.size")
    assert size.value == 4.0
    assert "the same as at the level before" in size.text


def test_a_number_that_grows_with_the_load_is_no_bound() -> None:
    built = pool(exports="")
    marks = tuple(
        replace(s, places=(places("pool", n, 5.0, n, POOL),))  # "max" follows what was ever active
        for n, s in zip((1, 2, 4, 8, 16, 32), built.steps, strict=True)
    )

    assert "it still grows" in silence(replace(built, steps=marks))


def test_a_lock_at_which_all_its_holders_are_is_the_cause() -> None:
    built = with_places(pool(), places("lock", 1.0, 3.0, None, LOCK))

    assert "locks_held 1" in silence(built)
    assert isinstance(db_lock.assess(facts(built)), Finding)


def test_a_lock_that_few_of_its_holders_want_is_not() -> None:
    assert assessed(with_places(pool(), places("lock", 0.3, 0.6, None, LOCK))).grade is Grade.PROBABLE


def test_threads_in_front_are_full_of_those_who_wait_for_it() -> None:
    finding = assessed(with_places(pool(), places("threads", 30.0, None, 30, THREADS)))

    assert next(r.ruled_out for r in finding.counter if r.rival == "full threads") is True


def test_a_connection_that_is_held_longer_than_a_request_takes_alone_leaves_open_what_is_behind() -> None:
    built = pool()
    first = built.steps[0]
    quick = replace(first, response=replace(first.response, mean=estimate(0.015)))

    finding = assessed(replace(built, steps=(quick, *built.steps[1:])))

    slow = next(r for r in finding.counter if r.rival == "something slow behind it")
    assert slow.ruled_out is None
    assert slow.text.startswith("a place is held for 1.33")


def test_a_connection_that_is_held_twice_as_long_as_a_request_takes_alone_waits_behind_the_pool() -> None:
    """4 connections carry 200 /s: 20 ms each; a request alone takes 9 ms, so 1.8 of them are at work."""
    built = pool()
    first = built.steps[0]
    quick = replace(first, response=replace(first.response, mean=estimate(0.009)))

    reason = silence(replace(built, steps=(quick, *built.steps[1:])))

    assert "something slow behind it, a place is held for 2.22" in reason


def test_full_cores_are_no_pool() -> None:
    assert "computes" in silence(pool(processes=(process(0.97, hot=1),)))


def test_without_gauges_of_a_pool_it_is_open_and_says_what_would_decide() -> None:
    answer = db_pool.assess(facts(pool(exports="threads")))

    assert isinstance(answer, NotAssessed)
    assert "how many wait would decide" in answer.reason


def test_connections_that_a_share_of_long_requests_holds_are_the_limit_by_their_mean_time() -> None:
    finding = assessed(held_long("pool"))

    expected = "The pool is full: 4 connections carry 44.4 /s; 20 % of requests hold them 91 % of the time"
    assert finding.statement == expected
    assert "4 connections / 90.0 ms each = 44.4 /s, and 44.4 /s came out" in finding.explanation


def test_a_lone_user_without_a_long_request_does_not_hide_the_pool() -> None:
    """By 30 ms alone a connection held for 90 ms would look as if something behind it were full."""
    assert assessed(with_alone(held_long("pool"), 0.03)).grade >= Grade.PROBABLE


def test_long_requests_that_hold_no_connection_meanwhile_do_not_take_the_pool() -> None:
    """A connection is held for 20 ms of 90 on average: the slow path comes before it."""
    before = held_long("pool", hold_s=0.02, base_s=MEAN_S - 0.02, users=(1, 8, 32, 64, 128))

    assert "hold them" not in assessed(before).statement


# --- connections by the titles of a database's processes ---------------------------------------------------


def connected(
    present: float = 4.0, work: float = 1.0, lock: float = 0.0, resting: float = 0.0, **more: object
) -> Curve:
    """The same pool as the database sees it: `work` of each place that is held are at work there.

    Args:
        lock: Share of the connections at work that wait for a lock, at every level.
    """
    built = pool(exports="", **more)
    return replace(
        built, steps=tuple(_with_titles(step, present, work, lock, resting) for step in built.steps)
    )


def _with_titles(step: Step, present: float, work: float, lock: float, resting: float) -> Step:
    held = work * min(4.0, 0.02 * step.throughput_trials[0])
    taken = ConcurrencyLimit(
        "pool",
        gauge("db: at work", held),
        present=gauge("db: connections", present),
        seen_in="titles",
        command="MERGE",
        resting=gauge("db: resting", resting * held),
    )
    names = ("db: in a transaction", "db: MERGE waiting", "")
    line = places("lock", (1 - lock) * held, lock * held, None, names)
    return replace(step, places=(replace(line, held_is_at_most=True, seen_in="titles"), taken))


def test_connections_that_are_all_at_work_are_a_full_pool_unless_something_stands_in_front() -> None:
    finding = assessed(connected())

    assert finding.grade is Grade.PROBABLE
    assert finding.statement == "All 4 database connections are at work: 200 /s; 26 requests wait for one"
    assert "lets in just 4" in finding.unknown[0]
    by_signal = {e.signal: e for e in finding.evidence}
    assert by_signal["pool.size"].text == "db: at work 4, of db: connections 4 (limit 90 %)"
    in_front = next(rival for rival in finding.counter if "in front" in rival.rival)
    assert in_front.ruled_out is None


def test_threads_that_wait_for_a_connection_rule_out_something_in_front() -> None:
    threads = replace(places("pool", 4.0, 20.0, None, POOL), seen_in="stacks")

    finding = assessed(with_places(connected(), threads))

    assert all(rival.ruled_out for rival in finding.counter if "in front" in rival.rival)
    assert finding.statement == "The pool is full: 4 connections carry 200 /s; 26 requests wait for one"


def test_connections_held_during_other_work_are_said_to_be() -> None:
    finding = assessed(connected(resting=0.8))

    assert "for 80 % of that time the transaction is idle" in finding.evidence[-1].text
    assert finding.advice.startswith("Give the connection back before that work")


@pytest.mark.parametrize(
    "built",
    [
        connected(present=10.0),  # there are free ones
        connected(work=0.7),  # the service keeps them idle: the database cannot know for what
        connected(coupling=0.6),  # cheap requests wait as well: threads with a connection each are full
        connected(users=(1, 2, 3, 4)),  # hardly more users than connections
        connected(lock=0.75),  # one works, the others wait for its lock
    ],
)
def test_connections_that_are_not_what_requests_wait_for_are_no_pool(built: Curve) -> None:
    assert not isinstance(db_pool.assess(facts(built)), Finding)


def test_the_lock_that_connections_wait_for_is_the_cause() -> None:
    answer = db_lock.assess(facts(connected(lock=0.75)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE


def test_threads_with_their_own_line_that_cheap_requests_do_not_need_are_a_pool() -> None:
    """4 threads do 20 ms of each request; a probe that waits as long as the load is behind all threads."""

    def of(coupling: float, waiters: float) -> NotAssessed | Absent | Finding:
        line = places("threads", 4.0, waiters, 4.0, THREADS)
        built = waiting(0.02, size=4, coupling=coupling)
        return db_pool.assess(facts(with_places(built, line)))

    finding = of(0.0, 26.0)

    assert isinstance(finding, Finding)
    assert finding.statement == "The pool is full: 4 threads carry 200 /s; 26 requests wait for one"
    assert isinstance(of(1.0, 26.0), NotAssessed)
    assert isinstance(of(0.0, 0.1), NotAssessed)


def test_a_pool_next_to_others_with_room_is_named_by_its_label() -> None:
    """Pools of one metric, distinguished by one label; the others have 2 of 4 places taken."""

    def with_others(held: float) -> str:
        def placed(level: Step) -> Step:
            (own,) = level.places
            named = replace(own, held=replace(own.held, name='in_use{store="7",unit="a"}'))
            others = [
                ConcurrencyLimit(
                    "pool", gauge(f'in_use{{store="{n}",unit="a"}}', held), bound=gauge("most", 4.0)
                )
                for n in (1, 2)
            ]
            return replace(level, places=(named, *others))

        built = pool()
        return assessed(replace(built, steps=tuple(map(placed, built.steps)))).statement

    assert with_others(2.0) == 'The pool of store="7" is full: 4 connections carry 200 /s; 2 others have room'
    assert with_others(3.0).startswith("The pool is full")
