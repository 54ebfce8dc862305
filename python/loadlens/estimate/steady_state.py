"""Warm-up and steady state: where the settled part of a trial begins, and whether there is one.

Three questions in this order: do levels shift (segmentation), does a transient fade (MSER), and is there
still a trend after the cut (then there is no steady state, whatever MSER says: it never sees drift).

Sources: K. P. White, Simulation 69 (6), 1997 (MSER); I. E. Auger and C. E. Lawrence, Bull. Math. Biol. 51,
1989 (optimal segmentation); H. B. Mann, Econometrica 13, 1945 and M. G. Kendall 1975 (trend test);
E. Barrett et al., OOPSLA 2017 (classes of warm-up).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loadlens.estimate import distributions
from loadlens.estimate.interval import Bools, Floats, Insufficient, same_shape

MOST_POINTS = 600  # the segmentation is quadratic; longer series are averaged down first
FEWEST_POINTS = 10
SHORTEST_SEGMENT = 5
SAME_LEVEL = 0.05  # segments within 5 % of the last one are the same level
TREND_LEVEL = 0.01
SMALLEST_TREND = 0.10  # change over the run below which a trend does not matter
SMALLEST_P = 1e-300  # below, the quantile of the normal distribution is infinite


@dataclass(frozen=True, slots=True)
class Trend:
    """A monotone trend over a series."""

    change: float  # over the whole series, log scale: 0.1 is about 10 %
    p_value: float

    @property
    def matters(self) -> bool:
        """True if it is both improbable by chance and large enough to care."""
        return self.p_value < TREND_LEVEL and abs(self.change) > math.log(1 + SMALLEST_TREND)


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Steady part of a series."""

    kind: Literal["flat", "warmup", "slowdown", "no_steady", "cyclic"]
    cut: int  # points to leave out, in points of the series as given
    fraction: float  # of the series that is steady
    trend: Trend

    @property
    def is_steady(self) -> bool:
        """True if the part after the cut may be summarised by one number."""
        return self.kind != "no_steady"


def steadiness(
    series: Floats, *, left_out: Bools | None = None, is_periodic: bool = False
) -> Steadiness | Insufficient:
    """Return where the steady part of a series of positive figures begins.

    Args:
        series: One figure an interval, such as the median response time, above zero, shape (intervals,);
            NaN where nothing was seen. At least 10 that are not NaN.
        left_out: Intervals that overlap a pause, same shape: each pause would be two shifts of the level.
        is_periodic: Whether pauses or figures keep a period (`pauses.beat_of`).

    Returns:
        The larger cut of segmentation and MSER. `no_steady` when the cut passes the middle of the series or
        a trend above 10 % remains after it; `slowdown` when the level after the cut is higher than before;
        `cyclic` instead of `flat` where there is a period: one number stands for whole periods only.

    Raises:
        ShapeError: `left_out` is of another length.
    """
    figures = np.array(series, dtype=np.float64)
    if left_out is not None:
        same_shape(figures, left_out)
        figures[left_out] = np.nan
    seen = np.flatnonzero(np.isfinite(figures) & (figures > 0))
    if seen.size < FEWEST_POINTS:
        return Insufficient(f"{seen.size} intervals with figures, needs {FEWEST_POINTS}")
    logs, width = _coarse(np.log(figures[seen]))
    cut = max(level_cut(logs), mser_cut(logs))
    rest = logs[cut:]
    trend = trend_of(rest)
    in_series = int(seen[min(cut * width, seen.size - 1)]) if cut else 0
    fraction = 1 - in_series / figures.size
    if cut > logs.size / 2 or trend.matters:
        kind: Literal["flat", "warmup", "slowdown", "no_steady", "cyclic"] = "no_steady"
    elif cut == 0:
        kind = "cyclic" if is_periodic else "flat"
    else:
        kind = "slowdown" if rest.mean() > logs[:cut].mean() + SAME_LEVEL else "warmup"
    return Steadiness(kind, in_series, fraction, trend)


