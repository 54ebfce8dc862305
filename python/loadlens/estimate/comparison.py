"""Ratio of two arms from pairs of trials.

A pair is one trial of each arm, close in time, in random order: a drift of the machine affects both alike.
Requests are never compared as if they were independent: two equal services would differ "significantly" more
often than not.
"""

from __future__ import annotations

import numpy as np

from loadlens.estimate.interval import Floats, Insufficient, Interval, same_shape
from loadlens.estimate.over_trials import (
    FEWEST_TRIALS,
    RANKS_FROM,
    by_signed_ranks,
    outliers,
    t_interval,
)

METHOD = "t on log ratios of pairs"


def ratio_of_pairs(
    baseline: Floats, candidate: Floats, *, confidence: float = 0.95
) -> Interval | Insufficient:
    """Return candidate over baseline with its interval.

    Args:
        baseline: One figure per trial, above zero, shape (pairs,); at least 3.
        candidate: The same of the other arm, in the order of the pairs.
        confidence: Of the interval.

    Returns:
        Student's t on log ratios; from 8 pairs on, if one is an outlier, the Hodges-Lehmann estimate with
        exact signed ranks.

    Raises:
        ShapeError: The arrays differ in length.
    """
    same_shape(baseline, candidate)
    if baseline.size < FEWEST_TRIALS:
        return Insufficient(f"needs at least {FEWEST_TRIALS} pairs of trials, has {baseline.size}")
    if np.any(baseline <= 0) or np.any(candidate <= 0):
        return Insufficient("a trial has a figure of zero or below: no ratio")
    ratios = candidate / baseline
    if ratios.size >= RANKS_FROM and outliers(ratios).size:
        return by_signed_ranks(ratios, confidence=confidence)
    return t_interval(np.log(ratios), np.exp, METHOD, confidence)
