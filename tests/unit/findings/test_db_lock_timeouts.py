"""Lock time-outs: fired by errors that pile up or a log that says so, silent on any other failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.findings.db_lock_timeouts import assess
from loadlens.model.facts import Curve
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.findings.build import LOCKED, curve, facts, failing, step


def with_last(last: object) -> Curve:
    return curve(step(1, 4.5, 0.2), last)  # type: ignore[arg-type]


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


def _no_success_near(built):  # type: ignore[no-untyped-def]
    return replace(built, failures=tuple(replace(mode, success_median_s=None) for mode in built.failures))


def test_time_outs_of_the_client_are_not_the_servers_errors() -> None:
    assert isinstance(assess(facts(with_last(failing(0.02, median=30.0, status=0)))), Absent)


def test_errors_that_do_not_rise_with_load_are_not_it() -> None:
    same = replace(failing(0.02, median=5.05), load=1.0, log_signs=(LOCKED,))

    assert isinstance(assess(facts(curve(same, replace(same, load=20.0)))), Absent)


def test_no_failure_says_among_how_many() -> None:
    answer = assess(facts(curve(step(1, 5.0, 0.2), step(20, 5.0, 3.8))))

    assert isinstance(answer, Absent)
    assert "among 600 requests" in answer.reason  # 2 x 5 /s x 20 s x 3 trials


def test_without_trials_it_is_not_assessed() -> None:
    assert isinstance(assess(facts()), NotAssessed)
