"""A service that gets faster from its start on, and trials that fall by chance."""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any

import pytest

from loadlens.diagnose.rules.measurement import steady_none
from loadlens.diagnose.rules.measurement.warmup_incomplete import assess
from loadlens.model.facts import Curve
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed, NotMeasured
from loadlens.model.quality import Quality, Settling
from loadlens.model.shapes import Slowdown
from tests.unit.diagnose.build import curve, estimate, facts, step


def went(order: int, kind: str = "flat", **more: Any) -> Settling:
    built: dict[str, Any] = {
        "order": order, "kind": kind, "measured_s": 3.0, "cut_s": 0.0, "bias": None, "change": 0.0,
        "p_value": 0.5,
    }  # fmt: skip
    return Settling(**(built | more))


def falling(order: int, by: float = 0.3) -> Settling:
    return went(order, "no_steady", change=log(1 - by), p_value=1e-6)


def rising(order: int, by: float = 0.3) -> Settling:
    return went(order, "no_steady", change=log(1 + by), p_value=1e-6)


def levels(*trials: tuple[Settling, ...]) -> Curve:
    users = (1, 2, 4, 8, 16, 32)
    steps = [
        step(n, 50.0 * n, 0.02, trials=len(own), quality=Quality(settling=own))
        for n, own in zip(users, trials, strict=False)
    ]
    return curve(*steps, think=0.0)


