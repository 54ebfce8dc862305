"""Throughput, response time and concurrency cannot all be true.

**Means.** With means, what is in flight is throughput times time: an identity. Figures that break it were
lost, counted twice, or timed from the wrong moment, and means of such a trial must not be quoted.

**Needs.** The ratio of throughput times mean time to what was in flight is off 1 by more than 2 % and by more
than requests cut off at the edges can explain, in half of the trials or more. Of a program of others, which
tells neither: by more than 5 % of its users, and of what its longest request can explain; not where more
than 1 % of its requests failed, which its rate counts and its mean does not.

**Ruled out by.** Pauses of users that nobody told of: then N / X - R is one time at every level.

**Thresholds.** 2 %: our own integrals agree to 1 %. 5 %: programs round, and connect within their time.

**Do.** Take the mean from the identity, users over throughput less think time; find out what the program's
mean is the mean of.

**Confirm.** The same load by our own engine, which keeps the integral of what is in flight.
"""

from __future__ import annotations

import math
from statistics import fmean, median

from loadlens.diagnose import grading
from loadlens.estimate.laws import three_ways
from loadlens.measure.thresholds import FEW_FAIL
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, NotAssessed
from loadlens.present import numbers

ID = "little.violation"
TITLE = "throughput, time and concurrency disagree"
EXPLAINS: tuple[str, ...] = ()

TOLD_TOLERANCE = 0.05
SAME_PAUSE = 0.10  # of the longest: beyond, what is missing is no pause of the users


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every level: our own by its integral, those of others by their users."""
    steps = [(curve, step) for curve in facts.curves for step in curve.steps]
    own = [(curve, step) for curve, step in steps if not step.driver and step.little != "unknown"]
    told = [(curve, step, ratio) for curve, step in steps if (ratio := _told_ratio(curve, step)) is not None]
    if not own and not told:
        return NotAssessed(ID, TITLE, "trials are too short: requests at their edges explain any ratio")
    found = [f for curve, step in own if (f := _of_own(curve, step)) is not None]
    found += [f for curve, step, ratio in told if (f := _of_others(curve, step, ratio)) is not None]
    if found:
        return grading.strongest(found)
    return Absent(ID, TITLE, _silence(own, told))


def _of_own(curve: Curve, step: Step) -> Finding | None:
    ratios = [one.ratio for one in step.quality.little]
    if step.little != "broken" or not ratios:
        return None
    worst = max(ratios, key=lambda ratio: abs(ratio - 1))
    signals = [
        grading.stated(
            "little.ratio",
            True,
            text=f"throughput times mean time is {worst:.3f} of what was in flight",
            chip=f"X R / L = {worst:.3f}",
        )
    ]
    return _finding(
        curve, step, worst, signals, (), "The engine's own integral of what was in flight disagrees."
    )


def _of_others(curve: Curve, step: Step, ratio: float) -> Finding | None:
    bound = _bound(step)
    signals = [
        grading.stated(
            "little.ratio",
            abs(ratio - 1) > bound,
            text=f"throughput times mean time is {ratio:.2f} of {step.load:g} users "
            f"(limit {bound:.2f} off 1)",
            chip=f"X R / N = {ratio:.2f}",
        )
    ]
    rivals = (_pauses(curve, ratio),)
    mean, p50 = step.classes[0].service.mean, step.classes[0].service.p50
    assert isinstance(mean, Estimate)  # there would be no ratio
    readings = three_ways(
        _rate(step),
        mean.point,
        users=step.load,
        think_s=curve.think_s,
        median_s=p50.point if isinstance(p50, Estimate) else None,
        edge_bound=bound,
    ).readings
    said = readings[0].text if readings else ""
    return _finding(curve, step, ratio, signals, rivals, f"{said[:1].upper()}{said[1:]}.")


def _finding(
    curve: Curve,
    step: Step,
    ratio: float,
    signals: list[grading.Signal],
    rivals: tuple[Counter, ...],
    explanation: str,
) -> Finding | None:
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(curve))
    if grade is None:
        return None
    of_what = f"{step.load:g} users" if step.driver else "what was in flight"
    rate = _rate(step)
    true_s = step.load / rate - curve.think_s if curve.is_closed and rate > 0 else None
    advice = "Quote no mean of this level."
    if true_s is not None and true_s > 0:
        advice = f"Take {numbers.with_unit(true_s, 's')} as the mean: {step.load:g} users over throughput."
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, abs(ratio - 1)),
        scope=f"{curve.label} · {step.label}",
        statement=grading.statement(
            f"Throughput times mean time is {ratio:.2f} times {of_what}; 1 is possible"
        ),
        explanation=explanation,
        evidence=tuple(signal.evidence for signal in signals),
        counter=rivals,
        advice=advice,
        confirm="the same load by our own engine, which keeps the integral of what is in flight",
        curves=(curve.label,),
    )


def _rate(step: Step) -> float:
    return fmean(step.completed_trials) if step.completed_trials else math.nan


def _told_ratio(curve: Curve, step: Step) -> float | None:
    """X (R + Z) / N from what a program of others tells; none where it tells too little."""
    if not step.driver or not curve.is_closed or len(step.classes) != 1 or step.load <= 0:
        return None
    if isinstance(step.failed, Estimate) and step.failed.point > FEW_FAIL:
        return None  # they count in the rate, and their time is in no mean
    mean, rate = step.classes[0].service.mean, _rate(step)
    if not isinstance(mean, Estimate) or not math.isfinite(rate):
        return None
    return rate * (mean.point + curve.think_s) / step.load


def _bound(step: Step) -> float:
    longest, seconds = step.quality.longest_told_s, step.quality.seconds
    edge = 2 * longest / seconds if longest is not None and seconds else 0.0
    return max(TOLD_TOLERANCE, edge)


def _pauses(curve: Curve, ratio: float) -> Counter:
    """Think time that nobody told of is one time at every level."""
    name = "pauses of users"
    if ratio > 1:
        return grading.rival(name, "pauses would make the ratio smaller than 1", True)
    missing = [
        step.load / _rate(step) - mean.point
        for step in curve.steps
        if _told_ratio(curve, step) is not None
        and isinstance(mean := step.classes[0].service.mean, Estimate)
        and _rate(step) > 0
    ]
    if len(missing) < 2:
        return grading.rival(name, "one level cannot tell a pause from what is missing", None)
    typical = median(missing)
    is_one = max(abs(one - typical) for one in missing) <= SAME_PAUSE * max(missing)
    least, most = (numbers.with_unit(end, "s") for end in (min(missing), max(missing)))
    text = f"{least} to {most} a request are missing"
    return grading.rival(name, text, not is_one)


def _silence(own: list[tuple[Curve, Step]], told: list[tuple[Curve, Step, float]]) -> str:
    parts = []
    ratios = [one.ratio for _, step in own for one in step.quality.little]
    if ratios:
        furthest = max(ratios, key=lambda ratio: abs(ratio - 1))
        parts.append(f"X R / L lies furthest off 1 with {furthest:.3f}, in {len(own)} levels")
    elif own:
        parts.append(f"it holds in {len(own)} levels")
    if told:
        curve, step, ratio = max(told, key=lambda one: abs(one[2] - 1))
        text = f"X R / N of {step.driver} is {ratio:.2f} (limit {_bound(step):.2f} off 1)"
        pause = _pauses(curve, ratio)
        parts.append(f"{text}; {pause.text}" if pause.ruled_out is False else text)
    return "; ".join(parts)
