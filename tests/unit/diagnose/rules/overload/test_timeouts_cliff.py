"""Errors after a configured time, as against refusals, slow errors and single faults."""

from __future__ import annotations

from typing import Any

import pytest

from loadlens.diagnose.rules.overload.timeouts_cliff import assess, usual_near
from loadlens.model.facts import Curve, FailureMode, LogSign
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, facts, step

ISSUED = 10_000


def failing(
    share: float = 0.05,
    *,
    median: float | None = 1.004,
    pile: float | None = 0.95,
    status: int = 504,
    success: float | None = 0.6,
    outcome: str = "unexpected_status",
    **more: Any,
) -> Curve:
    mode = FailureMode("b", outcome, status, round(share * ISSUED), median, pile, success)
    light = step(1, 20.0, 0.05, issued=ISSUED)
    return curve(light, step(64, 25.0, 0.8, failures=(mode,), issued=ISSUED, **more), think=0.0)


def test_errors_after_a_second_are_a_time_out_with_that_time_claimed() -> None:
    answer = assess(facts(failing()))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.STRONG
    time = next(e for e in answer.evidence if e.signal == "errors.time")
    assert time.value == 1.004
    assert time.low == pytest.approx(0.954)
    assert time.high == 1.004  # a request alone takes 50 ms
    assert answer.impact == pytest.approx(0.05)
    assert "p95" in answer.advice
    assert len(answer.statement) <= 90
    assert all(len(e.chip) <= 32 for e in answer.evidence)


@pytest.mark.parametrize(
    ("seconds", "usual"),
    [(1.019, 1.0), (1.021, None), (0.981, 1.0), (0.979, None), (29.5, 30.0), (4.0, None)],
)
def test_a_time_that_people_set_lies_within_two_percent(seconds: float, usual: float | None) -> None:
    assert usual_near(seconds) == usual


def test_errors_after_any_other_time_are_silent() -> None:
    answer = assess(facts(failing(median=1.31, status=500)))

    assert isinstance(answer, Absent)
    assert "1.31" in answer.reason


def test_what_the_service_calls_a_time_out_is_one_after_any_time() -> None:
    said = (LogSign("timeout", 500, "planning took too long", "answers"),)

    assert isinstance(assess(facts(failing(median=1.31, status=504))), Finding)
    assert isinstance(assess(facts(failing(median=1.31, status=500, log_signs=said))), Finding)
    few = (LogSign("timeout", 499, "planning took too long", "answers"),)
    assert isinstance(assess(facts(failing(median=1.31, status=500, log_signs=few))), Absent)


@pytest.mark.parametrize(("pile", "grade"), [(0.9, Grade.STRONG), (0.5, Grade.PROBABLE), (0.49, None)])
def test_they_pile_up(pile: float, grade: Grade | None) -> None:
    answer = assess(facts(failing(pile=pile)))

    assert (answer.grade if isinstance(answer, Finding) else None) is grade


@pytest.mark.parametrize(("share", "fires"), [(0.001, True), (0.0009, False)])
def test_one_in_a_thousand(share: float, fires: bool) -> None:
    assert isinstance(assess(facts(failing(share))), Finding if fires else Absent)


@pytest.mark.parametrize(("success", "fires"), [(1.17, True), (1.18, False), (1.5, False)])
def test_refusals_come_faster_than_successes(success: float, fires: bool) -> None:
    """A success that waited for a second takes 50 ms more: 1.004 s is 0.9 x 1.171 s less 0.05 s."""
    assert isinstance(assess(facts(failing(success=success))), Finding if fires else Absent)


def test_in_a_queue_successes_take_their_work_on_top_of_the_time_out() -> None:
    """One is served at a time, 0.2 s each, and who has waited for half a second is turned away."""
    mode = FailureMode("b", "unexpected_status", 504, 500, 0.501, 1.0, 0.699)
    levels = (step(1, 5.0, 0.2, issued=ISSUED), step(16, 5.0, 0.69, failures=(mode,), issued=ISSUED))

    answer = assess(facts(curve(*levels, think=0.0)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.STRONG


def test_without_a_lighter_load_the_time_that_was_set_has_no_lower_bound() -> None:
    built = failing()

    answer = assess(facts(curve(built.steps[1], think=0.0)))

    assert isinstance(answer, Finding)
    time = next(e for e in answer.evidence if e.signal == "errors.time")
    assert (time.low, time.high) == (None, 1.004)


def test_what_the_client_gives_up_is_one_after_whatever_time() -> None:
    answer = assess(facts(failing(median=7.77, status=0, outcome="timeout", pile=0.3)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.STRONG
    assert "given up by the client after 7.77 s" in answer.statement


def test_a_broken_connection_is_none() -> None:
    assert isinstance(assess(facts(failing(status=0, outcome="reset"))), Absent)


def test_without_times_an_error_is_no_more_than_a_suspicion() -> None:
    answer = assess(facts(failing(median=None, pile=None)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


def test_a_slow_path_that_ends_well_is_none() -> None:
    assert isinstance(assess(facts(curve(step(1, 20.0, 1.0)))), Absent)


def test_what_became_of_requests_must_be_known() -> None:
    assert isinstance(assess(facts(curve(step(1, 20.0, 1.0, issued=None)))), NotAssessed)
    assert isinstance(assess(facts()), NotAssessed)


def test_one_trial_is_probable() -> None:
    answer = assess(facts(failing(trials=1)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE


@pytest.mark.parametrize(("before", "fires"), [(0.5, False), (1.002, True)])
def test_errors_at_the_end_of_whole_requests_take_as_long_as_successes(before: float, fires: bool) -> None:
    """One in twenty fails; successes take half a second with half as many users, and errors either too."""
    mode = FailureMode("b", "unexpected_status", 504, 500, before, 0.95, 0.49)
    built = failing(success=0.98)
    calmer = step(32, 25.0, 0.5, failures=(mode,), issued=ISSUED)

    answer = assess(facts(curve(built.steps[0], calmer, built.steps[1], think=0.0)))

    assert isinstance(answer, Finding if fires else Absent)
