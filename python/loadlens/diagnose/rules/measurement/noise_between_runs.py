"""Runs of the same case differ by more than what happens within a run.

**Means.** Where memory was laid out, which core a thread came to, what else the machine did: each run has its
own level. A longer run tells that level better and no more; only more runs tell the case.

**Needs.** Three trials or more of one level. The standard deviation of their mean response times beyond
what varies within a trial is above 5 % with its whole interval of confidence, and is more than 80 % of all
variance.

**Ruled out by.** A trend over the order in which the trials ran (p of 5 % or less): that is a drift. One
trial that stands apart: without it, the rest agree within 5 %.

**Thresholds.** 5 %: a common bound of what matters in practice. With three trials the interval is so wide
that their spread must reach some 10 %.

**Do.** More trials, as many as the wanted interval needs; pin cores, fix the frequency, restart alike.

**Confirm.** Pairs of equal runs: the standard deviation of the log of their ratio is that of a run, times the
root of 2.
"""

from __future__ import annotations

import math

from loadlens.diagnose import grading
from loadlens.estimate.interval import Interval
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Finding, NotAssessed
from loadlens.model.quality import Variation
from loadlens.present import numbers

ID = "noise.between-runs"
TITLE = "runs of the same case differ"
EXPLAINS: tuple[str, ...] = ()

LEAST_BETWEEN = 0.05
LEAST_SHARE = 0.8
DRIFT_P = 0.05
FEWEST_FOR_ORDER = 5  # of four the clearest order has p = 2 / 4! = 0.083
WANTED = 0.05  # half-width of the interval that the advice is for
NORMAL_95 = 1.96
MOST_IMPACT = 0.04


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every level with three trials."""
    known = [
        (curve, step, varies)
        for curve in facts.curves
        for step in curve.steps
        if (varies := step.quality.variation) is not None
    ]
    if not known:
        return NotAssessed(ID, TITLE, "needs three trials of a level")
    found = [f for curve, step, varies in known if (f := _finding(curve, step, varies)) is not None]
    if found:
        return grading.strongest(found)
    _, step, widest = max(known, key=lambda one: one[2].between)
    return Absent(
        ID,
        TITLE,
        f"{step.label}: {widest.trials} trials differ by {numbers.percent(widest.between)} "
        f"({numbers.percent(widest.between_low)}\N{EN DASH}{numbers.percent(widest.between_high)}) "
        "beyond their own noise",
    )


def _finding(curve: Curve, step: Step, varies: Variation) -> Finding | None:
    between = Interval(
        varies.between, varies.between_low, varies.between_high, float(varies.trials), "chi-square of trials"
    )
    signals = [
        grading.stated(
            "runs.between",
            varies.between_low > LEAST_BETWEEN,
            text=f"standard deviation between runs {numbers.percent(between.point)} "
            f"({numbers.percent(varies.between_low)}\N{EN DASH}{numbers.percent(varies.between_high)}), "
            f"limit {numbers.percent(LEAST_BETWEEN)}",
            chip=f"runs differ by {numbers.percent(between.point)}",
        ),
        grading.stated(
            "runs.share",
            varies.share_between > LEAST_SHARE,
            text=f"{numbers.percent(varies.share_between)} of the variance lies between runs "
            f"(limit {numbers.percent(LEAST_SHARE)})",
            chip=f"{numbers.percent(varies.share_between)} between runs",
        ),
    ]
    can_order = varies.trials >= FEWEST_FOR_ORDER
    rivals = (
        grading.rival(
            "drift over the runs",
            f"trend over their order: p = {varies.order_p:.2g}"
            if can_order
            else f"{varies.trials} trials show no order",
            varies.order_p > DRIFT_P if can_order else None,
        ),
        grading.rival(
            "one trial apart",
            f"without the furthest they differ by {numbers.percent(varies.without_one)}",
            varies.without_one > LEAST_BETWEEN,
        ),
    )
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(curve))
    if grade is None:
        return None
    needed = max(varies.trials + 1, math.ceil((NORMAL_95 * varies.between / WANTED) ** 2))
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(MOST_IMPACT, varies.between),
        scope=f"{curve.label} · {step.label}",
        statement=grading.statement(
            f"Mean response times of {varies.trials} equal runs differ by {numbers.percent(varies.between)}"
        ),
        explanation=f"Within a run the mean is known to {numbers.percent(varies.within)}: longer runs "
        "would not help.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=rivals,
        advice=f"Take {needed} trials for an interval of {numbers.percent(WANTED)} either way; pin cores, "
        "restart alike.",
        confirm=f"equal runs in pairs: log ratios spread by {numbers.percent(varies.between * math.sqrt(2))}",
        curves=(curve.label,),
    )
