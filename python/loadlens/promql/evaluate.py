"""The value of an expression at a moment, and over a part of a trial.

A vector is a list of points, one for each series. Labels are kept as Prometheus keeps them: what computes
drops the name, aggregation keeps what it groups by, arithmetic between vectors pairs series of equal labels.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loadlens.promql import over_time
from loadlens.promql.histograms import bucket_quantile
from loadlens.promql.parse import PromqlError
from loadlens.promql.series import Series
from loadlens.promql.syntax import (
    COMPARISONS,
    Aggregate,
    Binary,
    Call,
    Expression,
    Negative,
    Number,
    Range,
    Selector,
    kind_of,
)

NAME = "__name__"
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a vector; a scalar has no labels."""

    labels: Labels  # sorted by name
    value: float


@dataclass(frozen=True, slots=True)
class _At:
    """Inputs of an evaluation."""

    series: Sequence[Series]
    when: float
    range_s: float  # the length of the whole part


def evaluate(
    expression: Expression, series: Sequence[Series], *, at_s: float, range_s: float
) -> tuple[Point, ...]:
    """Return the value at a moment; a scalar is a point without labels.

    Args:
        expression: As parsed.
        series: All there are; times in seconds on the clock of `at_s`.
        at_s: The moment.
        range_s: What `$__range` stands for, seconds.

    Raises:
        PromqlError: Two series of the result have the same labels.
    """
    points = _vector(expression, _At(series, at_s, range_s))
    seen: set[Labels] = set()
    for point in points:
        if point.labels in seen:
            raise PromqlError(f"two series of the result have the labels {_shown(point.labels)}")
        seen.add(point.labels)
    return tuple(points)


def evaluate_over(
    expression: Expression,
    series: Sequence[Series],
    *,
    begin_s: float,
    end_s: float,
    step_s: float,
    range_s: float,
) -> dict[Labels, list[tuple[float, float]]]:
    """Return the values at each step, both ends included: labels -> (time, value)."""
    by_labels: dict[Labels, list[tuple[float, float]]] = {}
    for number in range(math.floor((end_s - begin_s) / step_s + 1e-9) + 1):
        when = begin_s + number * step_s
        for point in evaluate(expression, series, at_s=when, range_s=range_s):
            by_labels.setdefault(point.labels, []).append((when, point.value))
    return by_labels


def _vector(expression: Expression, at: _At) -> list[Point]:
    match expression:
        case Number(value):
            return [Point((), value)]
        case Selector():
            offset = expression.offset_s
            values = [(series, series.at(at.when - offset)) for series in _fitting(expression, at)]
            return [Point(_sorted(series.labels), value) for series, value in values if value is not None]
        case Call():
            return _call(expression, at)
        case Aggregate():
            return _aggregate(expression, at)
        case Binary():
            return _binary(expression, at)
        case Negative(operand):
            return [Point(_nameless(point.labels), -point.value) for point in _vector(operand, at)]
        case Range():
            raise PromqlError("a range of samples has no value of its own")


def _scalar(expression: Expression, at: _At) -> float:
    points = _vector(expression, at)
    return points[0].value if points else math.nan


# --- selectors and functions ------------------------------------------------------------------------------


def _fitting(selector: Selector, at: _At) -> Iterator[Series]:
    for series in at.series:
        if all(matcher.fits(series.labels) for matcher in selector.matchers):
            yield series


def _call(call: Call, at: _At) -> list[Point]:
    name, arguments = call.function, call.arguments
    ranged = arguments[-1]
    if isinstance(ranged, Range):
        p = _scalar(arguments[0], at) if name == "quantile_over_time" else 0.0
        return list(_over_range(name, p, ranged, at))
    match name:
        case "scalar":
            points = _vector(arguments[0], at)
            return [Point((), points[0].value if len(points) == 1 else math.nan)]
        case "vector":
            return _vector(arguments[0], at)
        case "histogram_quantile":
            return _histogram_quantile(_scalar(arguments[0], at), _vector(arguments[1], at))
        case "round" | "clamp_min" | "clamp_max":
            given = _scalar(arguments[1], at) if len(arguments) > 1 else 1.0
            change = _ROUNDING[name]
            return _mapped(_vector(arguments[0], at), lambda value: change(value, given))
        case _:
            return _mapped(_vector(arguments[0], at), _BY_VALUE[name])


def _over_range(name: str, p: float, ranged: Range, at: _At) -> Iterator[Point]:
    selector = ranged.selector
    end = at.when - selector.offset_s
    begin = end - (at.range_s if ranged.seconds is None else ranged.seconds)
    for series in _fitting(selector, at):
        times, values = series.between(begin, end)
        if name == "quantile_over_time":
            value = over_time.quantile(p, values) if values else None
        else:
            value = over_time.over_range(name, times, values, begin, end)
        if value is not None:
            labels = _sorted(series.labels)
            yield Point(labels if name == "last_over_time" else _nameless(labels), value)


def _histogram_quantile(p: float, points: Sequence[Point]) -> list[Point]:
    groups: dict[Labels, list[tuple[float, float]]] = {}
    for point in points:
        labels = dict(point.labels)
        try:
            end = float(labels.pop("le", "none"))
        except ValueError:
            continue  # no bucket
        groups.setdefault(_nameless(_sorted(labels)), []).append((end, point.value))
    return [Point(labels, bucket_quantile(p, buckets)) for labels, buckets in groups.items()]


