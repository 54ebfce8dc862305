"""A limiter that delays what exceeds its rate, as ratelimit_active sees it.

Users cannot tell its queue from that of a lock or a pool. But whatever has room for one request at least lets
through one over the time that a request takes alone; a service that lets through less although it has nothing
to do is held back by the clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.estimate.interval import Interval
from loadlens.measure.curve import Capacity, capacity_of, coming_share
from loadlens.measure.thresholds import IDLE_CPU, THROTTLED
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Finding
from loadlens.present import numbers, words

LEAST_PLACES = 0.70  # capacity times the time of a request alone; a lock gives 1 or more
HARDLY_COMPUTES = 0.05  # cores: no quota is so small
GAPS = 5.0  # times the mean distance of answers: a longer one is a pause
COMING = 0.40  # of the time of a request, from the first byte of its answer to its last: bandwidth
ONE_EACH = 1.5  # requests a connection: below, accepting may be what is slow


@dataclass(frozen=True, slots=True)
class Delay:
    """A plateau below what one request after the other would give."""

    curve: Curve
    capacity: Capacity
    rate: Estimate
    alone: Estimate  # time of a request that is asked calmly
    places: Interval


def finding(facts: Facts, rule: str) -> Finding | None:
    """What speaks for a limiter that delays, on the curve where it shows most; none: nothing does."""
    delays = [delay for curve in facts.curves if (delay := _delay(facts, curve)) is not None]
    found = [one for delay in delays if (one := _finding(facts, delay, rule)) is not None]
    return grading.strongest(found) if found else None


def _delay(facts: Facts, curve: Curve) -> Delay | None:
    capacity = capacity_of(curve)
    if not isinstance(capacity, Capacity) or capacity.saturation.verdict != "saturated":
        return None
    rate = capacity.top.throughput
    kinds = capacity.top.classes
    calm = [one for one in facts.calm if len(kinds) == 1 and one.request == kinds[0].request]
    mean = calm[0].response.mean if calm else None
    if not isinstance(rate, Estimate) or not isinstance(mean, Estimate):
        return None
    point = rate.point * mean.point
    if point > LEAST_PLACES:
        return None
    edges = (rate.low, mean.low, rate.high, mean.high)
    low = None if edges[0] is None or edges[1] is None else edges[0] * edges[1]
    high = None if edges[2] is None or edges[3] is None else edges[2] * edges[3]
    return Delay(curve, capacity, rate, mean, Interval(point, low, high, 1.0, "product"))


def _finding(facts: Facts, delay: Delay, rule: str) -> Finding | None:
    top = delay.capacity.top
    alone, rate = numbers.short(delay.alone), numbers.short(delay.rate)
    could = numbers.with_unit(1 / delay.alone.point, "1/s")
    signals = [
        _rate_signal(delay),
        grading.at_most(
            "limiter.places",
            delay.places,
            LEAST_PLACES,
            text=f"one request after the other, {alone} each when asked calmly, would be {could}; "
            f"{rate} are let through ({delay.places.point:.2f} places, limit {LEAST_PLACES})",
            chip=f"{delay.places.point:.2f} places",
        ),
        _one_user(delay),
        _idle(delay),
        _no_quota(delay),
    ]
    rivals = [
        grading.rival("lock or pool", f"one place alone would let {could} through", True),
        _quota_rival(delay),
        _accept_rival(delay),
        _pause_rival(delay),
        _bandwidth_rival(delay),
        grading.generator_rival(top),
        grading.interference_rival(top, facts.cores),
    ]
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(delay.curve))
    if grade is None:
        return None
    response = top.response.mean
    waits = 1 - delay.alone.point / response.point if isinstance(response, Estimate) else 0.0
    return Finding(
        rule=rule,
        grade=grade,
        impact=min(1.0, max(0.0, waits)),
        scope=delay.curve.label,
        statement=grading.statement(f"Only {rate} are let through, the rest is delayed with little to do"),
        explanation=f"A request takes {alone} when asked calmly and {numbers.short(response)} at "
        f"{top.load:g} "
        "users, while the service has little to do.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"Ask at most {rate}, or raise the limit; one that refuses instead tells clients to pause.",
        confirm=f"requests that take twice {alone}: {rate} as before",
        curves=(delay.curve.label,),
    )


def _rate_signal(delay: Delay) -> grading.Signal:
    rate, top = delay.rate, delay.capacity.top
    text = f"throughput stays at {numbers.shown(rate)} up to {top.load:g} users"
    found = grading.stated("limiter.rate", True, text=text, chip=f"lets through {numbers.short(rate)}")
    return grading.Signal(replace(found.evidence, value=rate.point, low=rate.low, high=rate.high), True)


def _one_user(delay: Delay) -> grading.Signal:
    """Whether one user is held back as much as many: who needs less than one place fills it."""
    first, plateau = delay.curve.steps[0].load, delay.capacity.saturation.plateau_from
    if first > 1:
        return grading.stated("limiter.from", None, text=f"no level of one user, the lowest has {first:g}")
    text = f"throughput is the same from {words.users(plateau)} on"
    return grading.stated("limiter.from", plateau <= 1, text=text, chip=f"from {words.users(plateau)} on")


def _idle(delay: Delay) -> grading.Signal:
    top, allotted = delay.capacity.top, delay.curve.cores_allotted
    if not top.processes or allotted <= 0:
        return grading.stated("server.idle", None, text="the CPU of the service's processes was not read")
    known = [p.occupied.point for p in top.processes if isinstance(p.occupied, Estimate)]
    if not known:
        return grading.stated("server.idle", None, text="the CPU of the service's processes was not read")
    used = sum(known) / allotted
    return grading.stated(
        "server.idle",
        used < IDLE_CPU,
        text=f"its processes take {numbers.percent(used)} of the CPU that they may use "
        f"(limit {numbers.percent(IDLE_CPU)})",
        chip=f"CPU {numbers.percent(used)}",
    )


def _quota_rival(delay: Delay) -> Counter:
    name, top = "quota of CPU time", delay.capacity.top
    shares = [quota.throttled.point for quota in top.quotas if isinstance(quota.throttled, Estimate)]
    if shares:
        text = f"stopped by it in {numbers.percent(max(shares))} of its periods"
        return grading.rival(name, text, max(shares) < THROTTLED)
    text = f"the service uses {top.server_cores:.2g} cores; no quota was read"
    return grading.rival(name, text, True if top.processes and top.server_cores < HARDLY_COMPUTES else None)


def _no_quota(delay: Delay) -> grading.Signal:
    """Whether it is known that no quota holds the service back, which looks the same from everywhere else."""
    quota = _quota_rival(delay)
    return grading.stated("quota.none", quota.ruled_out, text=quota.text)


def _accept_rival(delay: Delay) -> Counter:
    name, watch = "connections that are accepted slowly", delay.capacity.top.connections
    if watch is None or not watch.opened:
        return grading.rival(name, "no connections were recorded", None)
    each = watch.answered / watch.opened
    return grading.rival(name, f"{each:,.1f} requests a connection", each >= ONE_EACH)


def _pause_rival(delay: Delay) -> Counter:
    name, gap = "pauses", delay.capacity.top.longest_gap_s
    stood = _stood_still(delay.capacity.top)
    # What it lets through while it does not stand still may be what one place lets through.
    if stood is not None and delay.places.point > LEAST_PLACES * (1 - stood):
        text = f"without an answer for {numbers.percent(stood)} of the time, in standstills"
        return grading.rival(name, text, False)
    if gap is None:
        return grading.rival(name, "gaps between answers were not recorded", None)
    text = f"at most {numbers.with_unit(gap, 's')} without an answer"
    return grading.rival(name, text, True if gap * delay.rate.point <= GAPS else None)


def _stood_still(step: Step) -> float | None:
    """Share of the time in which nothing was answered; none: single requests are not known."""
    looked = sum(watch.seconds for watch in step.standstills)
    if looked <= 0:
        return None
    stood = sum(stop.end_s - stop.begin_s for watch in step.standstills for stop in watch.stops)
    return min(1.0, stood / looked)


def _bandwidth_rival(delay: Delay) -> Counter:
    """A limiter delays a request before its answer begins; a way that is full delays the answer."""
    name, share = "bandwidth", coming_share(delay.capacity.top.received)
    if share is None:
        return grading.rival(name, "times of the parts of answers were not recorded", None)
    text = f"{numbers.percent(share)} of a request's time passes while its answer comes"
    return grading.rival(name, f"{text} (limit {numbers.percent(COMING)})", share < COMING)
