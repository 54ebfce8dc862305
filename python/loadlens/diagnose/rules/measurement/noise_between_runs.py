"""Runs of the same case differ by more than what varies within a run.

**Means.** Each run has its own level: memory was laid out differently, a thread ran on another core, or the
machine did other work. A longer run measures that level more precisely, but only more runs measure the case.

**Needs.** Three or more trials of one level. The standard deviation of their mean response times beyond what
varies within a trial is above 5 % with its whole confidence interval, and is more than 80 % of all variance.

**Ruled out by.** A trend over the order in which the trials ran (p of 5 % or less): that is a drift. One
trial that stands apart: without it, the others agree within 5 %.

**Thresholds.** 5 %: a common bound of what matters in practice. With three trials the interval is so wide
that their spread must reach about 10 %.

**Do.** Run as many trials as the wanted interval needs, pin cores, fix the CPU frequency, and restart the
service in the same way.

**Confirm.** Run pairs of equal runs: the standard deviation of the log of their ratio is that of a run times
the square root of 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe.levels import Level, levels
from loadlens.model.facts import Facts
from loadlens.model.finding import Z_95, Grade
from loadlens.model.quality import Variation
from loadlens.present.numbers import percent

ID = "noise.between-runs"
TITLE = "runs of the same case differ"
EXPLAINS: tuple[str, ...] = ()

LEAST_BETWEEN = 0.05
LEAST_SHARE = 0.8
DRIFT_P = 0.05
FEWEST_FOR_ORDER = 5  # of four the clearest order has p = 2 / 4! = 0.083
WANTED = 0.05  # half-width of the interval that the advice is for
MOST_IMPACT = 0.04


def observe(facts: Facts) -> Sequence[Level[Variation]] | Lacking:
    """Return the levels with three trials."""
    return levels(facts, lambda step: step.quality.variation) or Lacking("needs three trials of a level")


def claim(_: Facts, level: Level[Variation]) -> Claim:
    """Compare the spread between runs with the noise within a run."""
    varies = level.detail
    between, share = percent(varies.between), percent(varies.share_between)
    signals = [
        grading.stated(
            "runs.between",
            varies.between_low > LEAST_BETWEEN,
            text=f"standard deviation between runs {between} ({_range(varies)}), "
            f"limit {percent(LEAST_BETWEEN)}",
            chip=f"runs differ by {between}",
        ),
        grading.stated(
            "runs.share",
            varies.share_between > LEAST_SHARE,
            text=f"{share} of the variance lies between runs (limit {percent(LEAST_SHARE)})",
            chip=f"{share} between runs",
        ),
    ]
    order = grading.rival("drift over the runs", f"{varies.trials} trials show no order", None)
    if varies.trials >= FEWEST_FOR_ORDER:
        text = f"trend over their order: p = {varies.order_p:.2g}"
        order = grading.rival(order.rival, text, varies.order_p > DRIFT_P)
    apart = grading.rival(
        "one trial apart",
        f"without the furthest they differ by {percent(varies.without_one)}",
        varies.without_one > LEAST_BETWEEN,
    )

    def words(_: Grade) -> Words:
        needed = max(varies.trials + 1, math.ceil((Z_95 * varies.between / WANTED) ** 2))
        return Words(
            statement=f"Mean response times of {varies.trials} equal runs differ by {between}",
            explanation=f"Within a run the mean is known to {percent(varies.within)}: longer runs would not "
            "help.",
            advice=f"Take {needed} trials for an interval of {percent(WANTED)} either way; pin cores, "
            "restart alike.",
            confirm=f"equal runs in pairs: log ratios spread by {percent(varies.between * math.sqrt(2))}",
            impact=min(MOST_IMPACT, varies.between),
        )

    return on_curve(level.curve, signals, [order, apart], words, where=level.label)


def _range(varies: Variation) -> str:
    return f"{percent(varies.between_low)}\N{EN DASH}{percent(varies.between_high)}"


def _silence(_: Facts, observed: Sequence[Level[Variation]]) -> str:
    widest = max(observed, key=lambda level: level.detail.between)
    varies = widest.detail
    differ = f"{varies.trials} trials differ by {percent(varies.between)} ({_range(varies)})"
    return f"{widest.step.label}: {differ} beyond their own noise"


assess = assessing(ID, TITLE, observe, claim, choose=strongest, silence=_silence)
