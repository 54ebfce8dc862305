"""Whether something grows with time: memory that leaks, requests that become dearer, a limit that nears.

Sources: P. K. Sen, J. Amer. Stat. Assoc. 63, 1968 (slope with its interval); H. B. Mann 1945 (trend test).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats as distributions

from loadlens.estimate.interval import Floats, Insufficient, Interval, same_shape
from loadlens.estimate.steady_state import (
    SMALLEST_TREND,
    TREND_LEVEL,
    Trend,
    autocorrelation,
    coarse_means,
    trend_of,
)

LEAK_PER_MINUTE = 0.01  # of the level: less does not matter within hours
FEWEST_POINTS = 30
SETTLED = 0.25  # of the slope before: the last third grows by less, it has levelled off
METHOD = "Theil-Sen, allowing for autocorrelation"

Kind = Literal["steady", "levelled", "leak", "falling"]


@dataclass(frozen=True, slots=True)
class Growth:
    """How a level such as memory changed over a trial after its warm-up."""

    kind: Kind
    per_second: Interval  # of the level's own unit
    level: float  # at the end
    trend: Trend  # of the level's logarithm
    to_limit_s: float | None  # until the limit at this pace; none without limit or growth


def growth(seconds: Floats, level: Floats, *, limit: float | None = None) -> Growth | Insufficient:
    """Return whether a level grows without end.

    Args:
        seconds: When it was read, ascending, shape (readings,); at least 30, the warm-up left out.
        level: Above zero, such as resident memory, open files or rows, same shape.
        limit: What it must not reach, same unit.

    Returns:
        `leak` when even the lower end of the slope is above 1 % of the level a minute and the last third
        still grows at a quarter of the pace before, at least; `levelled` when it grew and does not any more;
        `falling`; else `steady`.
    """
    same_shape(seconds, level)
    if seconds.size < FEWEST_POINTS:
        return Insufficient(f"{seconds.size} readings, needs {FEWEST_POINTS}")
    if np.any(level <= 0):
        return Insufficient("a level of zero or below")
    time, figures = coarse_means(seconds), coarse_means(level)
    slope = slope_of(time, figures)
    trend = trend_of(np.log(figures))
    some = max(3, figures.size // 20)
    begin, end = float(np.median(figures[:some])), float(np.median(figures[-some:]))
    has_changed = trend.p_value < TREND_LEVEL and abs(math.log(end / begin)) > math.log1p(SMALLEST_TREND)
    third = figures.size // 3
    late = slope_of(time[-third:], figures[-third:])
    early = slope_of(time[:-third], figures[:-third])
    pace = 0.0 if slope.low is None else 60 * slope.low / float(np.median(figures))
    kind: Kind = "steady"
    if has_changed or pace > LEAK_PER_MINUTE:
        if end < begin:
            kind = "falling"
        elif late.point < SETTLED * early.point:
            kind = "levelled"
        elif pace > LEAK_PER_MINUTE:
            kind = "leak"
    reach = None
    if limit is not None and kind == "leak" and slope.point > 0:
        reach = max(0.0, (limit - end) / slope.point)
    return Growth(kind, slope, end, trend, reach)


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
    skip = round((slopes.size - float(distributions.norm.isf((1 - confidence) / 2)) * stretch * scatter) / 2)
    return Interval(
        point,
        float(slopes[skip]) if skip >= 0 else None,
        float(slopes[slopes.size - 1 - skip]) if skip >= 0 else None,
        size / stretch**2,
        METHOD,
        confidence,
    )


@dataclass(frozen=True, slots=True)
class Drift:
    """Whether requests became slower over a trial, and what went with it."""

    trend: Trend
    companions: tuple[str, ...]  # series that trend the same way

    @property
    def is_explained(self) -> bool:
        """Whether it became slower and something in the service or its data grew too."""
        return self.trend.matters and self.trend.change > 0 and bool(self.companions)


def drift(response_s: Floats, others: Mapping[str, Floats]) -> Drift | Insufficient:
    """Return whether response times drift, and which other series drift with them.

    Args:
        response_s: Median or mean of each interval, above zero, shape (intervals,); NaN where nothing was
            seen.
        others: Series of the same trial by name, such as CPU time of a request, memory or rows; any length.

    Returns:
        The trend of the logarithm, and the names of what trends the same way with a change that matters.
    """
    logs = _logs(response_s)
    if logs.size < FEWEST_POINTS:
        return Insufficient(f"{logs.size} intervals with figures, needs {FEWEST_POINTS}")
    trend = trend_of(logs)
    along = [
        name
        for name, series in others.items()
        if (own := _logs(series)).size >= FEWEST_POINTS
        and (also := trend_of(own)).matters
        and also.change * trend.change > 0
    ]
    return Drift(trend, tuple(along))


def _logs(series: Floats) -> Floats:
    seen = series[np.isfinite(series) & (series > 0)]
    return coarse_means(np.asarray(np.log(seen), dtype=np.float64))
