"""A quoted quantile lies where one kind of request ends and another begins.

**Means.** A share of the requests takes much longer, and the quantile falls just between the two kinds: the
next run may give either value. Ten per cent of slow requests make p90 such a number.

**Needs.** The quantile's interval spans more than a factor of 2, while its neighbours on both sides are each
known within a factor of 1.2 and lie more than a factor of 2 apart.

**Ruled out by.** Neighbours that are as uncertain as the quantile itself: then the cause is few requests, not
a boundary. Runs that differ by more than 20 % from each other.

**Thresholds.** Neighbours lie 2 points to either side, or half of the share above the quantile: on an
exponential tail they are 1.2 to 1.3 apart, on a lognormal one of sigma 1.4 below 2.

**Do.** Quote the neighbours and the share of slow requests instead of the quantile.

**Confirm.** Send more requests: the neighbours stay, the quantile jumps between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe.levels import Level, levels
from loadlens.model.facts import Facts, Step
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.model.quality import QuantileWatch
from loadlens.present import numbers
from loadlens.present.numbers import percent

ID = "quantile.boundary"
TITLE = "a quantile lies between two kinds of requests"
EXPLAINS: tuple[str, ...] = ()

WIDE = 2.0
KNOWN = 1.2
RUNS_ALIKE = 0.2
IMPACT = 0.03


def observe(facts: Facts) -> Sequence[Level[QuantileWatch]] | Lacking:
    """Return every quoted quantile of every level."""
    return [
        Level(level.curve, level.step, quantile)
        for level in levels(facts, lambda step: step.quality.quantiles)
        for quantile in level.detail
    ] or Lacking("no quantile of a response time has an interval")


def claim(_: Facts, level: Level[QuantileWatch]) -> Claim | Nothing:
    """Compare a quantile that is known badly with its neighbours."""
    quantile = level.detail
    lower, upper = quantile.lower, quantile.upper
    if _is_narrow(quantile) or lower is None or upper is None:
        return Nothing(level.label)
    name = f"p{quantile.level * 100:g}"
    below, above = (f"p{(quantile.level + side * quantile.apart) * 100:g}" for side in (-1, 1))
    apart = f"{above} is {upper.point / lower.point:.3g} times {below}"
    signals = [
        grading.stated(
            "quantile.jump", upper.point / lower.point > WIDE, text=f"{apart} (limit {WIDE:g})", chip=apart
        ),
        grading.stated(
            "quantile.neighbours",
            _within(lower, KNOWN) and _within(upper, KNOWN),
            text=f"{below} is {numbers.shown(lower)}, {above} is {numbers.shown(upper)} "
            f"(each within a factor of {KNOWN:g})",
        ),
    ]

    def words(_: Grade) -> Words:
        low, high = numbers.with_unit(lower.point, "s"), numbers.with_unit(upper.point, "s")
        return Words(
            statement=f"{name} lies between two kinds of requests: {low} below it, {high} above",
            explanation=f"It was {numbers.shown(quantile.figure)}; another run may give either.",
            advice=f"Quote {below} ({low}) and {above} ({high}) in place of {name}.",
            confirm=f"four times the requests: {below} and {above} stay, {name} jumps between them",
            impact=IMPACT,
        )

    return on_curve(level.curve, signals, [_runs(level.step)], words, where=level.label)


def _is_narrow(quantile: QuantileWatch) -> bool:
    return isinstance(quantile.figure, Estimate) and _within(quantile.figure, WIDE)


def _within(figure: Estimate, factor: float) -> bool:
    return figure.low is not None and figure.high is not None and figure.high <= factor * figure.low


def _runs(step: Step) -> Counter:
    rival, varies = grading.rival("runs that differ", "fewer than three trials", None), step.quality.variation
    if varies is None:
        return rival
    text = f"runs differ by {percent(varies.between)} (limit {percent(RUNS_ALIKE)})"
    return replace(rival, text=text, ruled_out=varies.between < RUNS_ALIKE)


def _silence(_: Facts, observed: Sequence[Level[QuantileWatch]]) -> str:
    narrow = f"{sum(_is_narrow(level.detail) for level in observed)} of {len(observed)} quantiles"
    return f"{narrow} are known within a factor of {WIDE:g}, the others have no two levels next to them"


assess = assessing(ID, TITLE, observe, claim, choose=strongest, silence=_silence)