def test_the_first_trials_in_a_row_that_fall_are_a_start() -> None:
    finding = assess(facts(levels((falling(2, 0.5),), (falling(3),), (falling(4, 0.15),), (went(5),))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    # 1 / (1 - 0.5) - 1: it was twice as slow at first; three trials of 3 s passed.
    assert finding.statement == "3 of 4 trials hold a part of the start: 100 % slower at first"
    assert finding.advice == "Warm up for 18 s before anything is measured."


def test_two_in_a_row_are_probable() -> None:
    finding = assess(facts(levels((falling(2),), (falling(3),), (went(4),), (went(5),))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_one_that_falls_or_two_in_the_middle_are_chance() -> None:
    single = assess(facts(levels((falling(2),), (went(3),), (went(4),))))
    middle = assess(facts(levels((went(2),), (falling(3),), (falling(4),), (went(5),))))

    assert isinstance(single, Absent)
    assert isinstance(middle, Absent)
    assert "2 of 4 trials" in middle.reason


def test_a_level_whose_trials_mostly_begin_slow_is_found_wherever_it_stands() -> None:
    cold = tuple(went(n, "warmup", cut_s=1.0, bias=0.06) for n in (3, 7, 8))

    finding = assess(facts(levels((went(1), went(4), went(6)), (*cold, went(9)))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert "6.0 % slower" in finding.statement
    assert finding.advice == "Warm up for 2 s before anything is measured."


def test_two_trials_of_a_level_that_begin_slow_are_chance() -> None:
    cold = tuple(went(n, "warmup", cut_s=1.0, bias=0.06) for n in (3, 7))

    assert isinstance(assess(facts(levels((went(1),), (*cold, went(9))))), Absent)


@pytest.mark.parametrize("taken", [{"steal": 0.03}, {"other_cores": 1.0}])
def test_later_trials_that_fall_while_others_take_the_processor_are_a_suspicion(
    taken: dict[str, Any],
) -> None:
    cold = tuple(went(n, "warmup", cut_s=1.0, bias=0.06) for n in (3, 7, 8))
    built = levels((went(1),), cold)
    crowded = replace(built, steps=(built.steps[0], replace(built.steps[1], **taken)))
    from_the_start = levels((falling(2),), (falling(3),), (went(4),))

    finding = assess(facts(crowded))
    start = assess(
        facts(replace(from_the_start, steps=tuple(replace(s, **taken) for s in from_the_start.steps)))
    )

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED
    assert isinstance(start, Finding)
    assert start.grade is Grade.PROBABLE


@pytest.mark.parametrize(("median", "is_found"), [(0.0067, True), (0.0066, False), (0.003, False)])
def test_a_fall_that_waking_processors_explain_is_no_start(median: float, is_found: bool) -> None:
    # 3 % of 6.7 ms are 0.201 ms; of 3 ms 0.09 ms.
    built = levels(*[(went(n, "warmup", cut_s=0.5, bias=0.03),) for n in (2, 3)])
    steps = tuple(
        replace(s, response=replace(s.response, p50=estimate(median, trials=1))) for s in built.steps
    )

    assert isinstance(assess(facts(replace(built, steps=steps))), Finding) is is_found


@pytest.mark.parametrize(("bias", "is_found"), [(0.021, True), (0.019, False), (-0.05, False)])
def test_two_per_cent_of_the_median_decide(bias: float, is_found: bool) -> None:
    trials = [(went(n, "warmup", cut_s=0.5, bias=bias),) for n in (2, 3)]

    assert isinstance(assess(facts(levels(*trials))), Finding) is is_found


def test_a_service_that_slows_down_is_no_start() -> None:
    drifting = facts(levels((rising(2),), (rising(3),), (rising(4),)))

    assert isinstance(assess(drifting), Absent)
    assert isinstance(steady_none.assess(drifting), Finding)


def medians(*ms: float, order: tuple[int, ...] = (2, 3, 4, 5, 6), half: float = 0.01) -> Curve:
    """Levels of 1, 2, 4 ... users with these medians, each measured for 2 s."""
    steps = []
    for place, value in enumerate(ms):
        level = step(2**place, 100.0, value / 1e3, trials=1, quality=Quality(order=order[place], seconds=2.0))
        p50 = estimate(value / 1e3, half=half, trials=1)
        steps.append(replace(level, response=replace(level.response, p50=p50)))
    return curve(*steps, think=0.0)


def test_levels_that_get_faster_one_after_the_other_hold_the_start() -> None:
    finding = assess(facts(medians(60, 40, 28, 20, 21)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert finding.statement == "The first 4 levels hold a part of the start: 200 % slower at first"
    assert finding.advice == "Warm up for 12 s before anything is measured."  # twice three levels of 2 s


@pytest.mark.parametrize(
    "levels_",
    [
        medians(200, 5, 5, 5),  # one connection in some is slow: the median moves once
        medians(60, 40, 28, 28),  # three are not four
        medians(60, 40, 28, 20, half=0.3),  # intervals that meet
        medians(0.25, 0.2, 0.17, 0.15),  # processors that wake
        medians(20, 28, 40, 60),  # waiting
        medians(60, 40, 28, 20, order=(5, 4, 3, 2)),  # the lightest load ran last
    ],
)
def test_other_falls_over_levels_are_no_start(levels_: Curve) -> None:
    assert not isinstance(assess(facts(levels_)), Finding)


def again(**more: Any) -> Curve:
    """One user took 44 ms, and 15 ms after 22 s of other levels."""
    built: dict[str, Any] = {
        "label": "b", "request": "POST /b", "trials": 7, "rising": 0, "falling": 5,
        "change": estimate(0.34, unit="ratio"), "load": 1.0, "requests": 20_000, "seconds": 22.0,
        "doubling": None,
    }  # fmt: skip
    return replace(medians(44, 44, half=0.5), slowdowns=(Slowdown(**(built | more)),))


def test_one_level_that_was_far_slower_the_first_time_holds_the_start() -> None:
    finding = assess(facts(again()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE  # one trial of each level
    # 1 / 0.34 - 1 = 1.94
    assert finding.statement == "The first levels hold a part of the start: 194 % slower at first"
    assert finding.advice == "Warm up for 44 s before anything is measured."


@pytest.mark.parametrize(
    "other",
    [
        again(change=estimate(0.93, unit="ratio")),  # runs differ by as much
        again(change=estimate(0.9, unit="ratio", half=0.05)),  # perhaps less
        again(falling=1),  # no trial shows it besides
        again(rising=1),  # and one the contrary
        again(change=NotMeasured("drift.change", "once")),
        replace(again(), steps=medians(1.2, 1.2).steps),  # 0.8 ms: processors that wake
    ],
    ids=["little", "perhaps little", "falls once", "rises", "once", "short"],
)
def test_what_differs_the_second_time_for_other_reasons_is_no_start(other: Curve) -> None:
    assert not isinstance(assess(facts(other)), Finding)


def test_others_on_the_machine_at_the_first_time_make_it_a_suspicion() -> None:
    built = again()
    crowded = replace(built, steps=(replace(built.steps[0], other_cores=1.5), *built.steps[1:]))

    finding = assess(facts(crowded))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_too_few_requests_tell_nothing() -> None:
    assert isinstance(assess(facts(levels((), ()))), NotAssessed)
