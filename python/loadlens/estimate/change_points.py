"""Change points of a series by E-divisive: moments from which on figures come from another distribution.

Q(t) = nm / (n + m) * (2 E|X - Y| - E|X - X'| - E|Y - Y'|), of the n figures X before t and the m figures Y
from t on, is highest at the best split. Stretches are split further as long as a permutation test finds the
best of their splits significant.

Source: D. S. Matteson and N. A. James, J. Am. Stat. Assoc. 109 (505), 2014, with alpha = 1. Means within a
side include each figure's distance to itself, as in MongoDB's signal-processing-algorithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from loadlens.estimate.interval import Floats

FEWEST: Final = 30  # figures; below, a permutation test finds only steps that anyone sees
ERROR: Final = 0.01  # of one test: a history has several series, each tested at least once
PERMUTATIONS: Final = 499
SEED: Final = 1
_ROUNDING: Final = 1e-9  # sums of the same figures in another order


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The first figure after a change."""

    index: int
    p_value: float


def change_points(
    values: Floats, *, error: float = ERROR, permutations: int = PERMUTATIONS, seed: int = SEED
) -> tuple[ChangePoint, ...]:
    """Return the change points in order.

    Args:
        values: Figures in the order of time, shape (figures,).
        error: Highest p-value of a change.
        permutations: Of each test; figures are shuffled within their stretches.
        seed: Of the permutations: the same series has the same change points.
    """
    random = np.random.default_rng(seed)
    p_values: dict[int, float] = {}
    while True:
        bounds = [0, *sorted(p_values), values.size]
        stretches = [values[begin:end] for begin, end in pairwise(bounds)]
        splits = [split_statistics(stretch) for stretch in stretches]
        highest = [float(split.max(initial=0.0)) for split in splits]
        place = int(np.argmax(highest))
        if highest[place] <= 0:
            break
        p_value = _p_value(stretches, highest[place], error, permutations, random)
        if p_value > error:
            break
        p_values[bounds[place] + int(np.argmax(splits[place]))] = p_value
    return tuple(ChangePoint(index, p_values[index]) for index in sorted(p_values))


def split_statistics(values: Floats) -> Floats:
    """Return Q of every split; index t splits before figure t, so that index 0 splits nothing and is 0.

    Args:
        values: Figures in the order of time, shape (figures,).
    """
    size = values.size
    if size < 2:
        return np.zeros(size)
    upper = np.triu(np.abs(values[:, None] - values[None, :]))
    to_earlier, to_later = upper.sum(axis=0), upper.sum(axis=1)
    before = np.cumsum(to_earlier)[:-1]  # pairs within the first t figures
    after = np.cumsum(to_later[::-1])[::-1][1:]  # pairs within the others
    across = to_later.sum() - before - after
    n = np.arange(1, size)
    m = size - n
    statistics = n * m / size * (2 * across / (n * m) - 2 * before / n**2 - 2 * after / m**2)
    return np.concatenate([[0.0], statistics])


def _p_value(
    stretches: Sequence[Floats],
    highest: float,
    error: float,
    permutations: int,
    random: np.random.Generator,
) -> float:
    """Return the p-value of the best split; it stops early, at a lower bound, once that exceeds the error."""
    as_high = 0
    for _ in range(permutations):
        best = max(
            float(split_statistics(random.permutation(stretch)).max(initial=0.0)) for stretch in stretches
        )
        as_high += best >= highest * (1 - _ROUNDING)
        if (as_high + 1) / (permutations + 1) > error:
            break
    return (as_high + 1) / (permutations + 1)
