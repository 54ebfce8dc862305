"""Growth with time: memory that leaks, requests that become more expensive, a limit that nears.

Sources: P. K. Sen, J. Amer. Stat. Assoc. 63, 1968 (slope with its interval); H. B. Mann 1945 (trend test).
"""

from __future__ import annotations

import math

import numpy as np

from loadlens.estimate import distributions
from loadlens.estimate.interval import Floats, Interval, same_shape
from loadlens.estimate.steady_state import (
    autocorrelation,
    coarse_means,
)

LEAK_PER_MINUTE = 0.01  # of the level: less does not matter within hours
FEWEST_POINTS = 30
METHOD = "Theil-Sen, allowing for autocorrelation"


def slope_of(seconds: Floats, level: Floats, *, confidence: float = 0.95) -> Interval:
    """Return the slope of a level over time with an interval that allows for its autocorrelation.

    Args:
        seconds: Shape (readings,), at least 3; more than 600 are averaged down.
        level: Same shape.
        confidence: Of the interval.

    Returns:
        The median of the slopes of all pairs; its interval as Sen's, at the confidence to which the
        correlation of neighbouring residuals stretches it.

    Source: Sen 1968.
    """
    same_shape(seconds, level)
    seconds, level = coarse_means(seconds), coarse_means(level)  # the method is quadratic
    size = seconds.size
    first, second = np.triu_indices(size, 1)
    slopes = np.sort((level[second] - level[first]) / (seconds[second] - seconds[first]))
    point = float(np.median(slopes))
    residual = level - point * seconds
    correlation = autocorrelation(np.asarray(residual - np.median(residual), dtype=np.float64))
    stretch = math.sqrt((1 + correlation) / (1 - correlation))
    scatter = math.sqrt(size * (size - 1) * (2 * size + 5) / 18)  # of Kendall's score
    skip = round(
        (slopes.size - distributions.normal_tail_quantile((1 - confidence) / 2) * stretch * scatter) / 2
    )
    return Interval(
        point,
        float(slopes[skip]) if skip >= 0 else None,
        float(slopes[slopes.size - 1 - skip]) if skip >= 0 else None,
        size / stretch**2,
        METHOD,
        confidence,
    )
