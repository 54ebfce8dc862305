"""A limiter that delays what exceeds its rate, for the rule `ratelimit.active`.

Users cannot distinguish its queue from that of a lock or a pool. But a lock with room for one request lets
through at least one request per time that a request takes alone. A service that lets through less, although
it is idle, is held back by a clock, or by work that goes on after the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Words, on_curve
from loadlens.diagnose.observe import waits
from loadlens.estimate.interval import Interval
from loadlens.measure.curve import Capacity, capacity_of, coming_share
from loadlens.measure.thresholds import THROTTLED
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Grade, Setting
from loadlens.present import numbers
from loadlens.present.numbers import percent, with_unit
from loadlens.present.words import users

LEAST_PLACES = 0.70  # capacity times the time of a request alone; a lock gives 1 or more
HARDLY_COMPUTES = 0.05  # cores: no quota is so small
GAPS = 5.0  # times the mean distance of answers: a longer one is a pause
COMING = 0.40  # of the time of a request, from the first byte of its answer to its last: bandwidth
ONE_EACH = 1.5  # requests per connection: below, accepting may be what is slow


@dataclass(frozen=True, slots=True)
class Delay:
    """A plateau below what one request after the other would give."""

    curve: Curve
    capacity: Capacity
    rate: Estimate
    alone: Estimate  # time of a request without load
    places: Interval

    @property
    def top(self) -> Step:
        """The highest load."""
        return self.capacity.top


def observe(facts: Facts) -> list[Delay]:
    """Return the curves on which a limiter may delay requests."""
    return [delay for curve in facts.curves if (delay := _delay(facts, curve)) is not None]


def _delay(facts: Facts, curve: Curve) -> Delay | None:
    capacity = capacity_of(curve)
    if not isinstance(capacity, Capacity) or capacity.saturation.verdict != "saturated":
        return None
    rate, kinds = capacity.top.throughput, capacity.top.classes
    unloaded = [kind for kind in facts.unloaded if len(kinds) == 1 and kind.request == kinds[0].request]
    mean = unloaded[0].response.mean if unloaded else None
    if not isinstance(rate, Estimate) or not isinstance(mean, Estimate):
        return None
    point = rate.point * mean.point
    if point > LEAST_PLACES:
        return None
    low = None if rate.low is None or mean.low is None else rate.low * mean.low
    high = None if rate.high is None or mean.high is None else rate.high * mean.high
    return Delay(curve, capacity, rate, mean, Interval(point, low, high, 1.0, "product"))


def claim(facts: Facts, delay: Delay) -> Claim:
    """Check that the service is idle on its plateau, and that no quota, pause or link holds it back."""
    top, places = delay.top, delay.places
    alone, rate = numbers.short(delay.alone), numbers.short(delay.rate)
    could = with_unit(1 / delay.alone.point, "1/s")
    quota = quota_rival(top)
    signals = [
        rate_signal(delay.rate, top),
        grading.at_most(
            "limiter.places",
            places,
            LEAST_PLACES,
            text=f"one request after the other, {alone} each without load, would be {could}; "
            f"{rate} are let through ({places.point:.2f} places, limit {LEAST_PLACES})",
            chip=f"{places.point:.2f} places",
        ),
        _one_user(delay),
        waits.cpu_signal(facts, delay.curve, top),
        # A quota of CPU time looks the same from outside: it must be known that there is none.
        grading.stated("quota.none", quota.ruled_out, text=quota.text),
    ]
    rivals = [
        _place_rival(could),
        quota,
        _accept_rival(top),
        _pause_rival(delay),
        bandwidth_rival(top),
        grading.generator_rival(top),
        grading.interference_rival(top, facts.cores),
    ]

    def words(_: Grade) -> Words:
        response = top.response.mean
        return Words(
            statement=f"Only {rate} are let through, the rest is delayed with little to do",
            explanation=f"A request takes {alone} without load and {numbers.short(response)} at {top.load:g} "
            "users, while the service has little to do.",
            advice=f"Ask at most {rate}, or raise the limit; one that refuses instead makes clients pause.",
            confirm=f"requests that take twice {alone}: {rate} as before",
            impact=1 - delay.alone.point / response.point if isinstance(response, Estimate) else 0.0,
            setting=Setting.rate(delay.rate.point),
        )

    return on_curve(delay.curve, signals, rivals, words)


def rate_signal(rate: Estimate, top: Step) -> grading.Signal:
    """State the rate of a plateau."""
    return grading.stated(
        "limiter.rate",
        True,
        text=f"throughput stays at {numbers.shown(rate)} up to {top.load:g} users",
        chip=f"lets through {numbers.short(rate)}",
        value=rate,
    )


def _place_rival(could: str) -> Counter:
    """Leave a place open that is held once the answer is out: alone, a request shows nothing of that."""
    text = f"one place alone would let {could} through, unless it stays taken after the answer"
    return grading.rival("lock or pool", text, None)


def _one_user(delay: Delay) -> grading.Signal:
    """Require that one user is held back as much as many: a load below one place would fill it."""
    first, plateau = delay.curve.steps[0].load, delay.capacity.saturation.plateau_from
    if first > 1:
        return grading.stated("limiter.from", None, text=f"no level of one user, the lowest has {first:g}")
    text = f"throughput is the same from {users(plateau)} on"
    return grading.stated("limiter.from", plateau <= 1, text=text, chip=f"from {users(plateau)} on")


def quota_rival(top: Step) -> Counter:
    """Weigh a quota of CPU time, which delays by a clock as well."""
    name = "quota of CPU time"
    shares = [quota.throttled.point for quota in top.quotas if isinstance(quota.throttled, Estimate)]
    if shares:
        text = f"stopped by it in {percent(max(shares))} of its periods"
        return grading.rival(name, text, max(shares) < THROTTLED)
    text = f"the service uses {top.server_cores:.2g} cores; no quota was read"
    return grading.rival(name, text, True if top.processes and top.server_cores < HARDLY_COMPUTES else None)


def _accept_rival(top: Step) -> Counter:
    name, watch = "connections that are accepted slowly", top.connections
    if watch is None or not watch.opened:
        return grading.rival(name, "no connections were recorded", None)
    each = watch.answered / watch.opened
    return grading.rival(name, f"{each:,.1f} requests per connection", each >= ONE_EACH)


def _pause_rival(delay: Delay) -> Counter:
    """Weigh pauses: what it lets through between them may be what one place lets through."""
    name, gap_s, watches = "pauses", delay.top.longest_gap_s, delay.top.standstills
    observed_s = sum(watch.seconds for watch in watches)
    paused_s = sum(stop.end_s - stop.begin_s for watch in watches for stop in watch.stops)
    share = min(1.0, paused_s / observed_s) if observed_s > 0 else 0.0
    if observed_s > 0 and delay.places.point > LEAST_PLACES * (1 - share):
        return grading.rival(name, f"without an answer for {percent(share)} of the time, in pauses", False)
    if gap_s is None:
        return grading.rival(name, "gaps between answers were not recorded", None)
    text = f"at most {with_unit(gap_s, 's')} without an answer"
    return grading.rival(name, text, True if gap_s * delay.rate.point <= GAPS else None)


def bandwidth_rival(top: Step) -> Counter:
    """Weigh a full link: it delays the answer, a limiter delays a request before its answer begins."""
    name, share = "bandwidth", coming_share(top.received)
    if share is None:
        return grading.rival(name, "times of the parts of answers were not recorded", None)
    text = f"{percent(share)} of a request's time passes while its answer comes (limit {percent(COMING)})"
    return grading.rival(name, text, share < COMING)
