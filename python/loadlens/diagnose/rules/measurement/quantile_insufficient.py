"""A quoted quantile stands on too few requests.

**Means.** Fewer than 20 requests that count as independent lie above it. Its point is likely too low, and its
interval hardly says more than that it is above the one before it.

**Needs.** A quantile above the median that was given a value, with fewer than 20 independent requests above
it over all trials.

**Ruled out by.** Nothing: it is a count.

**Thresholds.** 20: below, p99 of short trials of a busy queue is a fifth too low, and its interval covers the
truth two times in three.

**Do.** Measure longer, or quote a lower quantile; tables mark such figures.

**Confirm.** A trial as long as is advised: the interval closes.
"""

from __future__ import annotations

import math

from loadlens.diagnose import grading
from loadlens.estimate.within_trial import FIRM_ABOVE
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Finding, NotAssessed
from loadlens.model.quality import QuantileWatch
from loadlens.present import numbers

ID = "quantile.insufficient"
TITLE = "a quantile stands on too few requests"
EXPLAINS: tuple[str, ...] = ()

IMPACT = 0.01


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the quantiles above the median of every level."""
    known = [
        (curve, step, one, one.above)
        for curve in facts.curves
        for step in curve.steps
        for one in step.quality.quantiles
        if one.level > 0.5 and one.above is not None
    ]
    if not known:
        return NotAssessed(ID, TITLE, "no quantile above the median has a value")
    few = [(curve, step, one, above) for curve, step, one, above in known if above < FIRM_ABOVE]
    if not few:
        _, step, one, above = min(known, key=lambda found: found[3])
        return Absent(
            ID,
            TITLE,
            f"at least {above:.0f} independent requests lie above p{one.level * 100:g} ({step.label})",
        )
    return _finding(few, len(known))


def _finding(few: list[tuple[Curve, Step, QuantileWatch, float]], of: int) -> Finding:
    curve, step, worst, above = min(few, key=lambda found: found[3])
    name = f"p{worst.level * 100:g}"
    signals = [
        grading.stated(
            "quantile.above",
            True,
            text=f"{len(few)} of {of} quantiles have fewer than {FIRM_ABOVE:g} independent requests above; "
            f"{name} of {step.label} has {above:.1f}",
            chip=f"{above:.1f} requests above {name}",
        )
    ]
    grade = grading.grade_of(signals, (), cap=grading.cap_of(curve))
    assert grade is not None  # a count contradicts nothing
    times = math.ceil(FIRM_ABOVE / above) if above > 0 else None
    longer = f"{times} times as long" if times is not None and times <= 1000 else "much longer"
    return Finding(
        rule=ID,
        grade=grade,
        impact=IMPACT,
        scope=f"{curve.label} · {step.label}",
        statement=grading.statement(
            f"{len(few)} of {of} quantiles stand on fewer than {FIRM_ABOVE:g} independent requests"
        ),
        explanation=f"{name} of {step.label} is {numbers.shown(worst.figure)}, with {above:.1f} above it.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=(),
        advice=f"Measure {step.label} {longer}, or quote a lower quantile than {name}.",
        confirm=f"{longer}: the interval of {name} closes",
        curves=tuple(dict.fromkeys(c.label for c, _, _, _ in few)),
    )
