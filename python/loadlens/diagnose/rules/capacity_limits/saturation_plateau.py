"""Throughput stays the same; more users only wait longer.

**Means.** The service has reached its capacity. In a closed loop the rest is arithmetic: beyond the knee
N* = X (R1 + Z) the mean response time is N / X - Z, whatever the service does.

**Needs.** The last doubling of users brought less than 10 % more throughput; the last level lies at least
1.8 times beyond the knee; over the last two levels each further user adds 1 / X to the mean response time,
within 10 % of what the throughput of both levels says.

**Ruled out by.** The generator being the limit, unless the service is out of cores; a load that never reached
the knee (then the rule is silent and says how far to go).

**Thresholds.** 10 % per doubling is four standard deviations of a difference of two 3-trial means at 3 %
noise. 1.8: a curve bends over about a factor of two around its knee. The knee is known to 2.5 % at best, as
levels within 5 % of the best count as one plateau. Where samples show that more than half of the threads at
work wait at one line, beyond chance, the statement names it: what they wait for is not known. Without a level
of one user the CPU time of a request stands for its time alone, a lower bound: then the finding is at most
probable.

**Do.** Run at or below the knee, cap what is in flight there, refuse the rest early.

**Confirm.** Half, once and twice the knee: equal throughput beyond it, and R = N / X - Z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.capacity import most_of
from loadlens.diagnose.driver import Claim, Lacking, Words, all_seen, assessing, naming_all, on_curve
from loadlens.diagnose.observe import waits
from loadlens.diagnose.observe.curve_signals import gain_signal
from loadlens.estimate.interval import Insufficient
from loadlens.estimate.saturation import (
    BEYOND_KNEE,
    GAIN_PER_DOUBLING,
    ON_PLATEAU,
    knee_interval,
)
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of, cores_of, waiting_share
from loadlens.measure.thresholds import FEW_FAIL, SATURATED
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Evidence, Grade
from loadlens.present import numbers, words
from loadlens.present.numbers import percent, with_unit

ID = "saturation.plateau"
TITLE = "throughput has reached its limit"
EXPLAINS: tuple[str, ...] = ()

SLOPE_TOLERANCE = 0.10
GRAIN = ON_PLATEAU / 2  # levels that differ by less are one plateau: its height is known no better


@dataclass(frozen=True, slots=True)
class ClosedCurve:
    """A load curve and the capacity that it shows."""

    curve: Curve
    capacity: Capacity


def observe(facts: Facts) -> Sequence[ClosedCurve] | Lacking:
    """Return every closed curve, the longest first."""
    longest = sorted(facts.curves, key=lambda curve: -len(curve.steps))
    looked = [(curve, capacity_of(curve)) for curve in longest]
    return all_seen(
        capacity.reason if isinstance(capacity, Insufficient) else ClosedCurve(curve, capacity)
        for curve, capacity in looked
    )


def claim(facts: Facts, closed: ClosedCurve) -> Claim:
    """Hold the last gain, the knee and the growth of the response time against the generator's limits."""
    curve, capacity = closed.curve, closed.capacity
    saturation, top = capacity.saturation, capacity.top
    gain, knee = saturation.gain_per_doubling, saturation.knee
    is_flat = gain < GAIN_PER_DOUBLING and saturation.verdict != "underdriven"
    signals = [
        gain_signal("throughput.gain", gain, is_flat),
        _knee(curve, capacity),
        _slope(curve, capacity),
    ]
    rivals = [
        _generator(curve, top),
        grading.shared_cores_rival(curve, top, facts.cores),
        grading.interference_rival(top, facts.cores),
    ]

    def texts(_: Grade) -> Words:
        most_rate, waiting = most_of(curve, capacity), waiting_share(curve, capacity)
        rate, is_known = most_rate.words, isinstance(most_rate.figure, Estimate)
        stops, stays, rest = f"Throughput stops at {rate}", f"stays at {rate}", f": {rate} stays"
        if not is_known:
            stops, stays, rest = "Throughput stops growing", "grows no more", ""
        crowd = top.crowd
        statement = f"{stops}; beyond {saturation.plateau_from:g} users all further ones "
        statement += "wait"
        if knee is not None:
            statement = f"{stops} from {words.users(knee)} on; further users only wait"
        if crowd is not None:
            statement = f"{stops}: {waits.who_waits(crowd)} wait at {crowd.line}"
        explanation = f"At {top.load:g} users {percent(waiting)} of the response time is waiting."
        first = next((step for step in curve.steps if step.load >= saturation.plateau_from), top)
        if first is not top:
            explanation = (
                f"From {first.load:g} to {top.load:g} users throughput {stays} while the mean "
                f"response time goes from {numbers.short(first.response.mean)} to "
                f"{numbers.short(top.response.mean)}."
            )
        most = max(1, round(saturation.plateau_from if knee is None else knee))
        users = max(1, round(knee or saturation.plateau_from))
        return Words(
            statement=statement,
            explanation=explanation,
            advice=f"Keep at most {most} in flight at once and refuse the rest early{rest}.",
            confirm=f"users {max(1, users // 2)}, {users} and {2 * users}: throughput equal beyond the knee, "
            "R = N / X - Z",
            impact=waiting,
            unknown=()
            if capacity.alone_is_measured
            else ("the response time of one user alone was not measured",),
        )

    return on_curve(curve, signals, rivals, texts)


