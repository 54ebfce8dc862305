"""A quoted quantile is based on too few requests.

**Means.** Fewer than 20 requests that count as independent lie above it. Its point is probably too low, and
its interval says little more than that it is above the quantile before it.

**Needs.** A quantile above the median that was given a value, with fewer than 20 independent requests above
it over all trials.

**Ruled out by.** Nothing: it is a count.

**Thresholds.** 20: with fewer, p99 of short trials of a busy queue is 20 % too low, and its interval covers
the true value two times in three.

**Do.** Measure longer, or quote a lower quantile; tables mark such figures.

**Confirm.** Run a trial as long as the advice says: the interval closes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe.levels import Level, levels
from loadlens.estimate.within_trial import FIRM_ABOVE
from loadlens.model.facts import Facts
from loadlens.model.finding import Figure, Grade
from loadlens.present import numbers

ID = "quantile.insufficient"
TITLE = "a quantile stands on too few requests"
EXPLAINS: tuple[str, ...] = ()

IMPACT = 0.01


@dataclass(frozen=True, slots=True)
class Tail:
    """A quantile above the median, and the independent requests above it."""

    level: Level[object]
    name: str
    figure: Figure
    above: float


@dataclass(frozen=True, slots=True)
class Thin:
    """The quantiles with too few requests above them."""

    tails: list[Tail]
    of: int  # quantiles above the median, with enough requests or not


def observe(facts: Facts) -> Sequence[Thin] | Lacking | Nothing:
    """Return the quantiles above the median that have too few requests above them."""
    tails = [
        Tail(level, f"p{quantile.level * 100:g}", quantile.figure, quantile.above)
        for level in levels(facts, lambda step: step.quality.quantiles)
        for quantile in level.detail
        if quantile.level > 0.5 and quantile.above is not None
    ]
    if not tails:
        return Lacking("no quantile above the median has a value")
    thin = [tail for tail in tails if tail.above < FIRM_ABOVE]
    if thin:
        return [Thin(thin, len(tails))]
    least = min(tails, key=lambda tail: tail.above)
    lie_above = f"independent requests lie above {least.name} ({least.level.step.label})"
    return Nothing(f"at least {least.above:.0f} {lie_above}")


def claim(_: Facts, thin: Thin) -> Claim:
    """Name the quantile with the fewest requests above it."""
    worst = min(thin.tails, key=lambda tail: tail.above)
    name, above, step = worst.name, worst.above, worst.level.step
    few = f"{len(thin.tails)} of {thin.of} quantiles"
    signal = grading.stated(
        "quantile.above",
        True,
        text=f"{few} have fewer than {FIRM_ABOVE:g} independent requests above; "
        f"{name} of {step.label} has {above:.1f}",
        chip=f"{above:.1f} requests above {name}",
    )

    def words(_: Grade) -> Words:
        times = math.ceil(FIRM_ABOVE / above) if above > 0 else math.inf
        longer = f"{times} times as long" if times <= 1000 else "much longer"
        return Words(
            statement=f"{few} stand on fewer than {FIRM_ABOVE:g} independent requests",
            explanation=f"{name} of {step.label} is {numbers.shown(worst.figure)}, with {above:.1f} above "
            "it.",
            advice=f"Measure {step.label} {longer}, or quote a lower quantile than {name}.",
            confirm=f"{longer}: the interval of {name} closes",
            impact=IMPACT,
        )

    curves = tuple(dict.fromkeys(tail.level.curve.label for tail in thin.tails))
    return on_curve(worst.level.curve, [signal], [], words, where=worst.level.label, curves=curves)


assess = assessing(ID, TITLE, observe, claim)
