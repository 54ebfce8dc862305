"""A quoted quantile lies where one kind of request ends and another begins.

**Means.** A share of the requests takes much longer, and the quantile falls just between: the next run may
say one or the other. Ten per cent of slow requests make p90 such a number.

**Needs.** The quantile's interval spans more than a factor of 2, while its neighbours on both sides are each
known within a factor of 1.2 and lie more than a factor of 2 apart.

**Ruled out by.** Neighbours that are as uncertain as the quantile itself: then it is few requests, not a
boundary. Runs that differ by more than a fifth from each other.

**Thresholds.** Neighbours lie 2 points to either side, or half of what is above: on an exponential tail they
are 1.2 to 1.3 apart, on a lognormal one of sigma 1.4 below 2.

**Do.** Quote the neighbours and how many requests are slow, in place of the quantile.

**Confirm.** More requests: the neighbours stay, the quantile jumps between them.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, NotAssessed
from loadlens.model.quality import QuantileWatch
from loadlens.present import numbers

ID = "quantile.boundary"
TITLE = "a quantile lies between two kinds of requests"
EXPLAINS: tuple[str, ...] = ()

WIDE = 2.0
KNOWN = 1.2
RUNS_ALIKE = 0.2
IMPACT = 0.03


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every quoted quantile of every level."""
    steps = [(curve, step) for curve in facts.curves for step in curve.steps]
    known = [(curve, step, one) for curve, step in steps for one in step.quality.quantiles]
    if not known:
        return NotAssessed(ID, TITLE, "no quantile of a response time has an interval")
    found = [f for curve, step, one in known if (f := _finding(curve, step, one)) is not None]
    if found:
        return max(found, key=lambda finding: finding.grade)
    wide = sum(_is_wide(one) for _, _, one in known)
    return Absent(
        ID, TITLE, f"{len(known) - wide} of {len(known)} quantiles are known within a factor of {WIDE:g}, "
        "the others have no two levels beside them"
    )  # fmt: skip


def _is_wide(one: QuantileWatch) -> bool:
    figure = one.figure
    return not isinstance(figure, Estimate) or not _within(figure, WIDE)


def _within(figure: Estimate, factor: float) -> bool:
    return figure.low is not None and figure.high is not None and figure.high <= factor * figure.low


def _finding(curve: Curve, step: Step, one: QuantileWatch) -> Finding | None:
    lower, upper = one.lower, one.upper
    if not _is_wide(one) or lower is None or upper is None:
        return None
    name = f"p{one.level * 100:g}"
    below, above = (f"p{(one.level + side * one.apart) * 100:g}" for side in (-1, 1))
    ratio = upper.point / lower.point
    signals = [
        grading.stated(
            "quantile.jump",
            ratio > WIDE,
            text=f"{above} is {ratio:.3g} times {below} (limit {WIDE:g})",
            chip=f"{above} is {ratio:.3g} times {below}",
        ),
        grading.stated(
            "quantile.neighbours",
            _within(lower, KNOWN) and _within(upper, KNOWN),
            text=f"{below} is {numbers.shown(lower)}, {above} is {numbers.shown(upper)} "
            f"(each within a factor of {KNOWN:g})",
        ),
    ]
    rivals = (_runs(step),)
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(curve))
    if grade is None:
        return None
    low, high = numbers.with_unit(lower.point, "s"), numbers.with_unit(upper.point, "s")
    return Finding(
        rule=ID,
        grade=grade,
        impact=IMPACT,
        scope=f"{curve.label} · {step.label}",
        statement=grading.statement(
            f"{name} lies between two kinds of requests: {low} below it, {high} above"
        ),
        explanation=f"It was {numbers.shown(one.figure)}; another run may give either.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=rivals,
        advice=f"Quote {below} ({low}) and {above} ({high}) in place of {name}.",
        confirm=f"four times the requests: {below} and {above} stay, {name} jumps between them",
        curves=(curve.label,),
    )


def _runs(step: Step) -> Counter:
    varies = step.quality.variation
    if varies is None:
        return grading.rival("runs that differ", "fewer than three trials", None)
    text = f"runs differ by {numbers.percent(varies.between)} (limit {numbers.percent(RUNS_ALIKE)})"
    return grading.rival("runs that differ", text, varies.between < RUNS_ALIKE)
