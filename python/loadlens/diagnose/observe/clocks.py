"""A limiter that delays, as its burst or its windows show it, for the rule `ratelimit.active`.

A service works at one rate: what was sent is done a little later, and it is never ahead of that rate. A
limiter that delays lets its burst through at once and then keeps its rate, after each pause again. One that
counts per window lets all of a window through at its begin. Neither depends on how many users wait.
A quota of CPU time does neither: the kernel grants it anew ten times a second and keeps no rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Words, on_curve
from loadlens.diagnose.observe import delays, waits
from loadlens.estimate.distributions import normal_tail_quantile
from loadlens.estimate.interval import Interval
from loadlens.estimate.over_trials import over_trials
from loadlens.measure.thresholds import FEW_FAIL
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Grade, Setting
from loadlens.model.shapes import LetThrough, SlowPath
from loadlens.present.numbers import percent, with_unit
from loadlens.present.words import users

AHEAD = 3.0  # standard deviations, were requests to come at random
LEAST_BURST = 5.0  # requests: fewer are a warm cache
SAME = 0.10  # between levels: rates, periods
SAME_SIZE = 0.15  # of windows, between levels
LEVELS = 2
BURSTS = 1.3  # of the burst as seen: a bucket refills between trials
MORE_USERS = 1.5  # of the levels: who waits does not make the size of a window
STOPPED = 0.5  # of the time between windows at most does the whole service stand still
SHORT = 0.3  # of a window: what one request takes alone
SAME_PERIOD = 0.01  # of windows that let different numbers of requests through
LEVELS_OF_WORK = 3
ROUNDS = 1.5  # requests of each user in one window: a batch of those who wait has one
VARIED = 0.3  # of a request's time, that slow ones add to it in the mean
WAITS_FOR_STORAGE = 0.05  # of the time


@dataclass(frozen=True, slots=True)
class Clock:
    """Levels of a curve on which requests pass as a clock lets them."""

    curve: Curve
    levels: tuple[tuple[Step, LetThrough], ...]  # a trial of each, ascending by load
    is_windows: bool

    @property
    def top(self) -> Step:
        """The highest of these levels."""
        return self.levels[-1][0]

    @property
    def rate(self) -> Interval:
        """The rate at which they settled, over all trials; of fewer than three with the chance of a count."""
        trials = [self._rate(seen) for step, _ in self.levels for seen in step.let_through if self._has(seen)]
        made = over_trials(np.array(trials))
        if isinstance(made, Interval):
            return made
        point, requests = sum(trials) / len(trials), sum(seen.requests for seen in self._seen)
        half = normal_tail_quantile(0.025) * point / math.sqrt(requests)
        return Interval(point, point - half, point + half, float(requests), "counts, as if independent")

    @property
    def is_one_rate(self) -> bool:
        """True if the levels settle at the same rate."""
        return spread(self.rates) <= SAME

    @property
    def rates(self) -> list[float]:
        """The rate of each level."""
        return [self._rate(seen) for seen in self._seen]

    def _has(self, seen: LetThrough) -> bool:
        return not self.is_windows or seen.period_s is not None

    def _rate(self, seen: LetThrough) -> float:
        """The rate at the end of a trial; where requests come in windows, that of whole ones."""
        return _each(seen) / (seen.period_s or 1.0) if self.is_windows else seen.rate_per_s

    @property
    def at_once(self) -> float:
        """Requests that were let through at once, mean of the levels."""
        if self.is_windows:
            return sum(self.sizes) / len(self.levels)
        return sum(seen.ahead for seen in self._seen) / len(self.levels)

    @property
    def period_s(self) -> float:
        """Time from window to window, mean of the levels."""
        return sum(self.periods) / len(self.levels)

    @property
    def periods(self) -> list[float]:
        """Seconds from window to window, of each level."""
        return [seen.period_s or 0.0 for seen in self._seen]

    @property
    def sizes(self) -> list[float]:
        """Requests of a window, mean of each level."""
        return [_each(seen) for seen in self._seen]

    @property
    def is_of_work(self) -> bool:
        """True if windows of one length let different numbers through, and some users several times."""
        if not self.is_windows:
            return False
        rounds = (size / step.load for size, (step, _) in zip(self.sizes, self.levels, strict=True))
        return (
            len(self.levels) >= LEVELS_OF_WORK
            and spread(self.sizes) > SAME_SIZE
            and spread(self.periods) <= SAME_PERIOD
            and max(rounds) >= ROUNDS
        )

    @property
    def _seen(self) -> list[LetThrough]:
        return [seen for _, seen in self.levels]


def observe(facts: Facts) -> list[Clock]:
    """Return the curves on which requests pass in windows or after a burst."""
    return [
        clock
        for curve in facts.curves
        for clock in (_windows(facts, curve), burst_of(curve))
        if clock is not None
    ]


def burst_of(curve: Curve) -> Clock | None:
    """Return the levels on which more was done at first than at the rate afterwards; none: fewer than two."""
    levels = tuple(
        (step, seen)
        for step in _sound(curve)
        for seen in step.let_through[:1]
        if seen.ahead >= max(LEAST_BURST, AHEAD * seen.deviation)
    )
    return Clock(curve, levels, is_windows=False) if len(levels) >= LEVELS else None


def _windows(facts: Facts, curve: Curve) -> Clock | None:
    levels = tuple(
        (step, seen)
        for step in _sound(curve)
        for seen in step.let_through[:1]
        if seen.period_s is not None
        and (alone := _alone_s(facts, step)) is not None
        and alone <= SHORT * seen.period_s
    )
    if len(levels) < LEVELS or levels[-1][0].load < MORE_USERS * levels[0][0].load:
        return None
    return Clock(curve, levels, is_windows=True)


def _sound(curve: Curve) -> Iterator[Step]:
    """Yield the levels of users who never pause at which requests hardly fail.

    Failures begin and end as bursts do; users who pause all ask at the begin of a load, and are ahead of
    their rate by their number.
    """
    if curve.is_closed and curve.think_s == 0:
        yield from (step for step in curve.steps if step.failed_count <= FEW_FAIL * (step.issued or 0))


def _each(seen: LetThrough) -> float:
    return sum(seen.each) / len(seen.each)


def _alone_s(facts: Facts, step: Step) -> float | None:
    requests = {kind.request for kind in step.classes}
    means = [kind.response.mean for kind in facts.unloaded if kind.request in requests]
    return max((mean.point for mean in means if isinstance(mean, Estimate)), default=None)


def spread(values: Sequence[float]) -> float:
    """Return by how much the greatest of some values exceeds the least."""
    return max(values) / min(values) - 1 if min(values) > 0 else float("inf")


def is_burst(step: Step, clock: Clock) -> bool:
    """True if what a level did beyond the rate of a limiter is no more than its burst."""
    seconds = step.quality.seconds
    if seconds is None or not isinstance(step.throughput, Estimate):
        return False
    return (step.throughput.point - clock.rate.point) * seconds <= BURSTS * clock.at_once


def settled_rate(curve: Curve, besides: Callable[[Step], float]) -> Estimate | None:
    """Return the rate that all levels with a burst keep once it is spent; none: they agree on none.

    Args:
        curve: The curve that reached its capacity.
        besides: Successes per second of a step that belong to the capacity besides those of the load.
    """
    clock = burst_of(curve)
    if clock is None or not clock.is_one_rate:
        return None
    more = sum(besides(step) for step, _ in clock.levels) / len(clock.levels)
    rate, trials = clock.rate, [seen for step, _ in clock.levels for seen in step.let_through]
    low, high = (None if end is None else end + more for end in (rate.low, rate.high))
    requests, method = sum(seen.requests for seen in trials), f"{rate.method}, each after its burst"
    return Estimate("capacity", "1/s", rate.point + more, low, high, len(trials), requests, method)


def claim(facts: Facts, clock: Clock) -> Claim:
    """Check that all levels settle at one rate, that the service is idle, and what else would look so."""
    top, rate = clock.top, clock.rate
    settles = grading.stated(
        "limiter.rate",
        True,
        text=f"throughput settles at {with_unit(rate.point, '1/s')}",
        chip=f"lets through {with_unit(rate.point, '1/s')}",
        value=rate,
    )
    of_rate = [] if clock.is_of_work else [settles, same_rate(clock.rates)]
    signals = [*of_rate, _at_once(clock), waits.cpu_signal(facts, clock.curve, top)]
    rivals = [
        _buffer_rival(facts, clock),
        delays.quota_rival(top),
        _pause_rival(clock) if clock.is_windows else _slow_now_and_then(clock),
        _storage_rival(top),
        delays.bandwidth_rival(top),
        grading.generator_rival(top),
        grading.interference_rival(top, facts.cores),
    ]

    def words(_: Grade) -> Words:
        much, limit = f"{clock.at_once:.0f}", with_unit(rate.point, "1/s")
        statement = f"{limit} are let through, after {much} at once; what exceeds that is delayed"
        period = with_unit(clock.period_s, "s") if clock.is_windows else ""
        if clock.is_windows:
            statement = f"{much} requests are let through every {period}; who is later waits for the next"
        lowest = clock.levels[0][0]
        explanation = f"{users(lowest.load)} and {users(top.load)} get the same"
        advice = f"Ask at most {limit}, or raise the limit; one that refuses instead makes clients pause."
        confirm = f"twice the limit: {with_unit(2 * rate.point, '1/s')}"
        if clock.is_of_work:
            silent = percent(max(seen.silent for _, seen in clock.levels))
            statement = f"A quota is used up in each period of {period}: up to {silent} of it nothing comes"
            explanation = f"The periods are the same for {users(lowest.load)} and {users(top.load)}"
            advice = f"Find what is granted anew every {period}, and raise it or ask for less of it."
            confirm = "twice the quota: twice as many in each period"
        return Words(
            statement=statement,
            explanation=f"{explanation}, while the service has little to do.",
            advice=advice,
            confirm=confirm,
            impact=_impact(facts, top),
            setting=None if clock.is_of_work else Setting.rate(rate.point),
        )

    return on_curve(clock.curve, signals, rivals, words)


def _impact(facts: Facts, top: Step) -> float:
    alone, response = _alone_s(facts, top), top.response.mean
    return (
        1 - (alone or 0.0) / response.point if isinstance(response, Estimate) and response.point > 0 else 0.0
    )


def _at_once(clock: Clock) -> grading.Signal:
    at = ", ".join(f"{step.load:g}" for step, _ in clock.levels)
    if not clock.is_windows:
        ahead = ", ".join(f"{seen.ahead:.0f}" for _, seen in clock.levels)
        text = f"at {at} users {ahead} more were done at first than at the rate afterwards"
        return grading.stated("limiter.burst", True, text=text, chip=f"{clock.at_once:.0f} at once")
    silent = min(seen.silent for _, seen in clock.levels)
    period = with_unit(clock.period_s, "s")
    text = (
        f"at {at} users {', '.join(f'{size:.1f}' for size in clock.sizes)} requests come together every "
        f"{period}, with none for {percent(silent)} of the time"
    )
    passed = clock.is_of_work or (spread(clock.sizes) <= SAME_SIZE and spread(clock.periods) <= SAME)
    return grading.stated("limiter.window", passed, text=text, chip=f"every {period}")


def same_rate(rates: Sequence[float], verb: str = "", limit: float = SAME) -> grading.Signal:
    """Require the same rate at every level."""
    apart = spread(rates)
    text = (
        f"{with_unit(min(rates), '1/s')} to {with_unit(max(rates), '1/s')} {verb}on {len(rates)} levels "
        f"({percent(apart)} apart, limit {percent(limit)})"
    )
    return grading.stated("limiter.same", apart <= limit, text=text, chip=f"same within {percent(apart)}")


def _buffer_rival(facts: Facts, clock: Clock) -> Counter:
    if clock.is_windows:
        alone = with_unit(_alone_s(facts, clock.top) or 0.0, "s")
        text = f"a request alone takes {alone}, as part of a batch it would take as long as one"
        return grading.rival("work done in batches", text, True)
    text = "a buffer that takes so many in, before what empties it at this rate, looks the same"
    return grading.rival("buffer", text, None)


def _slow_now_and_then(clock: Clock) -> Counter:
    """Weigh some requests that take long: a load is fast until each user has met one."""
    name = "requests that take long now and then"
    if not clock.curve.slow_paths:
        return grading.rival(name, "single requests were not looked at", None)
    added = [_added(path) for path in clock.curve.slow_paths]
    seen = [each for each in added if each is not None]
    if len(seen) < len(added):
        return grading.rival(name, "how much they add is not known", None)
    text = f"they add {percent(max(seen))} to the time of a request (limit {percent(VARIED)})"
    return grading.rival(name, text, max(seen) <= VARIED)


def _added(path: SlowPath) -> float | None:
    """Return the mean time that a slow path adds to a request, over the usual time; none: not known."""
    if path.weight is None:
        return 0.0
    if not path.usual_s or not isinstance(path.weight, Estimate) or not isinstance(path.shift, Estimate):
        return None
    return path.weight.point * path.shift.point / path.usual_s


def _pause_rival(clock: Clock) -> Counter:
    """Weigh a service that stands still between windows: then probes get no answer either."""
    watches = [
        (watch, seen.silent)
        for step, seen in clock.levels
        for watch in step.standstills
        if watch.shortest_s < seen.silent * (seen.period_s or 0.0)
    ]
    if not watches:
        return grading.rival("pauses", "standstills of such a length would not have been seen", None)
    observed_s = sum(watch.seconds for watch, _ in watches)
    stopped = sum(stop.end_s - stop.begin_s for watch, _ in watches for stop in watch.stops) / observed_s
    text = f"all stands still {percent(stopped)} of the time"
    return grading.rival("pauses", text, stopped <= STOPPED * min(silent for _, silent in watches))


def _storage_rival(top: Step) -> Counter:
    name = "storage that takes writes in at first"
    if top.storage is None or not isinstance(top.storage.waiting, Estimate):
        return grading.rival(name, "storage was not watched", None)
    share = top.storage.waiting.point
    text = f"something waits for storage {percent(share)} of the time (limit {percent(WAITS_FOR_STORAGE)})"
    return grading.rival(name, text, share < WAITS_FOR_STORAGE)
