"""Ratio of two arms from pairs of trials, and which of several ratios differ from 1.

A pair is one trial of each arm, close in time, in random order: a drift of the machine affects both alike.
Requests are never compared as if they were independent: two equal services would differ "significantly" more
often than not.

Sources: B. L. Welch, Biometrika 34, 1947; S. Holm, Scand. J. Statist. 6 (2), 1979.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from loadlens.estimate import distributions
from loadlens.estimate.interval import Floats, Insufficient, Interval, same_shape
from loadlens.estimate.over_trials import (
    FEWEST_TRIALS,
    RANKS_FROM,
    by_signed_ranks,
    outliers,
    t_interval,
)

METHOD = "t on log ratios of pairs"
UNPAIRED_METHOD = "Welch's t on logs of trials"
Key = TypeVar("Key")


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
        exact signed ranks, unless so few pairs have none at this confidence.

    Raises:
        ShapeError: The arrays differ in length.
    """
    same_shape(baseline, candidate)
    if baseline.size < FEWEST_TRIALS:
        return Insufficient(f"needs at least {FEWEST_TRIALS} pairs of trials, has {baseline.size}")
    if np.any(baseline <= 0) or np.any(candidate <= 0):
        return Insufficient("a trial has a figure of zero or below: no ratio")
    ratios = candidate / baseline
    has_ranks = 2.0 ** (1 - ratios.size) <= 1 - confidence  # the outermost interval is as sure as that
    if ratios.size >= RANKS_FROM and has_ranks and outliers(ratios).size:
        return by_signed_ranks(ratios, confidence=confidence)
    return t_interval(np.log(ratios), np.exp, METHOD, confidence)


def ratio_of_trials(
    baseline: Floats, candidate: Floats, *, confidence: float = 0.95
) -> Interval | Insufficient:
    """Return candidate over baseline from trials that were not run in pairs.

    Args:
        baseline: One figure per trial, above zero; at least 3.
        candidate: The same of the other arm; the numbers of trials may differ.
        confidence: Of the interval.

    Returns:
        Welch's t on logs. A drift of the machine between the arms is part of the ratio.
    """
    fewest = min(baseline.size, candidate.size)
    if fewest < FEWEST_TRIALS:
        return Insufficient(f"needs at least {FEWEST_TRIALS} trials of each, has {fewest}")
    if np.any(baseline <= 0) or np.any(candidate <= 0):
        return Insufficient("a trial has a figure of zero or below: no ratio")
    before, after = np.log(baseline), np.log(candidate)
    parts = np.array([before.var(ddof=1) / before.size, after.var(ddof=1) / after.size])
    variance, sizes = float(parts.sum()), np.array([before.size, after.size])
    freedom = variance**2 / float((parts**2 / (sizes - 1)).sum()) if variance > 0 else fewest - 1
    half = distributions.t_quantile(0.5 + confidence / 2, freedom) * variance**0.5
    middle = float(after.mean() - before.mean())
    ends = np.exp([middle, middle - half, middle + half])
    return Interval(
        float(ends[0]), float(ends[1]), float(ends[2]), float(sizes.sum()), UNPAIRED_METHOD, confidence
    )


def difference_of_pairs(
    baseline: Floats, candidate: Floats, *, confidence: float = 0.95
) -> Interval | Insufficient:
    """Return the mean of candidate less baseline over pairs of trials, such as of shares that may be zero."""
    same_shape(baseline, candidate)
    if baseline.size < FEWEST_TRIALS:
        return Insufficient(f"needs at least {FEWEST_TRIALS} pairs of trials, has {baseline.size}")
    return t_interval(candidate - baseline, np.asarray, "t on differences of pairs", confidence)


@dataclass(frozen=True, slots=True)
class Tested:
    """An effect, and whether it differs from none when several are looked at."""

    effect: Interval | Insufficient  # at the confidence at which Holm's procedure judged it
    differs: bool


def holm(
    effects: Mapping[Key, Callable[[float], Interval | Insufficient]], error: float, none: float = 1.0
) -> dict[Key, Tested]:
    """Return which effects differ from none, so that any false one among them has at most this probability.

    Args:
        effects: Each gives its interval at a confidence.
        error: Probability of any false difference.
        none: Value of no effect.

    Returns:
        For each the interval of the step that judged it, which excludes `none` exactly if it differs. One
        without an interval counts among the others, as if it did not differ.

    Source: Holm 1979, with intervals in place of p-values: at each step those that exclude no effect go.
    """
    left = dict(effects)
    tested: dict[Key, Tested] = {}
    while left:
        confidence = 1 - error / len(left)
        now = {key: effect(confidence) for key, effect in left.items()}
        gone = {
            key: Tested(interval, True)
            for key, interval in now.items()
            if isinstance(interval, Interval) and not interval.covers(none)
        }
        if not gone:
            return tested | {key: Tested(interval, False) for key, interval in now.items()}
        tested |= gone
        left = {key: effect for key, effect in left.items() if key not in gone}
    return tested
