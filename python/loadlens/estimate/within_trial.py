"""Estimates within one trial: quantiles, means, rates and shares with intervals that allow for correlation.

The calculator is the engine's (`crates/estimate`, with the methods and their sources): `hit` prints its
results at the end of a run, and everything that reads a record calls it through these functions. They pass
arrays in, and name the method of what comes out.
"""

from __future__ import annotations

import numpy as np

from loadlens.engine import compiled
from loadlens.estimate.interval import Floats, Insufficient, Interval, same_shape
from loadlens.estimate.interval_counts import IntervalCounts

# Point, low, high, independent observations, method; and the reason where there is no point.
Estimated = tuple[float | None, float | None, float | None, float, str, str | None]
FIRM_ABOVE = (
    20.0  # independent observations above a quantile; with fewer its point is biased low: quote it marked
)
RATIO_METHODS = {
    "long_run": "ratio of interval sums, long-run variance, within one trial",
    "clusters": "ratio of interval sums, few bursts, within one trial",
    "one_burst": "all in one interval of time, within one trial: no interval",
    "independent": "t as if independent, within one trial",
}
QUANTILE_METHODS = {
    "long_run": "interval exceedances, long-run variance, within one trial",
    "independent": "binomial ranks as if independent, within one trial",
}
RATE_METHODS = RATIO_METHODS | {"independent": "Poisson counts, within one trial"}
SHARE_METHODS = {
    "long_run": "interval-clustered, long-run variance, within one trial",
    "independent": "Clopper-Pearson",
}


def quantile(counts: IntervalCounts, p: float, *, confidence: float = 0.95) -> Interval | Insufficient:
    """Return the p-quantile of a trial with its interval.

    Args:
        counts: The trial's counts by interval.
        p: Level, between 0 and 1.
        confidence: Of the interval.

    Returns:
        The upper end of the bucket that holds the inverse of the distribution, and ends that include their
        whole buckets. Open above when the evidence cannot place the end. `independent` is p (1 - p) / se^2;
        below 20 / (1 - p) the quantile is not firm. Insufficient with fewer observations than a two-sided
        interval needs, or when the quantile lies among requests that never finished (the reason then carries
        the lower bound).
    """
    if not 0 < p < 1:
        raise ValueError(f"a quantile lies between 0 and 1, got {p:g}")
    return _interval(compiled.quantile(counts.arrays(), p, confidence), QUANTILE_METHODS, confidence)


def is_firm(interval: Interval, p: float) -> bool:
    """Return True if at least 20 independent observations lie above the p-quantile."""
    return interval.independent * (1 - p) >= FIRM_ABOVE


def mean(
    sums: Floats, counts: Floats, *, squares: Floats | None = None, confidence: float = 0.95
) -> Interval | Insufficient:
    """Return the mean of a trial from the sums and counts of its intervals.

    Args:
        sums: Sum of the quantity in each interval, shape (intervals,).
        counts: Number of observations in each interval, shape (intervals,).
        squares: Sum of squares in each interval, shape (intervals,); floors the interval at what
            independent observations would give.
        confidence: Of the interval.

    Returns:
        sum(sums) / sum(counts), the ratio estimator with long-run variance. Where fewer than 8 of many
        intervals hold any observation, these count as clusters; all in one of several: no interval. In one
        or two intervals observations count as independent.
    """
    same_shape(sums, counts)
    estimated = compiled.mean(
        _floats(sums), _floats(counts), None if squares is None else _floats(squares), confidence
    )
    return _interval(estimated, RATIO_METHODS, confidence)


def mean_of(counts: IntervalCounts) -> Interval | Insufficient:
    """Return the mean of what finished, each at the middle of its bucket; the interval is that of `mean`."""

    def by_interval(weights: Floats) -> Floats:
        return np.bincount(counts.interval, weights, counts.intervals).astype(np.float64)

    return mean(
        by_interval(counts.count * counts.middle),
        counts.observed_per_interval(),
        squares=by_interval(counts.count * counts.middle**2),
    )


def mean_time(
    sums: Floats, counts: Floats, times: IntervalCounts, *, squares: Floats, confidence: float = 0.95
) -> Interval | Insufficient:
    """Return the mean time of a trial, unfinished requests counted by what is known of them.

    Args:
        sums: Exact sum of the finished times in each interval, seconds, shape (intervals,).
        counts: Finished requests of each interval, shape (intervals,).
        times: The same times as counts, with the unfinished ones and their ages.
        squares: Sum of squares of the finished times, shape (intervals,).
        confidence: Of the interval.

    Returns:
        The ratio estimator; an unfinished request counts as long as those took on average that lasted as long
        as it. Its interval is one of the reciprocal, open above where that may be 0. When the oldest
        unfinished request is older than everything that finished, all that is known is a lower bound: then
        `low` is the point and `high` is open.
    """
    same_shape(sums, counts, squares)
    late = times.arrays() if times.censored else None
    estimated = compiled.mean_time(_floats(sums), _floats(counts), _floats(squares), late, confidence)
    point, least, _, _, _, reason = estimated
    if point is None and least is not None:
        return Interval(least, least, None, 0.0, f"lower bound: {reason}", confidence)
    return _interval(estimated, RATIO_METHODS, confidence)


def rate(counts: Floats, lengths: Floats, *, confidence: float = 0.95) -> Interval | Insufficient:
    """Return events per second from the counts of intervals.

    Args:
        counts: Events of each interval, shape (intervals,).
        lengths: Length of each interval in seconds, shape (intervals,).
        confidence: Of the interval.

    Returns:
        Events per second; its interval never narrower than one event either way, because a trial's edge
        may cut one off. In one or two intervals that of a Poisson process (Garwood 1936).
    """
    same_shape(counts, lengths)
    return _interval(compiled.rate(_floats(counts), _floats(lengths), confidence), RATE_METHODS, confidence)


def share(hits: Floats, totals: Floats, *, confidence: float = 0.95) -> Interval | Insufficient:
    """Return the share of observations that are hits, clustered by interval.

    Errors come in bursts: an interval built on requests covers the truth half of the time with bursts of ten.

    Args:
        hits: Hits in each interval, shape (intervals,).
        totals: Observations in each interval, shape (intervals,).
        confidence: Of the interval.

    Returns:
        sum(hits) / sum(totals). With no hit, or with nothing but hits, one end is exact and the other the
        Clopper-Pearson bound of independent observations.
    """
    same_shape(hits, totals)
    return _interval(compiled.share(_floats(hits), _floats(totals), confidence), SHARE_METHODS, confidence)


def steps_of(lengths_s: list[float]) -> list[int]:
    """Return the number of the step of equal length that each recorded interval belongs to."""
    return compiled.level(lengths_s)


def edge_is_cut(longest_s: float, oldest_s: float, measured_s: float, *, all_ended: bool) -> bool:
    """Return True if requests in flight at the end of a warmed-up, steady measured part are left out.

    Args:
        longest_s: The longest request that ended.
        oldest_s: The age of the oldest that did not.
        measured_s: Length of the measured part.
        all_ended: Every request was answered in the end.
    """
    return compiled.edge_is_cut(longest_s, oldest_s, measured_s, all_ended)


def _floats(values: Floats) -> Floats:
    return np.ascontiguousarray(values, dtype=np.float64)


def _interval(estimated: Estimated, methods: dict[str, str], confidence: float) -> Interval | Insufficient:
    point, low, high, independent, method, reason = estimated
    if point is None:
        return Insufficient(reason or "")
    return Interval(point, low, high, independent, methods[method], confidence)