def mser_cut(series: Floats) -> int:
    """Return the truncation point that minimises the standard error of what is left.

    Args:
        series: Shape (points,).

    Returns:
        Number of points to leave out, at most half.

    Source: White 1997: argmin over d of sum((y_i - mean)^2) / (n - d)^2 for i >= d.
    """
    size = series.size
    remaining = np.arange(size, 0, -1)
    centred = series - series[-1]  # else rounding decides where the rest of the series is constant
    sums = np.cumsum(centred[::-1])[::-1]
    squares = np.cumsum((centred**2)[::-1])[::-1]
    statistic = (squares - sums**2 / remaining) / remaining**2
    return int(np.argmin(statistic[: size // 2 + 1]))


def level_cut(series: Floats) -> int:
    """Return where the last level of a series begins.

    Args:
        series: Log of the figures, shape (points,).

    Returns:
        Start of the last run of segments whose mean is within 5 % of the last segment's; 0 without shifts.
    """
    starts = segments(series)
    ends = [*starts[1:], series.size]
    means = [float(series[start:end].mean()) for start, end in zip(starts, ends, strict=True)]
    first = len(starts) - 1
    while first > 0 and abs(means[first - 1] - means[-1]) <= SAME_LEVEL:
        first -= 1
    return starts[first]


def segments(series: Floats) -> list[int]:
    """Return the starts of the segments of piecewise constant level that fit best at a price per segment.

    Args:
        series: Shape (points,), at most 600 points.

    Returns:
        Starts, the first being 0; every segment has at least 5 points.

    Source: Auger and Lawrence 1989 (dynamic programming, exact); the price is 4 s^2 log n, with s from the
    median absolute first difference, inflated by the autocorrelation at lag 1.
    """
    size = series.size
    if size < 2 * SHORTEST_SEGMENT:
        return [0]
    price = 4 * _long_run_noise(series) * math.log(size)
    total = np.concatenate([[0.0], np.cumsum(series)])
    square = np.concatenate([[0.0], np.cumsum(series**2)])
    best = np.full(size + 1, np.inf)
    best[0] = -price
    came_from = np.zeros(size + 1, dtype=np.int64)
    for end in range(SHORTEST_SEGMENT, size + 1):
        start = np.arange(0, end - SHORTEST_SEGMENT + 1)
        length = end - start
        cost = square[end] - square[start] - (total[end] - total[start]) ** 2 / length
        candidates = best[start] + cost + price
        came_from[end] = int(np.argmin(candidates))
        best[end] = candidates[came_from[end]]
    starts = []
    end = size
    while end > 0:
        end = int(came_from[end])
        starts.append(end)
    return starts[::-1]


def trend_of(series: Floats) -> Trend:
    """Return the monotone trend of a series, allowing for its autocorrelation.

    Args:
        series: Log of the figures, shape (points,), at least 3.

    Returns:
        Change over the series by the Theil-Sen slope, and the p-value of the Mann-Kendall test with its
        variance inflated by (1 + r) / (1 - r). r comes from the residuals of the better monotone fit: those
        of a straight line mistake a curved trend for correlation and lose the power to see it.
    """
    size = series.size
    if size < 3:
        return Trend(0.0, 1.0)
    slope = distributions.theil_sen_slope(series)
    fits = (distributions.rising_fit(series), -distributions.rising_fit(-series))
    residuals = [np.asarray(series - fit, dtype=np.float64) for fit in fits]
    correlation = autocorrelation(min(residuals, key=lambda r: float(r @ r)))
    plain = distributions.order_p_value(series)
    if math.isnan(plain):  # all values are equal
        return Trend(0.0, 1.0)
    z = distributions.normal_tail_quantile(max(plain, SMALLEST_P) / 2)
    z /= math.sqrt((1 + correlation) / (1 - correlation))
    return Trend(slope * (size - 1), 2 * distributions.normal_tail(z))


def autocorrelation(residuals: Floats) -> float:
    """Return the autocorrelation of a series at lag 1, kept within 0 and 0.95; 0 for a constant one."""
    centred = residuals - residuals.mean()
    power = float(centred @ centred)
    if power == 0:
        return 0.0
    return min(0.95, max(0.0, float(centred[1:] @ centred[:-1]) / power))


def coarse_means(series: Floats, most: int = MOST_POINTS) -> Floats:
    """Return block means of a series such that at most `most` points are left."""
    return _coarse(series, most)[0]


def _coarse(series: Floats, most: int = MOST_POINTS) -> tuple[Floats, int]:
    width = max(1, math.ceil(series.size / most))
    whole = series.size // width * width
    return series[:whole].reshape(-1, width).mean(axis=1), width


def _long_run_noise(series: Floats) -> float:
    differences = np.diff(series)
    scale = 1.4826 * float(np.median(np.abs(differences))) / math.sqrt(2)
    if scale == 0:
        scale = float(differences.std()) / math.sqrt(2) or 1e-12
    # Correlated noise wanders; without this, wandering is taken for shifts.
    correlation = autocorrelation(series - _running_median(series))
    return scale**2 * (1 + correlation) / (1 - correlation)


def _running_median(series: Floats, width: int = 31) -> Floats:
    width = min(width, series.size - 1 + series.size % 2)
    half = width // 2
    padded = np.pad(series, half, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    return np.asarray(np.median(windows, axis=1), dtype=np.float64)
