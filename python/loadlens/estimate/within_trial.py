"""Estimates within one trial: quantiles, means and shares with intervals that allow for correlated requests.

Requests that queue behind each other are not independent; on a queue at 90 % the usual interval for p99
covers the truth one time in twenty. All that is kept of a trial are counts by interval of time, and they are
enough: the long-run variance of the interval's exceedances gives the interval of a quantile.

Source: W. K. Newey and K. D. West, Econometrica 55 (3), 1987, for the variance; the quantile by inverting
the interval of its exceedance share. Binomial ranks: J.-Y. Le Boudec, Performance Evaluation of Computer and
Communication Systems, 2010, section 2.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special
from scipy import stats as distributions

from loadlens.estimate.interval import Floats, Insufficient, Interval, same_shape
from loadlens.estimate.interval_counts import IntervalCounts

METHOD = "interval-exceedance HAC, within one trial"
MEAN_METHOD = "ratio of interval sums, HAC, within one trial"
POISSON_METHOD = "Poisson counts, within one trial"
ONE_BURST_METHOD = "all in one interval of time, within one trial: no interval"
SHARE_METHOD = "interval-clustered HAC, within one trial"
RANK_METHOD = "binomial ranks of independent values"
FIRM_ABOVE = (
    20.0  # independent observations above a quantile; with fewer its point is biased low: quote it marked
)
FEWEST_INTERVALS = 8  # fewer show no correlation: they count as independent
FEWEST_FOR_T = 4  # fewer give no variance worth the name
INDEPENDENT = 1.25  # requests that carry as much as one independent: up to this they count as independent


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard error of a share or a ratio, with the degrees of freedom of its t."""

    standard_error: float
    freedom: float


def long_run_spread(deviations: Floats, total: float) -> Spread:
    """Return the standard error of sum(deviations) / total when neighbouring intervals are correlated.

    Args:
        deviations: What each interval contributes beyond its expectation, shape (intervals,); centred here.
        total: The denominator, such as the number of requests of all intervals.

    Returns:
        Standard error by Bartlett weights up to lag B = 1.3 sqrt(K), and 1.5 K / B degrees of freedom (>= 2).

    Source: Newey and West 1987.
    """
    size = deviations.size
    bandwidth = max(1, round(1.3 * math.sqrt(size)))
    centred = deviations - deviations.mean()
    variance = float(centred @ centred)
    for lag in range(1, min(bandwidth, size)):
        weight = 1 - lag / bandwidth
        variance += 2 * weight * float(centred[lag:] @ centred[:-lag])
    return Spread(math.sqrt(max(variance, 0.0)) / total, max(2.0, 1.5 * size / bandwidth))


def quantile(
    counts: IntervalCounts,
    p: float,
    *,
    confidence: float = 0.95,
) -> Interval | Insufficient:
    """Return the p-quantile of a trial with its interval.

    Args:
        counts: The trial's counts by interval; at least 8 intervals.
        p: Level, between 0 and 1.
        confidence: Of the interval.

    Returns:
        The middle of the bucket that holds the inverse of the distribution, and ends that include their
        whole buckets. Open above when the evidence cannot place the end. `independent` is p (1 - p) / se^2;
        below 20 / (1 - p) the quantile is not firm. Insufficient with fewer observations than a two-sided
        interval of independent ones needs, or when the quantile lies among requests that never finished
        (the reason then carries the lower bound).
    """
    if not 0 < p < 1:
        raise ValueError(f"a quantile lies between 0 and 1, got {p:g}")
    seen = counts.observed + counts.censored
    if counts.observed == 0:
        return Insufficient("nothing finished" if seen else "nothing was sent")
    fewest = fewest_for_two_sided(p, confidence=confidence)
    if seen < fewest:
        return Insufficient(f"{seen} requests, needs {fewest}")
    lower, upper, share = counts.distribution()
    if share[-1] < p - 1e-12:
        return Insufficient(f"above {_seconds(upper[-1])}: it lies among requests that never finished")
    place = int(np.searchsorted(share, p - 1e-12))
    value = float(upper[place])
    spread = _exceedance_spread(counts, value, p)
    half = float(special.stdtrit(spread.freedom, 0.5 + confidence / 2)) * spread.standard_error
    low_at = int(np.searchsorted(share, p - half)) if p - half > 0 else 0
    high_at = int(np.searchsorted(share, p + half)) if p + half < share[-1] else None
    return Interval(
        point=float(lower[place] + upper[place]) / 2,
        low=float(lower[low_at]) if p - half > 0 else None,
        high=None if high_at is None else float(upper[min(high_at, upper.size - 1)]),
        independent=p * (1 - p) / spread.standard_error**2,
        method=METHOD,
        confidence=confidence,
    )


