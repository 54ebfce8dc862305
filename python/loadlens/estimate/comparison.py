"""Is the candidate different from the baseline, or as good as equal? Two questions, asked of pairs of trials.

A pair is one trial of each, close in time, in an order drawn by chance: then a drift of the machine falls on
both alike. Requests are never compared as if they were independent: two equal services would differ
"significantly" more often than not.

Sources: D. J. Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15 (6), 1987 (two one-sided tests);
S. Holm, Scand. J. Statist. 6 (2), 1979.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats as distributions

from loadlens.estimate.interval import Floats, Insufficient, Interval, same_shape
from loadlens.estimate.over_trials import (
    FEWEST_TRIALS,
    RANKS_FROM,
    by_signed_ranks,
    outliers,
)
from loadlens.estimate.sample_size import pairs_for

MARGIN = 0.05  # a change of less does not matter, unless the study says otherwise
METHOD = "t on log ratios of pairs"

Verdict = Literal["different", "different_small", "equivalent", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What pairs of trials say of two arms."""

    ratio: Interval  # candidate over baseline
    p_value: float  # of a difference as large, were there none
    verdict: Verdict
    pairs: int
    pairs_needed: int | None  # for 80 % power to see the margin; none when the verdict stands


def compare_pairs(
    baseline: Floats, candidate: Floats, *, margin: float = MARGIN, confidence: float = 0.95
) -> Comparison | Insufficient:
    """Return the ratio of two arms with its interval, and whether they differ or are as good as equal.

    Args:
        baseline: One figure a trial, above zero, shape (pairs,); at least 3.
        candidate: The same of the other arm, in the order of the pairs.
        margin: Relative difference from which on it matters, 0.05 is 5 %.
        confidence: Of the interval of the ratio.

    Returns:
        `equivalent` when the 90 % interval lies within the margin (two one-sided tests at 5 %), `different`
        when the interval lies beyond it, `different_small` when it excludes no difference but not the margin,
        else `inconclusive` with the number of pairs that would probably decide. Student's t on log ratios;
        from 8 pairs on, with one that stands apart, the Hodges-Lehmann estimate with exact signed ranks.

    Raises:
        ShapeError: The arrays differ in length.

    Source: Schuirmann 1987.
    """
    same_shape(baseline, candidate)
    pairs = baseline.size
    if pairs < FEWEST_TRIALS:
        return Insufficient(f"needs at least {FEWEST_TRIALS} pairs of trials, has {pairs}")
    if np.any(baseline <= 0) or np.any(candidate <= 0):
        return Insufficient("a trial has a figure of zero or below: no ratio")
    logs = np.log(candidate / baseline)
    if pairs >= RANKS_FROM and outliers(np.exp(logs)).size:
        wide, narrow = (by_signed_ranks(np.exp(logs), confidence=level) for level in (confidence, 0.90))
        p_value = float(distributions.wilcoxon(logs).pvalue)
    else:
        wide, narrow = (_by_t(logs, level) for level in (confidence, 0.90))
        p_value = _t_p_value(logs)
    assert isinstance(wide, Interval)
    assert isinstance(narrow, Interval)
    verdict = _verdict(wide, narrow, math.log1p(margin))
    needed = None
    if verdict == "inconclusive":
        needed = max(pairs + 1, pairs_for(math.log1p(margin), float(logs.std(ddof=1))))
    return Comparison(wide, p_value, verdict, pairs, needed)


def _verdict(wide: Interval, narrow: Interval, margin: float) -> Verdict:
    low, high = _logs(wide)
    within_low, within_high = _logs(narrow)
    if within_low > -margin and within_high < margin:
        return "equivalent"
    if low > margin or high < -margin:
        return "different"
    if low > 0 or high < 0:
        return "different_small"
    return "inconclusive"


def _logs(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return math.log(interval.low), math.log(interval.high)


def _by_t(logs: Floats, confidence: float) -> Interval:
    middle = float(logs.mean())
    error = float(distributions.sem(logs))
    half = float(distributions.t.ppf(0.5 + confidence / 2, logs.size - 1)) * error
    ends = np.exp(np.array([middle, middle - half, middle + half]))
    return Interval(float(ends[0]), float(ends[1]), float(ends[2]), float(logs.size), METHOD, confidence)


def _t_p_value(logs: Floats) -> float:
    if float(np.ptp(logs)) < 1e-12:  # the same ratio in every pair
        return 1.0 if abs(logs[0]) < 1e-12 else 0.0
    return float(distributions.ttest_1samp(logs, 0.0).pvalue)