def _knee(curve: Curve, capacity: Capacity) -> grading.Signal:
    """Require that the last level lies well beyond the knee; the value is the knee with its interval."""
    saturation = capacity.saturation
    if saturation.knee is None or saturation.beyond_knee is None:
        return grading.stated("load.knee", None, text=_beyond(capacity))
    low, high = _knee_ends(curve, capacity)
    passed = saturation.beyond_knee >= BEYOND_KNEE
    chip = f"knee at {words.users(saturation.knee)}"
    evidence = Evidence("load.knee", _beyond(capacity), chip, saturation.knee, low, high, None, passed)
    return grading.Signal(evidence, passed and capacity.alone_is_measured)


def _knee_ends(curve: Curve, capacity: Capacity) -> tuple[float | None, float | None]:
    """Return the knee's ends, from the errors of throughput and of one user alone.

    A CPU time in place of the time of one user alone is a lower bound.
    """
    saturation, alone, top = capacity.saturation, curve.steps[0].response.mean, capacity.top.throughput
    if not capacity.alone_is_measured or not isinstance(alone, Estimate) or not isinstance(top, Estimate):
        return saturation.knee, None
    whole = figures.known(top).scaled_to(saturation.capacity)
    knee = knee_interval(whole, figures.known(alone), curve.think_s)
    # There is at least one user, in the truth as in the estimate.
    return (
        None if knee.low is None else max(1.0, knee.low * (1 - GRAIN)),
        None if knee.high is None else max(1.0, knee.high * (1 + GRAIN)),
    )


def _generator(curve: Curve, top: Step) -> Counter:
    """Weigh a late generator; if the service is out of cores, the generator is late because it lacks them."""
    generator = grading.generator_rival(top)
    is_full = bool(top.processes) and top.server_cores >= SATURATED * cores_of(curve, top)
    return grading.left_open(generator) if is_full else generator


def _slope(curve: Curve, capacity: Capacity) -> grading.Signal:
    """Require that each further user adds 1 / X to the mean response time: R = N / X - Z at both levels."""
    begin = capacity.saturation.plateau_from
    if capacity.saturation.knee is not None:
        begin = min(begin, capacity.saturation.knee)
    beyond = [s for s in curve.steps if begin <= s.load <= capacity.top.load]
    pairs = [
        (s.load, s.response.mean.point, sum(s.throughput_trials) / len(s.throughput_trials))
        for s in beyond
        if isinstance(s.response.mean, Estimate) and sum(s.throughput_trials) > 0
    ]
    lost = max((s.failed.point for s in beyond if isinstance(s.failed, Estimate)), default=0.0)
    if lost > FEW_FAIL:
        text = f"{percent(lost)} fail: who fails leaves early, and the response times of the rest say less"
        return grading.stated("response.slope", None, text=text)
    if len(pairs) < 2:
        return grading.stated(
            "response.slope", None, text="fewer than two levels beyond the knee with a mean"
        )
    (low_n, low_r, low_x), (high_n, high_r, high_x) = pairs[-2], pairs[-1]
    # Throughput that still grew a little between the levels is no contradiction: it shortens times as well.
    expected = (high_n / high_x - low_n / low_x) / (high_n - low_n)
    slope = (high_r - low_r) / (high_n - low_n)
    off = slope / expected - 1 if expected > 0 else math.inf
    text = (
        f"each further user adds {with_unit(slope, 's')}, 1 / throughput is "
        f"{with_unit(expected, 's')} ({numbers.signed_percent(off)}, "
        f"limit {percent(SLOPE_TOLERANCE)})"
    )
    # A mean over few, long requests scatters by more than the tolerance: then the slope decides nothing.
    if _is_coarse(beyond[-2:]):
        return grading.stated("response.slope", True if abs(off) <= SLOPE_TOLERANCE else None, text=text)
    return grading.stated(
        "response.slope",
        abs(off) <= SLOPE_TOLERANCE,
        text=text,
        chip=f"R grows {numbers.signed_percent(off)} of 1/X",
    )


def _is_coarse(steps: list[Step]) -> bool:
    for step in steps:
        mean = step.response.mean
        if not isinstance(mean, Estimate) or mean.low is None or mean.high is None:
            return True
        if (mean.high - mean.low) / 2 > SLOPE_TOLERANCE / 2 * mean.point:
            return True
    return False


def _beyond(capacity: Capacity) -> str:
    saturation = capacity.saturation
    if saturation.knee is None or saturation.beyond_knee is None:
        return "the knee is not known: no level of one user, and no CPU time of a request"
    most, least = ("", "") if capacity.alone_is_measured else ("at most ", "at least ")
    return (
        f"the last level lies {most}{saturation.beyond_knee:.1f} times beyond the knee of {least}"
        f"{words.users(saturation.knee)} (limit {BEYOND_KNEE})"
    )


def _silence(_: Facts, observed: Sequence[ClosedCurve]) -> str:
    furthest = max(observed, key=lambda closed: closed.capacity.saturation.beyond_knee or 0.0)
    curve, capacity = furthest.curve, furthest.capacity
    saturation = capacity.saturation
    if saturation.verdict == "underdriven":
        target = 2 * capacity.top.load
        if saturation.knee is not None:
            target = max(target, BEYOND_KNEE * saturation.knee)
        return f"underdriven on {curve.label}: {saturation.reason}; go on to {target:.0f} users"
    generator = _generator(curve, capacity.top)
    if generator.ruled_out is False:
        return f"on {curve.label} the generator was the limit ({generator.text})"
    return f"on {curve.label}: {_slope(curve, capacity).evidence.text}"


assess = assessing(ID, TITLE, observe, claim, choose=naming_all, silence=_silence)
