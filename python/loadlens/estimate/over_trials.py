"""Estimates over trials: the trial is the unit of evidence, not the request.

Runs of one case differ by more than the noise within a run (memory layout, start order, neighbours), so an
interval built on requests says nothing about the next run. Times and rates are treated on a log scale,
shares on a logit scale. Requests of different trials are never pooled for an interval.

Sources: Student 1908; J. L. Hodges and E. L. Lehmann, Ann. Math. Stat. 34 (2), 1963; T. Kalibera and
R. Jones, ISMM 2013.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadlens.estimate import distributions
from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.estimate.interval_counts import IntervalCounts, pooled
from loadlens.estimate.within_trial import is_firm, quantile

T_METHOD = "t on log of trials"
T_SHARE_METHOD = "t on logit of trials"
SIGNED_RANK_METHOD = "Hodges-Lehmann on log of trials, exact signed rank"
T_LEVEL_METHOD = "t on trials"
JACKKNIFE_METHOD = "quantile of all trials, jackknife over trials"
FEWEST_TRIALS = 3  # two trials give a half-width of 9 standard deviations
FEWEST_FOR_RANKS = 6  # below, no 95 % signed-rank interval exists
RANKS_FROM = 8  # from here on the rank interval replaces t when a trial stands apart
OUTLIER_MADS = 4.0
FEWEST_FOR_ORDER = 4  # of three orders in six one is all up or all down


@dataclass(frozen=True, slots=True)
class Variation:
    """Sources of the variation of a case."""

    between: float  # standard deviation between trials, log scale, the part that longer trials cannot reduce
    within: float  # standard error within a trial, log scale, root mean square
    between_low: float  # 95 % interval of `between`: with five trials it spans a factor of ten
    between_high: float
    share_between: float  # 0-1
    remedy: str  # "more trials" or "longer trials"


def over_trials(values: Floats, *, confidence: float = 0.95) -> Interval | Insufficient:
    """Return the typical value of a case from one figure a trial.

    Args:
        values: One figure a trial, above zero, shape (trials,); at least 3.
        confidence: Of the interval.

    Returns:
        Student's t on the logarithm: exact under normal variation between trials and sound with a noisy
        trial in ten. From 8 trials on, with one that stands apart by more than 4 MAD, the Hodges-Lehmann
        estimate with its exact signed-rank interval. Insufficient for fewer than 3 trials.
    """
    logs = _logs(values)
    if isinstance(logs, Insufficient):
        return logs
    if logs.size >= RANKS_FROM and outliers(values).size:
        return by_signed_ranks(values, confidence=confidence)
    return t_interval(logs, np.exp, T_METHOD, confidence)


def level_over_trials(values: Floats, *, confidence: float = 0.95) -> Interval | Insufficient:
    """Return the mean level of a case when figures may be zero, such as cores waited for.

    Args:
        values: One figure a trial, shape (trials,); at least 3.
        confidence: Of the interval.

    Returns:
        Student's t on the figures as they are; not below zero when no figure is.
    """
    figures = np.asarray(values, dtype=np.float64)
    if figures.size < FEWEST_TRIALS:
        return _too_few(figures.size)
    interval = t_interval(figures, np.asarray, T_LEVEL_METHOD, confidence)
    if interval.low is not None and np.all(figures >= 0):
        return replace(interval, low=max(0.0, interval.low))
    return interval


def quantile_over_trials(
    trials: Sequence[IntervalCounts], p: float, *, confidence: float = 0.95
) -> Interval | Insufficient:
    """Return the p-quantile of a case.

    Args:
        trials: Counts of each trial, at least 3.
        p: Level, between 0 and 1.
        confidence: Of the interval.

    Returns:
        t on the logs of the trials' own quantiles when each is firm (20 independent observations above it).
        Else the quantile of all trials together, whose point is less biased, with the interval of its
        leave-one-trial-out values. `independent` adds up over trials.

    Source: J. W. Tukey 1958 (jackknife).
    """
    if len(trials) < FEWEST_TRIALS:
        return _too_few(len(trials))
    each = [quantile(counts, p) for counts in trials]
    intervals = [interval for interval in each if isinstance(interval, Interval)]
    independent = sum(interval.independent for interval in intervals)
    if len(intervals) == len(each) and all(is_firm(interval, p) for interval in intervals):
        typical = over_trials(np.array([k.point for k in intervals]), confidence=confidence)
        return replace(typical, independent=independent) if isinstance(typical, Interval) else typical
    together = quantile(pooled(trials), p)
    if isinstance(together, Insufficient):
        return together
    left_out = [quantile(pooled([*trials[:i], *trials[i + 1 :]]), p) for i in range(len(trials))]
    points = [interval.point for interval in left_out if isinstance(interval, Interval)]
    if len(points) < len(trials):
        return Insufficient(f"without one of {len(trials)} trials too few requests lie above it")
    logs = _logs(np.array([together.point, *points]))
    if isinstance(logs, Insufficient):
        return logs
    m = len(trials)
    pseudo = m * logs[0] - (m - 1) * logs[1:]
    half = distributions.t_quantile(0.5 + confidence / 2, m - 1) * float(pseudo.std(ddof=1)) / m**0.5
    return Interval(
        together.point,
        together.point * float(np.exp(-half)),
        together.point * float(np.exp(half)),
        together.independent,
        JACKKNIFE_METHOD,
        confidence,
    )


def share_over_trials(
    shares: Floats, totals: Floats | None = None, *, confidence: float = 0.95
) -> Interval | Insufficient:
    """Return the typical share of a case from one share a trial.

    Args:
        shares: One share a trial, 0 to 1, shape (trials,); at least 3.
        totals: Observations of each trial, shape (trials,). Shares of exactly 0 or 1 are moved by half an
            observation, as the logit has no value there; needed when there are any.
        confidence: Of the interval.

    Returns:
        t on the logit; when every trial has a share of zero, the Clopper-Pearson bound of all together.
    """
    values = np.asarray(shares, dtype=np.float64)
    if values.size < FEWEST_TRIALS:
        return _too_few(values.size)
    if np.all(values == 0) and totals is not None and totals.sum() > 0:
        n = float(totals.sum())
        bound = 1 - ((1 - confidence) / 2) ** (1 / n)
        return Interval(0.0, 0.0, bound, n, "Clopper-Pearson", confidence)
    edge = (values <= 0) | (values >= 1)
    if edge.any():
        if totals is None:
            return Insufficient("a share of exactly 0 or 1 needs the number of observations")
        values = np.where(edge, (values * totals + 0.5) / (totals + 1), values)
    logits = np.log(values / (1 - values))
    return t_interval(logits, lambda x: 1 / (1 + np.exp(-x)), T_SHARE_METHOD, confidence)


def by_signed_ranks(values: Floats, *, confidence: float = 0.95) -> Interval | Insufficient:
    """Return the Hodges-Lehmann estimate of a case with its exact signed-rank interval, on a log scale.

    Args:
        values: One figure a trial, above zero, shape (trials,); at least 6.
        confidence: Of the interval, at least.

    Returns:
        The median of the Walsh averages and the averages at the exact ranks.
    """
    logs = _logs(values)
    if isinstance(logs, Insufficient):
        return logs
    if logs.size < FEWEST_FOR_RANKS:
        return Insufficient(f"{logs.size} trials, a 95 % signed-rank interval needs {FEWEST_FOR_RANKS}")
    first, second = np.triu_indices(logs.size)
    walsh = np.sort((logs[first] + logs[second]) / 2)
    skip = _signed_rank_skip(logs.size, (1 - confidence) / 2)
    return Interval(
        point=float(np.exp(np.median(walsh))),
        low=float(np.exp(walsh[skip])),
        high=float(np.exp(walsh[walsh.size - 1 - skip])),
        independent=float(logs.size),
        method=SIGNED_RANK_METHOD,
        confidence=confidence,
    )


def outliers(values: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the indices of trials more than 4 MAD from the median, on a log scale; shown, never dropped."""
    logs = np.log(np.asarray(values, dtype=np.float64))
    distance = np.abs(logs - np.median(logs))
    mad = 1.4826 * np.median(distance)
    if mad == 0:
        return np.flatnonzero(distance > 0)
    return np.flatnonzero(distance > OUTLIER_MADS * mad)


