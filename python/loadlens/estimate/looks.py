"""Looks at a comparison while it runs: how the error is split over them, and what further pairs would decide.

A comparison that ends as soon as a 95 % interval excludes 1 is wrong far more often than one time in twenty.
Each look therefore has a part of the error: what is spent grows in proportion to the pairs. No correlation
between looks is relied on, so that the sum holds for any distribution and any test.

Sources: K. Kim and D. L. DeMets, Biometrika 74 (1), 1987 (the power family, here of power 1).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from typing import Final

from loadlens.estimate import distributions

LOOKS: Final = (3, 5, 8, 13)  # pairs: about 1.6 times as many each time
ERROR: Final = 0.05  # of all looks together
POWER: Final = 0.8
MOST_PAIRS: Final = 1000  # beyond, more pairs are no advice


def looks_within(pairs: int) -> tuple[int, ...]:
    """Return the looks of a comparison that has time for so many pairs; none below the first."""
    return tuple(look for look in LOOKS if look <= pairs)


def error_of(look: int, looks: Sequence[int], error: float = ERROR) -> float:
    """Return the part of the error of one look: its share of the pairs of the last, less what was spent."""
    place = looks.index(look)
    return error * (look - (looks[place - 1] if place else 0)) / looks[-1]


def half_width(scatter: float, pairs: int, error: float) -> float:
    """Return half of the interval of a log ratio.

    Args:
        scatter: Standard deviation of the log ratios of pairs.
        pairs: Number of pairs, at least 2.
        error: One less the confidence.
    """
    return distributions.t_quantile(1 - error / 2, pairs - 1) * scatter / math.sqrt(pairs)


def decidable_margin(scatter: float, pairs: int, error: float, power: float = POWER) -> float:
    """Return the smallest margin, as a ratio less 1, within which two equal arms are found to be equal.

    Args:
        scatter: Standard deviation of the log ratios of pairs.
        pairs: Number of pairs, at least 2.
        error: Of the look that decides.
        power: Probability with which it decides so.
    """
    off = distributions.normal_tail_quantile((1 - power) / 2) * scatter / math.sqrt(pairs)
    return math.expm1(half_width(scatter, pairs, error) + off)


def allowed_scatter(margin: float, pairs: int, error: float, power: float = POWER) -> float:
    """Return the largest scatter with which a margin is decided; the inverse of `decidable_margin`."""
    return math.log1p(margin) / math.log1p(decidable_margin(1.0, pairs, error, power))


def pairs_to_decide(ratio: float, scatter: float, margin: float, error: float) -> int:
    """Return the pairs that put the interval of a ratio on one side of the margin; at most MOST_PAIRS.

    Args:
        ratio: As estimated so far, taken for the true one.
        scatter: Standard deviation of the log ratios of pairs.
        margin: Relative, 0.03 for 3 %.
        error: Of the last look.
    """
    room = abs(abs(math.log(ratio)) - math.log1p(margin))
    return bisect.bisect_left(
        range(MOST_PAIRS), True, lo=2, key=lambda n: half_width(scatter, n, error) < room
    )
