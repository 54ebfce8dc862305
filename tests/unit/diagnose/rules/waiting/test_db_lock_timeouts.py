"""Lock time-outs: fired by errors that pile up or a log that says so, silent on any other failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.waiting.db_lock_timeouts import assess
from loadlens.model.facts import ConcurrencyLimit, Curve, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import LOCKED, curve, facts, failing, step
from tests.unit.diagnose.waiting import LOCK, POOL, places


def with_last(last: Step) -> Curve:
    return curve(step(1, 4.5, 0.2), last)


def test_errors_that_pile_at_a_time_out_with_a_log_line_are_probable_and_no_more() -> None:
    finding = assess(facts(with_last(replace(failing(0.02, median=5.05), log_signs=(LOCKED,)))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert finding.statement.startswith("1.9 % of requests end with 500 at 20 users")  # 5 of 270


def test_a_pile_without_a_log_line_is_only_suspected_and_says_may() -> None:
    finding = assess(facts(with_last(failing(0.02, median=5.05))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED
    assert "may be held" in finding.statement


def test_a_log_line_without_a_pile_is_enough() -> None:
    finding = assess(facts(with_last(replace(failing(0.02, pile=0.1), log_signs=(LOCKED,)))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


@pytest.mark.parametrize(("median", "pile"), [(4.4, 0.9), (5.05, 0.2)])
def test_errors_without_pile_at_a_time_out_and_without_log_are_not_called_a_lock(
    median: float, pile: float
) -> None:
    answer = assess(facts(with_last(replace(failing(0.02, median=median, pile=pile), failures=()))))
    silent = assess(facts(with_last(_no_success_near(failing(0.02, median=median, pile=pile)))))

    assert isinstance(answer, Absent)
    assert isinstance(silent, Absent)
    assert "no line of the log names a lock" in silent.reason


def _no_success_near(built: Step) -> Step:
    return replace(built, failures=tuple(replace(mode, success_median_s=None) for mode in built.failures))


def test_time_outs_of_the_client_are_not_the_servers_errors() -> None:
    assert isinstance(assess(facts(with_last(failing(0.02, median=30.0, status=0)))), Absent)


def test_errors_that_do_not_rise_with_load_are_not_it() -> None:
    same = replace(failing(0.02, median=5.05), load=1.0, log_signs=(LOCKED,))

    assert isinstance(assess(facts(curve(same, replace(same, load=20.0)))), Absent)


@pytest.mark.parametrize(("before", "grade"), [(0.004, Grade.PROBABLE), (0.012, Grade.SUSPECTED)])
def test_errors_that_hardly_rise_with_load_may_be_there_anyway(before: float, grade: Grade) -> None:
    """5 of 270 at 20 users; 1 of 270 before is less than half of that, 3 of 270 are more."""
    many = replace(failing(0.02, median=5.05), log_signs=(LOCKED,))
    few = replace(failing(before, median=5.05), load=1.0)

    finding = assess(facts(curve(few, many)))

    assert isinstance(finding, Finding)
    assert finding.grade is grade


def test_errors_of_the_lowest_load_alone_are_no_rise() -> None:
    first = replace(failing(0.02, median=5.05), load=1.0, log_signs=(LOCKED,))
    alone = assess(facts(curve(first)))

    assert isinstance(assess(facts(curve(first, step(20, 4.5, 4.2)))), Absent)
    assert isinstance(alone, Finding)
    assert alone.grade is Grade.SUSPECTED


def test_a_line_of_the_log_for_many_errors_does_not_speak_for_them() -> None:
    """27 of 270 requests fail: 3 lines are a tenth of them, 2 are less."""
    many = failing(0.1, median=5.05)

    def of(lines: int) -> Finding:
        finding = assess(facts(with_last(replace(many, log_signs=(replace(LOCKED, count=lines),)))))
        assert isinstance(finding, Finding)
        return finding

    assert of(3).grade is Grade.PROBABLE
    assert of(2).grade is Grade.SUSPECTED


def test_errors_of_another_status_are_not_counted_with_it() -> None:
    """5 of 270 requests end with 500, 4 with 503."""
    last = replace(failing(0.02, median=5.05), log_signs=(LOCKED,))
    other = replace(last.failures[0], status=503, count=4)

    finding = assess(facts(with_last(replace(last, failures=(*last.failures, other)))))

    assert isinstance(finding, Finding)
    assert finding.statement.startswith("1.9 % of requests end with 500")


def test_no_failure_says_among_how_many() -> None:
    answer = assess(facts(curve(step(1, 5.0, 0.2), step(20, 5.0, 3.8))))

    assert isinstance(answer, Absent)
    assert "among 600 requests" in answer.reason  # 2 x 5 /s x 20 s x 3 trials


def test_without_trials_it_is_not_assessed() -> None:
    assert isinstance(assess(facts()), NotAssessed)


def held_up(*shown: ConcurrencyLimit, median: float = 0.3, pile: float = 0.9, success: float = 0.28) -> Curve:
    """Errors after a time that is no usual time-out, besides what gauges show."""
    last = failing(0.02, median=median, pile=pile)
    modes = tuple(replace(mode, success_median_s=success) for mode in last.failures)
    return with_last(replace(last, failures=modes, places=shown))


def test_a_lock_that_its_gauges_show_needs_no_usual_time_out_and_no_log() -> None:
    finding = assess(facts(held_up(places("lock", 1.0, 12.0, None, LOCK))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement.endswith("a lock is held too long")
    by_signal = {e.signal: e for e in finding.evidence}
    assert by_signal["errors.time"].value == 0.3
    assert "locks_wanted 12" in by_signal["lock.waiters"].text
    assert all(rival.ruled_out for rival in finding.counter)


@pytest.mark.parametrize(
    "lock",
    [places("lock", 0.5, 12.0, None, LOCK), places("lock", 1.0, 0.3, None, LOCK)],
    ids=["free", "not waited for"],
)
def test_a_lock_that_is_free_or_not_waited_for_does_not_make_a_time_out_of_any_pile(
    lock: ConcurrencyLimit,
) -> None:
    assert isinstance(assess(facts(held_up(lock))), Absent)


def test_errors_that_come_at_all_times_do_not_end_waits_for_a_lock() -> None:
    assert isinstance(assess(facts(held_up(places("lock", 1.0, 12.0, None, LOCK), pile=0.2))), Absent)


def test_errors_that_come_long_before_successes_end_no_wait_for_the_lock() -> None:
    lock = places("lock", 1.0, 12.0, None, LOCK)

    assert isinstance(assess(facts(held_up(lock, median=0.3, success=0.59))), Finding)
    assert isinstance(assess(facts(held_up(lock, median=0.3, success=0.61))), Absent)


def test_a_full_pool_is_the_rival_that_it_looks_like() -> None:
    full = places("pool", 4.0, 12.0, 4, POOL)
    free = places("pool", 2.0, 0.0, 4, POOL)

    assert isinstance(assess(facts(held_up(full, median=5.05))), Absent)
    beside = assess(facts(held_up(free, median=5.05)))
    assert isinstance(beside, Finding)
    assert next(r.ruled_out for r in beside.counter if r.rival == "full connection pool") is True


def test_a_pool_that_is_full_of_those_who_wait_for_the_lock_is_not_the_cause() -> None:
    full, lock = places("pool", 8.0, 5.0, 8, POOL), places("lock", 1.0, 7.0, None, LOCK)

    finding = assess(facts(held_up(full, lock)))

    assert isinstance(finding, Finding)
    assert "they wait for the lock" in next(
        r.text for r in finding.counter if r.rival == "full connection pool"
    )