def _mapped(points: Sequence[Point], change: Callable[[float], float]) -> list[Point]:
    return [Point(_nameless(point.labels), change(point.value)) for point in points]


def _logarithm(base: float) -> Callable[[float], float]:
    def of(value: float) -> float:
        if value > 0:
            return math.log(value) / math.log(base) if base != 2 else math.log2(value)
        return -math.inf if value == 0 else math.nan

    return of


def _whole(change: Callable[[float], int]) -> Callable[[float], float]:
    return lambda value: float(change(value)) if math.isfinite(value) else value


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _round(value: float, to: float) -> float:
    """Return the nearest multiple; a tie goes up."""
    if not math.isfinite(value) or not math.isfinite(to) or to == 0:
        return math.nan if to == 0 else value
    inverse = 1.0 / to
    return math.floor(value * inverse + 0.5) / inverse


_BY_VALUE: Final[Mapping[str, Callable[[float], float]]] = {
    "abs": abs,
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "sqrt": lambda value: math.sqrt(value) if value >= 0 else math.nan,
    "exp": _exp,
    "ln": _logarithm(math.e),
    "log2": _logarithm(2),
    "log10": _logarithm(10),
}
_ROUNDING: Final[Mapping[str, Callable[[float, float], float]]] = {
    "round": _round,
    "clamp_min": max,
    "clamp_max": min,
}


# --- aggregation ------------------------------------------------------------------------------------------


def _aggregate(aggregate: Aggregate, at: _At) -> list[Point]:
    groups: dict[Labels, list[float]] = {}
    for point in _vector(aggregate.argument, at):
        key = _labels(point.labels, aggregate.labels, only=not aggregate.is_without)
        groups.setdefault(key, []).append(point.value)
    if aggregate.parameter is not None:
        p = _scalar(aggregate.parameter, at)
        return [Point(labels, over_time.quantile(p, values)) for labels, values in groups.items()]
    return [Point(labels, _TOGETHER[aggregate.operator](values)) for labels, values in groups.items()]


_TOGETHER: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "sum": math.fsum,
    "avg": lambda values: math.fsum(values) / len(values),
    "min": min,
    "max": max,
    "count": lambda values: float(len(values)),
    "stddev": over_time.standard_deviation,
    "group": lambda _: 1.0,
}


# --- arithmetic and comparisons ---------------------------------------------------------------------------


def _binary(binary: Binary, at: _At) -> list[Point]:
    left, right = _vector(binary.left, at), _vector(binary.right, at)
    scalars = (kind_of(binary.left) == "scalar", kind_of(binary.right) == "scalar")
    if scalars == (True, True):
        return [Point((), _computed(binary.operator, left[0].value, right[0].value))]
    if scalars == (False, False):
        pairs = _paired(left, right, binary)
    elif scalars[1]:
        pairs = [(point, point.value, right[0].value) for point in left]
    else:
        pairs = [(point, left[0].value, point.value) for point in right]
    values = [(point, _computed(binary.operator, first, second)) for point, first, second in pairs]
    if binary.operator in COMPARISONS and not binary.is_bool:
        return [point for point, value in values if value]
    return [Point(_nameless(point.labels), value) for point, value in values]


def _paired(
    left: Sequence[Point], right: Sequence[Point], binary: Binary
) -> list[tuple[Point, float, float]]:
    """Pair each series of the left with the one of the right that has the same labels."""
    others: dict[Labels, Point] = {}
    for point in right:
        key = _labels(point.labels, binary.matching, only=binary.is_on)
        if key in others:
            raise PromqlError(f"two series on the right of {binary.operator} have the labels {_shown(key)}")
        others[key] = point
    pairs = []
    seen: set[Labels] = set()
    for point in left:
        key = _labels(point.labels, binary.matching, only=binary.is_on)
        if key not in others:
            continue
        if key in seen:
            raise PromqlError(f"two series on the left of {binary.operator} have the labels {_shown(key)}")
        seen.add(key)
        if binary.is_on:
            kept = _labels(point.labels, (*binary.matching, NAME), only=True)
        else:
            kept = tuple(pair for pair in point.labels if pair[0] not in binary.matching)
        pairs.append((Point(kept, point.value), point.value, others[key].value))
    return pairs


def _computed(sign: str, left: float, right: float) -> float:
    """Compute as IEEE 754 does in Go: no operation fails."""
    match sign:
        case "/":
            if right:
                return left / right
            endless = math.copysign(math.inf, left) * math.copysign(1.0, right)
            return math.nan if left == 0 or math.isnan(left) else endless
        case "%":
            return math.nan if right == 0 or math.isinf(left) else math.fmod(left, right)
        case "^":
            try:
                value = left**right
                return value if isinstance(value, float) else math.nan
            except (OverflowError, ZeroDivisionError):
                return math.inf
        case _:
            return float(_SIGNS[sign](left, right))


_SIGNS: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


# --- labels -----------------------------------------------------------------------------------------------


def _sorted(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted((name, value) for name, value in labels.items() if value))


def _labels(labels: Labels, names: Sequence[str], *, only: bool) -> Labels:
    """Return only the labels of these names, or all but these and the name of the series."""
    if only:
        return tuple(pair for pair in labels if pair[0] in names)
    return tuple(pair for pair in labels if pair[0] not in (*names, NAME))


def _nameless(labels: Labels) -> Labels:
    return _labels(labels, (), only=False)


def _shown(labels: Labels) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in labels) + "}"
