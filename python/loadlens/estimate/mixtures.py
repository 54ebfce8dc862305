"""Modes of a distribution of times: one hill or several, and the cause of the upper ones.

Two hills are two only with a valley between them: density on a logarithmic axis falls to half of the lower
hill, and each holds enough of the mass. Tests of unimodality are not used: they miss a slow path of 1 % and
flag the steps of a deterministic server.

Sources: B. W. Silverman, Density Estimation, 1986 (modes of a smoothed density); J. B. S. Haldane, Annals of
Human Genetics 20, 1956 (odds ratios with empty cells).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from loadlens.estimate import distributions
from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.estimate.within_trial import quantile, share

GRID = 0.02  # decades
SMOOTHING = 0.06  # decades, standard deviation
VALLEY = 0.5  # of the lower hill
LEAST_WEIGHT = 0.005
LEAST_TIMER_WEIGHT = 0.0002
SLOW_RATIO = 3.0  # below, steps of queueing behind equal work look alike
CONSTANT = 0.10  # around the median of the shifts
TIMER_TOLERANCE = 0.05
PILE_CONTRAST = 3.0  # a timer's pile over the density next to it
PILE_LEVEL = 1e-3
FEWEST = 200

TCP_TIMERS: Final = {
    0.04: "delayed acknowledgement",
    0.2: "shortest retransmission time-out",
    1.0: "first retransmission of a SYN",
    3.0: "second retransmission of a SYN",
    7.0: "third retransmission of a SYN",
}


@dataclass(frozen=True, slots=True)
class Component:
    """One hill of a distribution."""

    weight: Interval  # share of the requests
    median: Interval | Insufficient  # seconds
    begins_s: float  # the valley before it; 0 for the first
    ends_s: float  # the valley behind it; infinite for the last


@dataclass(frozen=True, slots=True)
class Mixture:
    """The hills of a distribution, ascending; one is no mixture."""

    components: tuple[Component, ...]

    @property
    def ratio(self) -> float | None:
        """Median of the last hill over that of the hill below; none with one hill."""
        ends = self._last_two()
        return None if ends is None else ends[1].point / ends[0].point

    def _last_two(self) -> tuple[Interval, Interval] | None:
        if len(self.components) < 2:
            return None
        low, high = (part.median for part in self.components[-2:])
        if isinstance(low, Insufficient) or isinstance(high, Insufficient):
            return None
        return low, high


def mixture(counts: IntervalCounts, *, least_weight: float = LEAST_WEIGHT) -> Mixture | Insufficient:
    """Return the hills of a distribution of times.

    Args:
        counts: Finished requests by interval; at least 200. Mask what overlaps a pause first, or the pause
            looks like a slow path.
        least_weight: Share below which a hill is left out.

    Returns:
        Hills parted by valleys of half the lower one or deeper, on log10 time smoothed by 0.06 decades.
        Weights have intervals clustered by interval of time, medians those of `within.quantile`. What lies in
        a hill that is too light belongs to none: then the weights add up to less than 1.
    """
    finished = counts.finished()
    if finished.observed < FEWEST:
        return Insufficient(f"{finished.observed} requests, needs {FEWEST}")
    cuts = _valleys(finished)
    parts = [_component(finished, low, high) for low, high in pairwise([0.0, *cuts, math.inf])]
    return Mixture(tuple(part for part in parts if part is not None and part.weight.point >= least_weight))


def slow_path(hills: Mixture) -> Component | None:
    """Return the last hill when it is a path of its own: three times as slow as the one below, or more."""
    ratio = hills.ratio
    return hills.components[-1] if ratio is not None and ratio >= SLOW_RATIO else None


def is_constant(shifts: Sequence[float]) -> bool | None:
    """Return True if a slow path takes the same time longer at every load: a timer or service, not queueing.

    Args:
        shifts: Seconds, one a level of load; none is known with fewer than two.

    Returns:
        True if all lie within 10 % of their median.
    """
    if len(shifts) < 2:
        return None
    middle = float(np.median(shifts))
    return all(abs(shift - middle) <= CONSTANT * middle for shift in shifts)


def timer_of(shift_s: float) -> str | None:
    """Return which of TCP's timers a shift is, within 5 %; none when it is none of them."""
    for timer, name in TCP_TIMERS.items():
        if abs(shift_s - timer) <= TIMER_TOLERANCE * timer:
            return name
    return None


