"""The response time never settles while it is measured.

**Means.** There is no level that a mean or a quantile could stand for: a longer or a later trial gives
another. What makes it drift is another finding's matter.

**Needs.** Trials that settle only after their middle, or whose response time still changes by more than 10 %
after that (p < 0.01), in more than half of the trials of a level: two trials of the record at least, or one
where it has three at most.

**Ruled out by.** A service that gets faster from its start on (`warmup.incomplete`); pauses that keep a
period, whose intervals are left out first; loads that change by plan, which are not asked.

**Thresholds.** 10 % and p < 0.01: fewer than one stationary trial in a hundred, so that one alone among many
says nothing, and one of three or fewer is a suspicion.

**Do.** Measure for three times as long; where it still drifts, look for what grows (memory, rows).

**Confirm.** Twice the duration: it settles, or the drift goes on.
"""

from __future__ import annotations

import math

from loadlens.diagnose import grading
from loadlens.diagnose.rules.measurement.warmup_incomplete import is_falling
from loadlens.estimate.steady_state import SMALLEST_TREND, TREND_LEVEL
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.quality import Settling
from loadlens.present import numbers

ID = "steady.none"
TITLE = "response times never settle"
EXPLAINS: tuple[str, ...] = ()

FEWEST = 2
FEW_TRIALS = 3
MOST_IMPACT = 0.04  # it qualifies figures; what drifts is found by others


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the trials of every level."""
    steps = [(curve, step) for curve in facts.curves for step in curve.steps if step.quality.settling]
    if not steps:
        return NotAssessed(ID, TITLE, "trials of 100 requests or more would tell; these have fewer")
    asked = sum(len(step.quality.settling) for _, step in steps)
    drifting = [(curve, step, own) for curve, step in steps if (own := _drifting(step))]
    many = sum(len(own) for _, _, own in drifting)
    if not drifting or (many < FEWEST and asked > FEW_TRIALS):
        return Absent(ID, TITLE, f"{many} of {asked} trials drift, as many as chance makes")
    return _finding(drifting, many, asked)


def _drifting(step: Step) -> list[Settling]:
    """Trials that never settle, where they are more than half."""
    own = [went for went in step.quality.settling if went.kind == "no_steady" and not is_falling(went)]
    return own if 2 * len(own) > len(step.quality.settling) else []


def _finding(drifting: list[tuple[Curve, Step, list[Settling]]], many: int, asked: int) -> Finding:
    curve, step, own = max(drifting, key=lambda one: max(abs(went.change) for went in one[2]))
    worst = max(own, key=lambda went: abs(went.change))
    change = math.expm1(worst.change)
    signals = [_signal(worst, step, many, asked)]
    cap = Grade.SUSPECTED if many < FEWEST else grading.cap_of(curve)
    grade = grading.grade_of(signals, (), cap=cap)
    assert grade is not None  # nothing contradicts
    labels = tuple(dict.fromkeys(c.label for c, _, _ in drifting))
    length = numbers.duration(3 * worst.measured_s)
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(MOST_IMPACT, abs(change)),
        scope=f"{curve.label} · {step.label}",
        statement=grading.statement(_statement(worst, step, many, asked)),
        explanation="Means and quantiles of these trials are those of a moment, not of a level.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=(),
        advice=f"Measure {step.label} for {length}; where it still drifts, look for what grows.",
        confirm=f"{length} in place of {numbers.duration(worst.measured_s)}: it settles, or goes on",
        curves=labels,
    )


def _signal(worst: Settling, step: Step, many: int, asked: int) -> grading.Signal:
    change = numbers.signed_percent(math.expm1(worst.change))
    cut, whole = numbers.duration(worst.cut_s), numbers.duration(worst.measured_s)
    trends = _trends(worst)
    return grading.stated(
        "response.drifts",
        True,
        text=f"{many} of {asked} trials never settle; {step.label} changes by {change} "
        f"(p = {worst.p_value:.2g})"
        if trends
        else f"{many} of {asked} trials settle late or never; {step.label} after {cut} of {whole}",
        chip=f"drifts {change}" if trends else f"settles after {cut}",
    )


def _statement(worst: Settling, step: Step, many: int, asked: int) -> str:
    whole = numbers.duration(worst.measured_s)
    if _trends(worst):
        change = numbers.signed_percent(math.expm1(worst.change))
        return f"{many} of {asked} trials never settle: {step.label} {change} in {whole}"
    cut = numbers.duration(worst.cut_s)
    return f"{many} of {asked} trials settle late or never: {step.label} after {cut} of {whole}"


def _trends(went: Settling) -> bool:
    """Whether it still drifts behind its last level; the others came to that level after their middle."""
    return abs(went.change) > math.log(1 + SMALLEST_TREND) and went.p_value < TREND_LEVEL