def variation(values: Floats, relative_errors: Floats) -> Variation | Insufficient:
    """Split the variation of a case into between and within trials.

    Args:
        values: One figure a trial, above zero, shape (trials,).
        relative_errors: Standard error within each trial divided by its figure, shape (trials,).

    Returns:
        Variance between trials is what the trials' spread exceeds their own errors by, at least 0. Its
        interval is that of the spread's variance (chi-square), less the same errors: show it, act on no point
        alone.
    """
    logs = _logs(values)
    if isinstance(logs, Insufficient):
        return logs
    spread = float(logs.var(ddof=1))
    within = float(np.mean(np.square(relative_errors)))
    between = max(0.0, spread - within)
    total = between + within
    squares, freedom = spread * (logs.size - 1), logs.size - 1
    ends = [squares / distributions.chi2_quantile(q, freedom) - within for q in (0.975, 0.025)]
    proportion = between / total if total > 0 else 0.0
    return Variation(
        between=between**0.5,
        within=within**0.5,
        between_low=max(0.0, ends[0]) ** 0.5,
        between_high=max(0.0, ends[1]) ** 0.5,
        share_between=proportion,
        remedy="more trials" if proportion > 0.5 else "longer trials",
    )


def order_trend(values: Floats) -> float:
    """Return the p-value of a trend of trials over the order in which they ran: a machine that drifts.

    Args:
        values: One figure a trial, in the order of the runs, shape (trials,).

    Returns:
        Of Kendall's rank correlation, exact without ties; 1 with fewer than 4 trials, which cannot show one
        at 5 %.

    Source: M. G. Kendall 1938.
    """
    if values.size < FEWEST_FOR_ORDER:
        return 1.0
    p_value = distributions.order_p_value(values)
    return 1.0 if np.isnan(p_value) else p_value


def _signed_rank_skip(n: int, tail: float) -> int:
    """Return the number of Walsh averages outside the interval on each side."""
    ways = np.zeros(n * (n + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, n + 1):
        ways[rank:] += ways[:-rank].copy()
    below = np.cumsum(ways) / 2.0**n
    return max(0, int(np.searchsorted(below, tail, side="right")) - 1)


def t_interval(
    transformed: Floats, back: Callable[[Floats], Floats], method: str, confidence: float
) -> Interval:
    """Return Student's t interval of the mean of transformed figures, transformed back."""
    size = transformed.size
    middle = float(transformed.mean())
    error = float(transformed.std(ddof=1)) / size**0.5
    half = distributions.t_quantile(0.5 + confidence / 2, size - 1) * error
    ends = back(np.array([middle, middle - half, middle + half]))
    return Interval(float(ends[0]), float(ends[1]), float(ends[2]), float(size), method, confidence)


def _logs(values: Floats) -> Floats | Insufficient:
    figures = np.asarray(values, dtype=np.float64)
    if figures.size < FEWEST_TRIALS:
        return _too_few(figures.size)
    if np.any(figures <= 0):
        return Insufficient("a trial has a figure of zero or below: no log scale")
    return np.log(figures)


def _too_few(trials: int) -> Insufficient:
    return Insufficient(f"needs at least {FEWEST_TRIALS} trials, has {trials}")
