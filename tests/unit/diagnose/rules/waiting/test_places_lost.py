"""Places that are not given back: nothing succeeds any more, apart from refusals and from silence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.waiting.places_lost import assess
from loadlens.model.facts import Crowd, Curve, FailureMode, LogSign, LostWatch
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, facts, step

# 503 after 2 s, where half of the successes took 20 ms
IN_VAIN = FailureMode("a", "unexpected_status", 503, 12, 2.0, 1.0, 0.02)
LOST = LostWatch(load=1, served=1_203, failed=12, mode=IN_VAIN, alike=12)


def with_lost(lost: LostWatch | None) -> Curve:
    return replace(curve(step(1, 50.0, 0.02), step(4, 190.0, 0.02)), lost=lost)


def test_a_service_that_waits_in_vain_for_good_gives_nothing_back() -> None:
    finding = assess(facts(with_lost(LOST)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED
    statement = "Nothing succeeds after 1,203 answers: what a request takes may not be given back"
    assert finding.statement == statement
    assert finding.explanation == "Requests wait 2.00 s in vain at 1 user, where 20.0 ms were usual."
    (called,) = finding.counter
    assert called.ruled_out is None  # something that it calls may have stopped


def test_a_service_that_names_its_pool_makes_it_probable() -> None:
    of_pool = LogSign("pool", 12, "timed out waiting for a connection", "answers")

    finding = assess(facts(with_lost(replace(LOST, log_signs=(of_pool,)))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert "a connection is not given back" in finding.statement


@pytest.mark.parametrize(
    ("calls", "grade", "is_ruled_out"),
    [
        (0.0, Grade.PROBABLE, True),  # it called others before, and does not now: it waits within
        (1.0, Grade.SUSPECTED, None),  # the one user waits in a call
        (None, Grade.SUSPECTED, None),  # it calls nothing that was seen
    ],
)
def test_requests_that_wait_in_no_call_wait_within(
    calls: float | None, grade: Grade, is_ruled_out: bool | None
) -> None:
    finding = assess(facts(with_lost(replace(LOST, calls=calls))))

    assert isinstance(finding, Finding)
    assert finding.grade is grade
    assert finding.counter[0].ruled_out is is_ruled_out


@pytest.mark.parametrize(
    ("crowd", "grade"),
    [
        (Crowd(32.0, 32.0, "till.py:36", is_for_place=True), Grade.PROBABLE),
        (Crowd(30.0, 32.0, "till.py:36", is_for_place=True), Grade.SUSPECTED),  # two may be in a call
        (Crowd(32.0, 32.0, "till.py:36"), Grade.SUSPECTED),  # all are
    ],
)
def test_threads_that_all_wait_for_a_place_wait_within(crowd: Crowd, grade: Grade) -> None:
    finding = assess(facts(with_lost(replace(LOST, crowd=crowd))))

    assert isinstance(finding, Finding)
    assert finding.grade is grade


@pytest.mark.parametrize(
    "mode",
    [
        {"median_s": 0.09},  # 4.5 times a success: a refusal need not be at once
        {"pile": 0.4},  # no time-out ends them
        {"status": 0},  # nothing answers: the service ended
        {"status": 429},  # a quota
        {"status": 504},  # something behind a proxy
        {"count": 2},  # the others ended in other ways
        {"count": 5},  # 5 of 12
        {"median_s": None},
    ],
)
def test_failures_that_end_no_wait_are_something_else(mode: dict[str, Any]) -> None:
    changed = replace(IN_VAIN, **mode)
    lost = replace(LOST, mode=changed, alike=changed.count)

    assert isinstance(assess(facts(with_lost(lost))), Absent)


def test_a_service_that_serves_to_the_end_is_silent_and_without_trials_it_is_not_assessed() -> None:
    assert isinstance(assess(facts(with_lost(None))), Absent)
    assert isinstance(assess(facts()), NotAssessed)