@dataclass(frozen=True, slots=True)
class Pile:
    """Requests that gather where a timer would put them."""

    timer_s: float
    share: Interval
    contrast: float  # density there over the density next to it


def piles(counts: IntervalCounts, timers: Sequence[float] = tuple(TCP_TIMERS)) -> tuple[Pile, ...]:
    """Return which timers gather requests, however few: a lost SYN in five thousand is seen.

    Args:
        counts: Finished requests by interval.
        timers: Seconds that a timer adds to the median.

    Returns:
        Timers with at least 0.02 % of the requests within 5 % of median + timer, three times as dense as the
        15 % on both sides and not so by chance (binomial, 0.1 %: five requests if there are none nearby).
        Only looked for where the median is below a fifth of the timer.
    """
    finished = counts.finished()
    total = finished.observed
    if total < FEWEST:
        return ()
    at, seen = finished.by_value()
    middle = finished.buckets.middle
    _, upper, at_most = finished.distribution()
    median = float(upper[np.searchsorted(at_most, 0.5 - 1e-12)])
    gathered = []
    for timer in timers:
        if median > timer / 5:
            continue
        off = np.abs(middle - median - timer) / timer
        is_at = off <= TIMER_TOLERANCE
        is_beside = (off > TIMER_TOLERANCE) & (off <= 4 * TIMER_TOLERANCE)
        here, near = float(seen[is_at[at]].sum()), float(seen[is_beside[at]].sum())
        if here < max(1.0, LEAST_TIMER_WEIGHT * total):
            continue
        contrast = here / (near / 3) if near else math.inf  # the surroundings are three times as wide
        by_chance = distributions.binomial_at_least(int(here), int(here + near), 0.25)
        if contrast >= PILE_CONTRAST and by_chance < PILE_LEVEL:
            hits = finished.where(is_at[finished.place]).observed_per_interval()
            found_share = share(hits, finished.observed_per_interval())
            if isinstance(found_share, Interval):
                gathered.append(Pile(timer, found_share, contrast))
    return tuple(gathered)


def _smoothed(heights: Floats, deviation: float) -> Floats:
    """Return heights under a Gaussian of a standard deviation in bins; beyond the ends they are mirrored."""
    # scipy.ndimage has this, and costs every report 40 ms of CPU time
    radius = round(4 * deviation)
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / deviation) ** 2)
    mirrored = np.pad(heights, radius, mode="symmetric")
    return np.convolve(mirrored, weights / weights.sum(), mode="valid")


def _valleys(counts: IntervalCounts) -> list[float]:
    """Seconds of the valleys that part the hills."""
    at, seen = counts.by_value()
    logs = np.log10(np.maximum(counts.buckets.middle[at], 1e-9))
    low, high = float(logs.min()) - 0.2, float(logs.max()) + 0.2
    bins = int((high - low) / GRID) + 1
    heights, edges = np.histogram(logs, bins=bins, range=(low, high), weights=seen)
    density = _smoothed(heights.astype(np.float64), SMOOTHING / GRID)
    centres = (edges[1:] + edges[:-1]) / 2
    rising = density[1:-1] > density[:-2]
    hills = np.flatnonzero(rising & (density[1:-1] >= density[2:])) + 1
    cuts: list[float] = []
    current = int(hills[0]) if hills.size else 0
    for hill in hills[1:]:
        valley = current + int(np.argmin(density[current : hill + 1]))
        if density[valley] <= VALLEY * min(density[current], density[hill]):
            cuts.append(float(10 ** centres[valley]))
            current = int(hill)
        elif density[hill] > density[current]:
            current = int(hill)
    return cuts


def _component(counts: IntervalCounts, begins_s: float, ends_s: float) -> Component | None:
    part = counts.between(begins_s, ends_s)
    if not part.count.size:
        return None
    weight = share(part.observed_per_interval(), counts.observed_per_interval())
    assert isinstance(weight, Interval)  # `mixture` asks for 200 requests
    return Component(weight, quantile(part, 0.5), begins_s, ends_s)
