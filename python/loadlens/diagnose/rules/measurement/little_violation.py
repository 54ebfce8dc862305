"""Throughput, response time and concurrency cannot all be true.

**Means.** The mean number of requests in flight is throughput times mean time: an identity (Little's law). If
figures break it, requests were lost, counted twice, or timed from the wrong moment, and means of such a trial
must not be quoted.

**Needs.** The ratio of throughput times mean time to the number in flight differs from 1 by more than 2 %,
and by more than requests cut off at the edges can explain, in half of the trials or more. An external tool
reports neither: for it the ratio must differ from 1 by more than 5 % of its users and by more than its
longest request can explain; the rule is silent if more than 1 % of its requests failed, because they count in
its rate and not in its mean.

**Ruled out by.** Think time of the users that was not reported: then N / X - R is the same time at every
level.

**Thresholds.** 2 %: our own integrals agree to 1 %. 5 %: tools round, and some connect within their time.

**Do.** Take the mean from the identity, users over throughput less think time; find out what the tool's mean
is the mean of.

**Confirm.** Run the same load with our own engine, which keeps the integral of the number in flight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.estimate.laws import loop_reading
from loadlens.measure.thresholds import FEW_FAIL
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.present.numbers import percent, with_unit

ID = "little.violation"
TITLE = "throughput, time and concurrency disagree"
EXPLAINS: tuple[str, ...] = ()

TOOL_TOLERANCE = 0.05
SAME_PAUSE = 0.10  # of the longest: beyond, what is missing is no pause of the users


@dataclass(frozen=True, slots=True)
class Product:
    """Throughput times mean time at one level, over the number in flight."""

    curve: Curve
    step: Step
    ratio: float | None  # none: our own engine recorded none


def observe(facts: Facts) -> Sequence[Product] | Lacking:
    """Return our own levels, by the integral of the number in flight, then those of a tool, by its users."""
    levels = [(curve, step) for curve in facts.curves for step in curve.steps]
    own = [
        Product(curve, step, max((t.ratio for t in step.quality.little), key=_off, default=None))
        for curve, step in levels
        if not step.driver and step.little != "unknown"
    ]
    tools = [Product(curve, step, _tool_ratio(curve, step)) for curve, step in levels]
    products = own + [product for product in tools if product.ratio is not None]
    return products or Lacking("trials are too short: requests at their edges explain any ratio")


def claim(_: Facts, product: Product) -> Claim | Nothing:
    """Claim that the three figures of a level contradict each other."""
    curve, step, ratio, bound = product.curve, product.step, product.ratio, _bound(product.step)
    if ratio is None:
        return Nothing("no trial has a ratio")
    in_flight = f"{step.load:g} users" if step.driver else "what was in flight"
    is_off, text = step.little == "broken", f"throughput times mean time is {ratio:.3f} of {in_flight}"
    chip = f"X R / L = {ratio:.3f}"
    if step.driver:
        is_off, chip = _off(ratio) > bound, f"X R / N = {ratio:.2f}"
        text = f"throughput times mean time is {ratio:.2f} of {in_flight} (limit {bound:.2f} off 1)"

    def words(_: Grade) -> Words:
        rate, advice = _rate(step), "Quote no mean of this level."
        true_s = step.load / rate - curve.think_s if curve.is_closed and rate > 0 else 0.0
        if true_s > 0:
            advice = f"Take {with_unit(true_s, 's')} as the mean: {step.load:g} users over throughput."
        return Words(
            statement=f"Throughput times mean time is {ratio:.2f} times {in_flight}; 1 is possible",
            explanation=_reading(curve, step, bound)
            if step.driver
            else "The engine's own integral of what was in flight disagrees.",
            advice=advice,
            confirm="the same load by our own engine, which keeps the integral of what is in flight",
            impact=_off(ratio),
        )

    signal = grading.stated("little.ratio", is_off, text=text, chip=chip)
    rivals = [_think_time_rival(curve, ratio)] if step.driver else []
    return on_curve(curve, [signal], rivals, words, where=f"{curve.label} · {step.label}")


def _off(ratio: float) -> float:
    return abs(ratio - 1)


def _rate(step: Step) -> float:
    return fmean(step.completed_trials) if step.completed_trials else math.nan


def _bound(step: Step) -> float:
    longest, seconds = step.quality.longest_reported_s, step.quality.seconds
    edge = 2 * longest / seconds if longest is not None and seconds else 0.0
    return max(TOOL_TOLERANCE, edge)


def _tool_ratio(curve: Curve, step: Step) -> float | None:
    """Return X (R + Z) / N from the figures of an external tool; none where it reports too little."""
    if not step.driver or not curve.is_closed or len(step.classes) != 1 or step.load <= 0:
        return None
    if isinstance(step.failed, Estimate) and step.failed.point > FEW_FAIL:
        return None  # they count in the rate, and their time is in no mean
    mean, rate = step.classes[0].service.mean, _rate(step)
    if not isinstance(mean, Estimate) or not math.isfinite(rate):
        return None
    return rate * (mean.point + curve.think_s) / step.load


def _reading(curve: Curve, step: Step, bound: float) -> str:
    """Return a sentence about the figures of an external tool that do not agree."""
    service = step.classes[0].service
    assert isinstance(service.mean, Estimate)  # otherwise there would be no ratio
    text = loop_reading(
        _rate(step),
        service.mean.point,
        users=step.load,
        think_s=curve.think_s,
        median_s=service.p50.point if isinstance(service.p50, Estimate) else None,
        edge_bound=bound,
    )
    return f"{text[:1].upper()}{text[1:]}."


def _think_time_rival(curve: Curve, ratio: float) -> Counter:
    """Weigh think time that was not reported: it is the same time at every level."""
    name = "pauses of users"
    if ratio > 1:
        return grading.rival(name, "pauses would make the ratio smaller than 1", True)
    missing = [
        step.load / _rate(step) - mean.point
        for step in curve.steps
        if _tool_ratio(curve, step) is not None
        and isinstance(mean := step.classes[0].service.mean, Estimate)
        and _rate(step) > 0
    ]
    if len(missing) < 2:
        return grading.rival(name, "one level cannot separate a pause from what is missing", None)
    typical = median(missing)
    is_same = max(abs(time - typical) for time in missing) <= SAME_PAUSE * max(missing)
    text = f"{with_unit(min(missing), 's')} to {with_unit(max(missing), 's')} per request are missing"
    return grading.rival(name, text, not is_same)


def _silence(_: Facts, observed: Sequence[Product]) -> str:
    own = [product for product in observed if not product.step.driver]
    furthest = max((p.ratio for p in own if p.ratio is not None), key=_off, default=None)
    parts = []
    if furthest is not None:
        bound = max((trial.bound for product in own for trial in product.step.quality.little), default=0.0)
        parts.append(
            f"off by {percent(_off(furthest))} at most, within what requests cut off at the edges allow "
            f"(up to {percent(bound)}), in {len(own)} levels"
        )
    elif own:
        parts.append(f"it holds in {len(own)} levels")
    tools = [(p.curve, p.step, p.ratio) for p in observed if p.step.driver and p.ratio is not None]
    if tools:
        curve, step, ratio = max(tools, key=lambda tool: _off(tool[2]))
        text = f"X R / N of {step.driver} is {ratio:.2f} (limit {_bound(step):.2f} off 1)"
        pause = _think_time_rival(curve, ratio)
        parts.append(f"{text}; {pause.text}" if pause.ruled_out is False else text)
    return "; ".join(parts)


assess = assessing(ID, TITLE, observe, claim, choose=strongest, silence=_silence)
