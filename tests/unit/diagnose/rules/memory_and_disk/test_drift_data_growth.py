"""Requests that take longer the more were answered, and times that differ for other reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.memory_and_disk.drift_data_growth import assess
from loadlens.model.facts import Facts, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed, NotMeasured
from loadlens.model.shapes import Slowdown
from tests.unit.diagnose.build import curve, estimate, step


def slowdown(**more: Any) -> Slowdown:
    """After 20,000 requests one of them takes three times as long at one user."""
    built: dict[str, Any] = {
        "label": "b",
        "request": "POST /b",
        "trials": 11,
        "rising": 7,
        "falling": 0,
        "change": estimate(3.0, unit="ratio"),
        "load": 1.0,
        "requests": 20_000,
        "seconds": 70.0,
        "doubling": 10_000.0,
        "follows": "requests",
    }
    return Slowdown(**{**built, **more})


def record(*assessed: Slowdown, **last: Any) -> Facts:
    return Facts(4, (replace(curve(step(1, 20, 0.05, **last)), slowdowns=assessed),))


def test_times_that_grow_with_what_was_answered_are_found() -> None:
    finding = assess(record(slowdown()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "POST /b takes 3 times as long after 20,000 requests"
    assert "10,000 requests" in finding.advice
    assert finding.impact == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "other",
    [
        slowdown(change=estimate(1.05, unit="ratio")),  # runs differ by as much
        slowdown(rising=1, falling=6),  # it was cold at first
        slowdown(falling=1, change=estimate(1.8, unit="ratio")),
        slowdown(rising=1, falling=1),
        slowdown(rising=2, change=estimate(1.4, unit="ratio")),  # of eleven trials
        slowdown(rising=1, change=estimate(1.8, unit="ratio")),
        slowdown(follows="clock"),
    ],
    ids=["small", "cold", "falls once", "falls as often", "rises rarely", "rises once", "with the clock"],
)
def test_what_else_changes_times_is_none(other: Slowdown) -> None:
    answer = assess(record(other))

    assert isinstance(answer, Absent)
    assert "times rise in" in answer.reason


def test_what_grew_by_half_need_not_show_within_each_trial() -> None:
    finding = assess(record(slowdown(rising=2, change=estimate(1.72, unit="ratio"))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert finding.statement == "POST /b takes +72.0 % after 20,000 requests"


def test_a_level_that_takes_twice_as_long_is_a_suspicion_though_times_fall_once() -> None:
    finding = assess(record(slowdown(rising=2, falling=1, trials=7)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def again(*levels: tuple[float, ...]) -> tuple[Step, ...]:
    """Levels with the throughput of their trials, in order."""
    return tuple(
        replace(step(users, rates[0], 0.05), throughput_trials=rates) for users, rates in enumerate(levels, 1)
    )


@pytest.mark.parametrize(
    ("levels", "is_clear"),
    [
        ([(582.0, 301.0, 188.0), (395.0, 175.0, 159.0)], True),  # 1 / (3! 3!) = 2.8 %
        ([(582.0, 301.0, 188.0), (260.0, 210.0)], False),  # 1 / (3! 2!) = 8.3 %
        ([(582.0, 301.0, 188.0), (395.0, 159.0, 175.0)], False),  # one trial of a level gave more
    ],
)
def test_levels_that_give_less_each_time_are_as_good_as_rises_within_trials(
    levels: list[tuple[float, ...]], is_clear: bool
) -> None:
    seen = slowdown(rising=2, falling=2, trials=10, follows="unknown")
    answer = assess(Facts(4, (replace(curve(*again(*levels)), slowdowns=(seen,)),)))

    assert isinstance(answer, Finding) == is_clear
    if isinstance(answer, Finding):
        assert answer.grade is Grade.PROBABLE
        assert answer.explains_others


def test_a_small_change_explains_no_plateau() -> None:
    finding = assess(record(slowdown(change=estimate(1.5, unit="ratio"))))

    assert isinstance(finding, Finding)
    assert not finding.explains_others


def test_a_level_measured_once_is_a_suspicion_where_most_trials_rise() -> None:
    unmeasured = NotMeasured("drift.change", "no level was measured twice in one life of the service")
    once = slowdown(change=unmeasured, load=None)

    finding = assess(record(once))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED
    assert isinstance(assess(record(replace(once, rising=4))), Absent)


def test_not_knowing_what_it_follows_is_a_suspicion() -> None:
    finding = assess(record(slowdown(follows="unknown")))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_levels_of_one_trial_say_nothing_of_how_runs_differ() -> None:
    finding = assess(record(slowdown(), trials=1))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_other_programs_on_the_machine_are_not_excluded() -> None:
    finding = assess(record(slowdown(), other_cores=1.5))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_other_programs_are_looked_for_at_the_level_that_is_compared() -> None:
    quiet, crowded = step(1, 20, 0.05), step(2, 40, 0.05, other_cores=1.5)
    of_one = Facts(4, (replace(curve(quiet, crowded), slowdowns=(slowdown(),)),))
    of_two = Facts(4, (replace(curve(quiet, crowded), slowdowns=(slowdown(load=2.0),)),))

    grades = [answer.grade for built in (of_one, of_two) if isinstance(answer := assess(built), Finding)]

    assert grades == [Grade.STRONG, Grade.PROBABLE]


def test_a_look_with_dense_probes_is_more_load_than_the_first_time() -> None:
    finding = assess(replace(record(slowdown()), dense=(step(1, 20, 0.05),)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_without_trends_or_levels_measured_twice_nothing_is_assessed() -> None:
    nothing = slowdown(trials=0, rising=0, change=NotMeasured("drift.change", "none"))

    assert isinstance(assess(record(nothing)), NotAssessed)
    assert isinstance(assess(record()), NotAssessed)
