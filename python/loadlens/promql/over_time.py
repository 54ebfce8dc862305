"""Functions of the samples in a range: growth with Prometheus's extrapolation, averages, extremes.

The samples of a range seldom lie on its ends. Growth between the first and the last of them is extrapolated
to an end that lies within 1.1 mean distances of a sample, otherwise by half a distance; that of a counter
never to a moment before it was zero. A counter that falls was set to zero: all of its new value is growth.

Source: Prometheus 2.42, promql/functions.go, extrapolatedRate and its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

Values = Sequence[float]
CLOSE = 1.1  # mean distances between samples within which an end of the range is taken as reached


def extrapolated_growth(
    times: Values, values: Values, begin: float, end: float, *, is_counter: bool
) -> float | None:
    """Return the growth over the range [begin, end], none with fewer than two samples.

    Args:
        times: Of the samples, seconds, within the range.
        values: Of the samples.
        begin: Of the range, seconds.
        end: Of the range, seconds.
        is_counter: True if falls are resets.
    """
    if len(times) < 2:
        return None
    growth = values[-1] - values[0]
    if is_counter:
        growth += sum(before for before, now in pairwise(values) if now < before)
    covered = times[-1] - times[0]
    if covered <= 0:
        return None
    to_begin, to_end = times[0] - begin, end - times[-1]
    distance = covered / (len(times) - 1)
    if is_counter and growth > 0 and values[0] >= 0:
        to_begin = min(to_begin, covered * (values[0] / growth))  # before that it would have been negative
    reach = covered
    for gap in (to_begin, to_end):
        reach += gap if gap < CLOSE * distance else distance / 2
    return growth * (reach / covered)


def last_step(times: Values, values: Values, *, is_counter: bool) -> float | None:
    """Return the growth between the last two samples; none with fewer."""
    if len(times) < 2 or times[-1] <= times[-2]:
        return None
    is_reset = is_counter and values[-1] < values[-2]
    return values[-1] if is_reset else values[-1] - values[-2]


def quantile(p: float, values: Values) -> float:
    """Return the p-quantile by interpolation between neighbouring ranks; NaN of nothing."""
    if not values or math.isnan(p):
        return math.nan
    if p < 0:
        return -math.inf
    if p > 1:
        return math.inf
    ordered = sorted(values)
    rank = p * (len(ordered) - 1)
    lower = math.floor(rank)
    upper = min(len(ordered) - 1, lower + 1)
    weight = rank - lower
    return ordered[lower] * (1 - weight) + ordered[upper] * weight


def standard_deviation(values: Values) -> float:
    """Return the standard deviation of the population."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


# Functions of the values in the range alone, of which there is one at least.
OF_VALUES: Final[Mapping[str, Callable[[Values], float]]] = {
    "avg_over_time": lambda values: math.fsum(values) / len(values),
    "min_over_time": min,
    "max_over_time": max,
    "sum_over_time": math.fsum,
    "count_over_time": lambda values: float(len(values)),
    "last_over_time": lambda values: values[-1],
    "stddev_over_time": standard_deviation,
    "changes": lambda values: float(sum(now != before for before, now in pairwise(values))),
    "resets": lambda values: float(sum(now < before for before, now in pairwise(values))),
}


def over_range(function: str, times: Values, values: Values, begin: float, end: float) -> float | None:
    """Return the result of a function for the samples of one series in a range; none: no value."""
    if not times:
        return None
    match function:
        case "rate" | "increase" | "delta":
            growth = extrapolated_growth(times, values, begin, end, is_counter=function != "delta")
            return growth / (end - begin) if growth is not None and function == "rate" else growth
        case "irate" | "idelta":
            step = last_step(times, values, is_counter=function == "irate")
            return step / (times[-1] - times[-2]) if step is not None and function == "irate" else step
        case _:
            return OF_VALUES[function](values)
