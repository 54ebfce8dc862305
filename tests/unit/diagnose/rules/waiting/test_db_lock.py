"""A lock by its gauges; held, waiting and rates are by the bounds of a closed loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.waiting import db_lock
from loadlens.model.facts import ConcurrencyLimit, Curve
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import estimate, facts, process
from tests.unit.diagnose.storing import storage
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

# 20 ms held: 50/s; at 32 users the response takes 0.64 s, and 50 x (0.64 - 0.03) = 30.5 wait.


def assessed(*curves: object) -> Finding:
    answer = db_lock.assess(facts(*curves))  # type: ignore[arg-type]
    assert isinstance(answer, Finding)
    return answer


def silence(*curves: object) -> str:
    answer = db_lock.assess(facts(*curves))  # type: ignore[arg-type]
    assert isinstance(answer, Absent)
    return answer.reason


def test_of_a_mix_the_lock_is_held_per_request() -> None:
    """Half of the requests for 40 ms each give the same."""
    built = waiting(0.02, exports="lock")
    steps = (
        replace(step, classes=(*step.classes, replace(step.classes[0], label="c"))) for step in built.steps
    )

    assert "held 20.0 ms per request," in assessed(replace(built, steps=tuple(steps))).statement


def test_a_lock_that_is_always_held_with_a_line_before_it_is_the_limit() -> None:
    finding = assessed(waiting(0.02, exports="lock"))

    assert finding.grade is Grade.PROBABLE  # how busy disks were is not known
    assert finding.statement == "One lock, held 20.0 ms each, lets 50.0 /s through; 30.5 wait for it"
    hold = next(e for e in finding.evidence if e.signal == "lock.hold")
    assert hold.value == pytest.approx(0.02)
    assert hold.low == pytest.approx(0.02 * 0.98 / 1.02)
    assert any("locks_held 1" in e.text for e in finding.evidence)
    assert any("locks_wanted 30.5" in e.text for e in finding.evidence)
    assert finding.impact == pytest.approx(1 - 0.03 / 0.64)
    assert "100 /s" in finding.advice  # held for half as long


def test_other_names_and_times_give_the_same_finding() -> None:
    before = assessed(waiting(0.02, exports="lock"))

    assert assessed(renamed(waiting(0.02, exports="lock"))).grade is before.grade
    slow = assessed(waiting(0.2, base_s=0.1, exports="lock"))
    assert slow.grade is before.grade
    assert slow.impact == pytest.approx(before.impact)


def test_two_holders_are_no_lock() -> None:
    assert "locks_held 2" in silence(with_places(waiting(exports=""), places("lock", 2.0, 5.0, None, LOCK)))


@pytest.mark.parametrize(("held", "waiters"), [(0.8, 5.0), (1.0, 0.4)])
def test_a_lock_that_is_often_free_or_has_no_line_does_not_limit(held: float, waiters: float) -> None:
    assert silence(with_places(waiting(exports=""), places("lock", held, waiters, None, LOCK)))


def test_a_lock_at_which_few_of_those_who_wait_do_so_is_suspected() -> None:
    """50/s x (0.64 - 0.03) s: 30.5 wait somewhere, 3 of them here; or 4 threads let no more come here."""
    built = with_places(waiting(0.02), places("lock", 1.0, 3.0, None, LOCK))
    full = places("threads", 4.0, None, 4, THREADS)

    finding = assessed(built)

    assert finding.grade is Grade.SUSPECTED
    assert any("9.8 % of those who wait" in e.text for e in finding.evidence)
    assert assessed(with_places(built, full)).grade is Grade.PROBABLE


def looked_through(built: Curve, **more: Any) -> Curve:
    """The first and the last byte were timed, the machine and its storage watched."""
    top = built.steps[-1]
    quick = replace(top.classes[0], transfer=estimate(0.0001))
    seen = replace(top, classes=(quick,), host_cpu=estimate(0.3, unit="cores"), **more)
    return replace(built, steps=(*built.steps[:-1], seen))


@pytest.mark.parametrize(
    ("waits", "busy", "grade"),
    [
        (0.08, None, Grade.STRONG),
        (0.12, None, Grade.PROBABLE),  # some task waits for storage: the holder may
        (0.02, 0.9, Grade.STRONG),  # a device writes back what no task waits for
        (None, 0.05, Grade.STRONG),
        (None, 0.5, Grade.PROBABLE),
        (None, None, Grade.PROBABLE),
    ],
)
def test_a_disk_behind_the_lock_is_ruled_out_where_hardly_anything_waits_for_storage(
    waits: float | None, busy: float | None, grade: Grade
) -> None:
    watch = storage(waiting=waits, stalled=None, busy=busy)

    finding = assessed(looked_through(waiting(0.02, exports="lock"), storage=watch))

    assert finding.grade is grade
    assert bool(finding.unknown) is (grade is Grade.PROBABLE)


@pytest.mark.parametrize(("half", "grade"), [(0.1, Grade.STRONG), (0.2, Grade.PROBABLE)])
def test_holders_that_are_known_badly_are_not_clear(half: float, grade: Grade) -> None:
    """0.9 to 1.1 lies within the limits of one holder, 0.8 to 1.2 does not."""
    lock = places("lock", 1.0, 30.5, None, LOCK)
    rough = replace(lock, held=replace(lock.held, mean=estimate(1.0, half=half)))
    built = with_places(waiting(0.02), rough)

    assert assessed(looked_through(built, storage=storage(waiting=0.0))).grade is grade


def test_how_long_it_is_held_is_known_no_better_than_answers_are_counted() -> None:
    """Trials of 2 s at 50/s that all count 100: one more or less at an end is 1 %."""
    built = waiting(0.02, exports="lock")
    same = replace(built.steps[-1], throughput=estimate(50.0, unit="1/s", half=0.0), issued=300)
    held = built.steps[-1].places[0]
    sure = replace(same, places=(replace(held, held=replace(held.held, mean=estimate(1.0, half=0.0))),))

    finding = assessed(replace(built, steps=(*built.steps[:-1], sure)))

    hold = next(e for e in finding.evidence if e.signal == "lock.hold")
    assert hold.low == pytest.approx(1 / 50.5)
    assert hold.high == pytest.approx(1 / 49.5)


def test_without_a_plateau_there_is_nothing_to_explain() -> None:
    assert "no plateau" in silence(waiting(0.02, size=64, exports="lock"))


def test_a_loop_that_computes_is_no_lock() -> None:
    reason = silence(waiting(exports="lock", cpu=0.95))

    assert "computes" in reason


def test_full_cores_are_no_lock_and_waiting_for_a_core_counts() -> None:
    busy = (process(1.0, waiting=2.0, hot=8),)

    assert "3.00 of 4 cores" in silence(waiting(exports="lock", processes=busy))


@pytest.mark.parametrize(("queued", "is_lock"), [(1.5, True), (1.7, False)])
def test_threads_that_all_wake_at_once_while_cores_are_idle_are_not_what_limits(
    queued: float, *, is_lock: bool
) -> None:
    """32 requests wait for a core 4.7 or 5.3 % of their time; with it they would want 2.1 of 2 cores."""
    built = waiting(exports="lock", processes=(process(0.6, waiting=queued, hot=99),))
    answer = db_lock.assess(facts(replace(built, cores_allotted=2.0), cores=2))

    assert isinstance(answer, Finding) is is_lock, answer
    pinned = db_lock.assess(facts(replace(built, cores_allotted=2.0), cores=4))
    assert isinstance(pinned, Absent)  # the idle cores may be others


def test_a_full_machine_may_be_the_limit() -> None:
    reason = silence(waiting(exports="lock", host_cpu=estimate(3.8, unit="cores")))

    assert reason == "k=1: full machine, 3.80 of 4 cores are used"


def among_others(*, before: float, queued: float) -> Curve:
    """Return a lock where others use 3.7 of 4 cores at 32 users, of whom some wait for a core."""
    built = waiting(
        exports="lock",
        host_cpu=estimate(3.9, unit="cores"),
        other_cores=3.7,
        processes=(process(0.1, waiting=queued, hot=99),),
    )
    first = replace(built.steps[0], other_cores=before)
    return replace(built, steps=(first, *built.steps[1:]), cores_allotted=16.0)


def test_a_machine_that_others_fill_at_any_load_hides_no_lock() -> None:
    finding = assessed(among_others(before=3.7, queued=0.64))

    assert finding.grade is Grade.PROBABLE
    (left,) = (each for each in finding.counter if each.rival == "full machine")
    assert left.ruled_out is None
    # 0.64 of 32
    assert left.text.endswith("3.70 by others at any load; requests wait for a core 2.0 % of the time")


def test_what_others_use_beside_what_grows_with_the_load_leaves_room() -> None:
    """33 /s with one user and 50 /s with 32: 2.9 cores and 3.7 are 1.3 without any load."""
    finding = assessed(among_others(before=2.9, queued=0.64))

    assert finding.grade is Grade.PROBABLE
    (left,) = (each for each in finding.counter if each.rival == "full machine")
    assert left.ruled_out is None
    assert "1.30 by others at any load" in left.text


@pytest.mark.parametrize(
    ("before", "queued"),
    [
        (2.5, 0.64),  # 0.1 of them without any load
        (0.02, 0.64),  # what others do comes with the load, as the work of a database would
        (3.7, 9.0),  # 9 of 32 wait for a core
    ],
)
def test_a_machine_that_requests_wait_for_is_no_lock(before: float, queued: float) -> None:
    assert "full machine" in silence(among_others(before=before, queued=queued))


def test_holders_that_wait_in_a_further_line_are_not_the_cause() -> None:
    inner = places("pool", 0.5, 0.6, 8, POOL)

    assert "another line behind it" in silence(with_places(waiting(exports="lock"), inner))


def test_threads_that_are_full_of_those_who_wait_for_it_do_not_stand_against_it() -> None:
    full = places("threads", 31.5, None, 32, THREADS)
    others = places("threads", 200, None, 200, THREADS)

    def threads(finding: Finding) -> bool | None:
        return next(r.ruled_out for r in finding.counter if r.rival == "full threads")

    assert threads(assessed(with_places(waiting(exports="lock"), full))) is True
    assert threads(assessed(with_places(waiting(exports="lock"), others))) is None


def test_a_database_that_counts_others_among_the_holders_leaves_it_suspected() -> None:
    lock = replace(places("lock", 4.0, 20.0, None, LOCK), held_is_at_most=True)
    single = replace(places("lock", 1.2, 20.0, None, LOCK), held_is_at_most=True)

    assert assessed(with_places(waiting(), lock)).grade is Grade.SUSPECTED
    assert assessed(with_places(waiting(), single)).grade is Grade.PROBABLE
    unheld = replace(places("lock", 0.5, 20.0, None, LOCK), held_is_at_most=True)
    assert "locks_held 0.5" in silence(with_places(waiting(), unheld))  # not even all that could be


def test_a_lock_without_a_gauge_of_its_line_is_suspected() -> None:
    assert assessed(with_places(waiting(), places("lock", 1.0, None, None, LOCK))).grade is Grade.SUSPECTED


def test_a_name_without_a_word_for_it_is_a_lock_when_it_has_one_place() -> None:
    finding = assessed(with_places(waiting(), places("unknown", 1.0, 30.0, 1, POOL)))

    assert finding.rule == "db.lock"


def test_pools_alone_and_no_gauges_leave_it_open() -> None:
    for built in (waiting(), waiting(exports="pool")):
        answer = db_lock.assess(facts(built))
        assert isinstance(answer, NotAssessed)
        assert "no gauge of a lock" in answer.reason


def test_one_trial_a_level_is_enough_to_say_it() -> None:
    assert assessed(waiting(0.02, exports="lock", trials=1)).grade is Grade.PROBABLE


# --- titles of a database's processes ----------------------------------------------------------------------


def by_titles(held: float, waiters: float, resting: float) -> ConcurrencyLimit:
    """A lock as the titles of processes show it."""
    lock = places("lock", held, waiters, None, ("db: at work", "db: MERGE waiting", ""))
    return replace(
        lock, held_is_at_most=True, seen_in="titles", command="MERGE", resting=gauge("db: resting", resting)
    )


def test_titles_name_the_command_that_waits_and_an_idle_holder() -> None:
    finding = assessed(with_places(waiting(0.02), by_titles(1.0, 30.5, 0.9)))

    assert finding.grade is Grade.PROBABLE
    assert finding.statement.endswith("lets 50.0 /s through; 30.5 wait for it in MERGE")
    assert "for 90 % of that time the transaction is idle" in finding.evidence[-1].text
    assert finding.advice.startswith("Commit before that work")


def test_a_holder_that_works_is_not_called_idle() -> None:
    finding = assessed(with_places(waiting(0.02), by_titles(1.0, 30.5, 0.1)))

    assert not any("idle" in evidence.text for evidence in finding.evidence)
    assert finding.advice.startswith("Hold the lock for less")


def test_titles_that_show_more_at_work_than_hold_a_lock_leave_it_open() -> None:
    assert assessed(with_places(waiting(0.02), by_titles(3.0, 28.5, 0.1))).grade is Grade.SUSPECTED


@pytest.mark.parametrize(("held", "waiters"), [(1.0, 0.1), (0.3, 0.0)])
def test_a_database_in_which_hardly_anyone_waits_is_no_lock(held: float, waiters: float) -> None:
    silence(with_places(waiting(0.02), by_titles(held, waiters, 0.0)))
