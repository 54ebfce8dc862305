"""Intervals by resampling, for what has no variance formula: ratios of quantiles, fitted knees.

Requests are never resampled one by one: neighbours queued behind each other, and an interval built so covers
the truth one time in four at 80 % utilisation. Whole stretches of time are drawn instead.

Sources: H. R. Künsch, Annals of Statistics 17 (3), 1989 (moving blocks); B. Efron 1979.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.estimate.interval_counts import IntervalCounts

METHOD = "moving-block bootstrap over intervals, within one trial"
BLOCK = 0.8  # blocks are this times the root of the number of intervals: 20 of 600
FEWEST_BLOCKS = 10
RESAMPLES = 400
MOST_FAILED = 0.05  # of the resamples in which the statistic has no value


def by_blocks(
    intervals: int,
    statistic: Callable[[Floats], float],
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 1,
) -> Interval | Insufficient:
    """Return a statistic of a trial with an interval from resampled stretches of time.

    Args:
        intervals: How many intervals of time there are; enough for 10 blocks of 0.8 sqrt(intervals).
        statistic: Its value when each interval counts as often as the weights say, shape (intervals,); NaN
            when there is none.
        confidence: Of the interval.
        resamples: How many to draw.
        seed: Of the draws.

    Returns:
        The statistic with all weights 1, and percentiles of the resampled ones. It covers some points less
        than it says (88 to 89 % at 95 %): use a variance formula where there is one.

    Source: Künsch 1989, blocks drawn around the circle.
    """
    block = max(1, round(BLOCK * math.sqrt(intervals)))
    fewest = FEWEST_BLOCKS * block
    if intervals < fewest:
        return Insufficient(f"{intervals} intervals, needs {fewest} for {FEWEST_BLOCKS} blocks")
    point = statistic(np.ones(intervals))
    if not math.isfinite(point):
        return Insufficient("the statistic has no value here")
    random = np.random.default_rng(seed)
    blocks = math.ceil(intervals / block)
    within_block = np.arange(block)
    values = np.empty(resamples)
    for row in range(resamples):
        starts = random.integers(0, intervals, blocks)
        places = ((starts[:, None] + within_block) % intervals).ravel()[:intervals]
        values[row] = statistic(np.bincount(places, minlength=intervals).astype(np.float64))
    known = values[np.isfinite(values)]
    if known.size < (1 - MOST_FAILED) * resamples:
        return Insufficient("the statistic has no value in too many resamples")
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(point, float(low), float(high), float(intervals / block), METHOD, confidence)


def quantile_ratio(
    counts: IntervalCounts, upper: float, lower: float, *, resamples: int = RESAMPLES
) -> Interval | Insufficient:
    """Return how many times one quantile is another, such as p99 over p50, with its interval.

    Args:
        counts: The trial's finished requests by interval.
        upper, lower: Levels, between 0 and 1.
        resamples: How many to draw.

    Returns:
        The ratio of the quantiles of the pooled counts, by blocks of intervals.
    """
    if counts.observed == 0:
        return Insufficient("nothing finished")
    values, place = np.unique(counts.upper, return_inverse=True)

    def ratio(weights: Floats) -> float:
        weighted = np.bincount(place, weights=counts.count * weights[counts.interval], minlength=values.size)
        total = np.cumsum(weighted)
        if total[-1] <= 0:
            return math.nan
        at = np.searchsorted(total, np.array([upper, lower]) * total[-1] - 1e-9)
        return float(values[at[0]] / values[at[1]])

    return by_blocks(counts.intervals, ratio, resamples=resamples)


def percentile_interval(
    point: float, draws: Floats, *, widening: float, independent: float, method: str, confidence: float = 0.95
) -> Interval:
    """Return an interval from resampled values of a fitted parameter, its two sides widened.

    Args:
        point: The fitted value.
        draws: Resampled values, shape (resamples,); infinite ones leave an end open.
        widening: Factor for both sides, for residual bootstraps that cover too little.
        independent: Observations behind the fit.
        method: In words.
        confidence: Of the interval.
    """
    tail = (1 - confidence) / 2
    ordered = np.sort(draws)  # an interpolated percentile between finite and infinite is not a number
    low = float(ordered[math.floor(tail * (ordered.size - 1))])
    high = float(ordered[math.ceil((1 - tail) * (ordered.size - 1))])
    return Interval(
        point,
        None if math.isinf(low) else min(point, point - widening * (point - low)),
        None if math.isinf(high) else max(point, point + widening * (high - point)),
        independent,
        method,
        confidence,
    )