def is_firm(interval: Interval, p: float) -> bool:
    """Whether at least 20 independent observations lie above the p-quantile."""
    return interval.independent * (1 - p) >= FIRM_ABOVE


def correlation_time(found: Interval, requests: int) -> float:
    """Return how many requests carry as much as one independent request, at least 1.

    Args:
        found: Of a quantile, a share or a mean.
        requests: That it was taken from.
    """
    return max(1.0, requests / found.independent) if found.independent > 0 else math.inf


def counts_as_independent(found: Interval, requests: int) -> bool:
    """Whether requests are so little correlated that intervals for independent ones may be used."""
    return correlation_time(found, requests) <= INDEPENDENT


def quantile_of_independent(
    counts: IntervalCounts, p: float, *, confidence: float = 0.95
) -> Interval | Insufficient:
    """Return the p-quantile with the exact interval for independent requests; only where that was shown.

    Args:
        counts: All finished; unfinished ones have no rank.
        p: Level, between 0 and 1.
        confidence: Of the interval, at least.

    Returns:
        The buckets of the order statistics at the binomial ranks, whole buckets included.

    Source: J.-Y. Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010, chapter 2.
    """
    if counts.censored:
        return Insufficient(f"{counts.censored} requests had not finished: they have no rank")
    n = counts.observed
    if n == 0:
        return Insufficient("nothing finished")
    lower, upper, share_at_most = counts.distribution()
    ranks = np.rint(share_at_most * n)
    tail = (1 - confidence) / 2
    low_rank = int(distributions.binom.ppf(tail, n, p))
    high_rank = int(distributions.binom.ppf(1 - tail, n, p)) + 1
    place = int(np.searchsorted(ranks, max(1, math.ceil(p * n - 1e-9))))
    return Interval(
        point=float(lower[place] + upper[place]) / 2,
        low=float(lower[np.searchsorted(ranks, low_rank)]) if low_rank >= 1 else None,
        high=float(upper[np.searchsorted(ranks, high_rank)]) if high_rank <= n else None,
        independent=float(n),
        method=RANK_METHOD,
        confidence=confidence,
    )


def _exceedance_spread(counts: IntervalCounts, value: float, p: float) -> Spread:
    total = float(counts.observed + counts.censored)
    binomial = math.sqrt(p * (1 - p) / total)
    if counts.intervals < FEWEST_INTERVALS:
        return Spread(binomial, 2.0)
    _, excess = counts.excess_per_interval(value)
    spread = long_run_spread(excess, total)
    # A share cannot be known better than from independent draws; less variance is luck of a short series.
    return Spread(max(spread.standard_error, binomial), spread.freedom)


def fewest_for_two_sided(p: float, *, confidence: float = 0.95) -> int:
    """Return how many independent values a two-sided interval of the p-quantile needs at least."""
    tail = (1 - confidence) / 2
    worse = max(p, 1 - p)
    n = math.ceil(math.log(tail) / math.log(worse))
    return n if worse**n <= tail else n + 1


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
        sum(sums) / sum(counts), the ratio estimator with long-run variance. Where fewer than 8 intervals
        hold any observation, intervals count as clusters; all in one of many: no interval. In a part of
        fewer than 8 intervals observations count as independent.
    """
    same_shape(sums, counts)
    total = float(counts.sum())
    if total <= 0:
        return Insufficient("nothing was observed")
    if total < 2:
        return Insufficient(f"{total:.3g} observed, needs 2")
    point = float(sums.sum()) / total
    variance = None if squares is None else max(0.0, float(squares.sum()) / total - point**2)
    independent_error = 0.0 if variance is None else math.sqrt(variance / total)
    deviations, seen = sums - point * counts, int((counts > 0).sum())
    if seen >= FEWEST_INTERVALS:
        spread = long_run_spread(deviations, total)
        error, freedom = max(spread.standard_error, independent_error), spread.freedom
    elif counts.size >= FEWEST_INTERVALS and seen == 1:
        return Interval(point, None, None, 1.0, ONE_BURST_METHOD, confidence)
    elif counts.size >= FEWEST_INTERVALS or variance is None:
        if seen < FEWEST_FOR_T and variance is None:
            return Insufficient(f"{seen} intervals, needs {FEWEST_FOR_T}")
        # They come in a few bursts: those of one burst are not independent of each other.
        clustered = math.sqrt(float(deviations @ deviations) * seen / (seen - 1)) / total
        error, freedom = max(clustered, independent_error), seen - 1.0
    else:
        error, freedom = independent_error, max(2.0, total - 1)
    half = float(special.stdtrit(freedom, 0.5 + confidence / 2)) * error
    independent = total if variance is None or error == 0 else min(total, variance / error**2)
    low = point - half
    if np.all(sums >= 0):  # a mean of what is never negative
        low = max(0.0, low)
    return Interval(point, low, point + half, independent, MEAN_METHOD, confidence)


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
        As `mean`; an unfinished request counts as long as those took on average that lasted as long as it.
        When the oldest unfinished one is older than everything that finished, all that is known is a lower
        bound: then `low` is the point and `high` is open.
    """
    if times.censored == 0:
        return mean(sums, counts, squares=squares, confidence=confidence)
    if counts.sum() < 1:
        return Insufficient("nothing finished")
    expected = times.expected_of_censored()
    weights = times.censored_count.astype(np.float64)
    late = np.bincount(times.censored_interval, weights=weights, minlength=times.intervals)
    more = np.bincount(times.censored_interval, weights=weights * expected, minlength=times.intervals)
    finished = float(counts.sum())
    spread = max(0.0, float(squares.sum()) / finished - (float(sums.sum()) / finished) ** 2)
    all_sums, all_counts = sums + more, counts + late
    # The scatter of the finished stands for that of all: the unfinished have no times of their own.
    total = float(all_counts.sum())
    point = float(all_sums.sum()) / total
    found = mean(all_sums, all_counts, squares=all_counts * (spread + point**2), confidence=confidence)
    if isinstance(found, Interval) and times.hides_the_end:
        method = f"lower bound: {times.censored} of {total:.0f} requests had not finished"
        return Interval(found.point, found.point, None, 0.0, method, confidence)
    return found


