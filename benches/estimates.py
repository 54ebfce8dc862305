"""From rounds to a figure: the median of the rounds and its rank interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Middle:
    """The median of the rounds with its interval; without ends below six rounds."""

    value: float
    low: float | None
    high: float | None
    rounds: int


def middle(values: Sequence[float]) -> Middle | None:
    """The median of some rounds; none without a round."""
    if not values:
        return None
    return Middle(statistics.median(values), *rank_interval(values), len(values))


def rank_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float | None, float | None]:
    """Interval of the median between two order statistics, exact for any law; none below six values.

    The k-th smallest and k-th largest of n values enclose the median with probability 1 - 2 P(B < k),
    B binomial with n and one half.
    """
    ordered, count = sorted(values), len(values)
    best: tuple[float | None, float | None] = (None, None)
    for k in range(1, count // 2 + 1):
        outside = 2 * sum(math.comb(count, j) for j in range(k)) / 2**count
        if outside > 1 - confidence:
            break
        best = (ordered[k - 1], ordered[count - k])
    return best