def rate(counts: Floats, lengths: Floats, *, confidence: float = 0.95) -> Interval | Insufficient:
    """Return events per second from the counts of intervals.

    Args:
        counts: Events of each interval, shape (intervals,).
        lengths: Length of each interval in seconds, shape (intervals,).
        confidence: Of the interval.

    Returns:
        Events per second; its interval never narrower than one event either way, because a trial's edge
        may cut one off. With fewer than 8 intervals that of a Poisson process (Garwood 1936).
    """
    same_shape(counts, lengths)
    seconds, events = float(lengths.sum()), float(counts.sum())
    if seconds <= 0:
        return Insufficient("nothing was measured")
    point = events / seconds
    if counts.size < FEWEST_INTERVALS:
        tail = (1 - confidence) / 2
        low = float(distributions.chi2.ppf(tail, 2 * events)) / 2 / seconds if events else 0.0
        high = float(distributions.chi2.ppf(1 - tail, 2 * events + 2)) / 2 / seconds
        return Interval(point, low, high, events, POISSON_METHOD, confidence)
    spread = long_run_spread(counts - point * lengths, seconds)
    half = float(special.stdtrit(spread.freedom, 0.5 + confidence / 2)) * spread.standard_error
    half = max(half, 1 / seconds)
    return Interval(point, max(0.0, point - half), point + half, events, MEAN_METHOD, confidence)


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
    n, found = float(totals.sum()), float(hits.sum())
    if n < 1:
        return Insufficient("nothing was observed")
    point = found / n
    tail = (1 - confidence) / 2
    if found in (0.0, n):
        edge = 1 - tail ** (1 / n)
        low, high = (0.0, edge) if found == 0 else (1 - edge, 1.0)
        return Interval(point, low, high, n, "Clopper-Pearson", confidence)
    binomial = math.sqrt(point * (1 - point) / n)
    if int((totals > 0).sum()) < FEWEST_INTERVALS:
        low = float(distributions.beta.ppf(tail, found, n - found + 1))
        high = float(distributions.beta.ppf(1 - tail, found + 1, n - found))
        return Interval(point, low, high, n, "Clopper-Pearson", confidence)
    spread = long_run_spread(hits - point * totals, n)
    error = max(spread.standard_error, binomial)
    half = float(special.stdtrit(spread.freedom, 0.5 + confidence / 2)) * error
    return Interval(
        point,
        max(0.0, point - half),
        min(1.0, point + half),
        point * (1 - point) / error**2,
        SHARE_METHOD,
        confidence,
    )


def is_on_a_boundary(interval: Interval, *, weights: tuple[float, ...] = (), p: float | None = None) -> bool:
    """Return whether a quantile may jump from one mode to another between equal runs.

    Args:
        interval: The quantile's interval.
        weights: Shares of requests of the upper components of a mixture.
        p: Level of the quantile, needed with `weights`.

    Returns:
        True when the interval spans more than a factor of 2, is open, or when a component's weight is
        within 3 standard errors of 1 - p.
    """
    if interval.ratio is None or interval.ratio > 2:
        return True
    if p is None:
        return False
    return any(
        abs(1 - p - weight) < 3 * math.sqrt(weight * (1 - weight) / interval.independent)
        for weight in weights
    )


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{value * 1000:.3g} ms"
