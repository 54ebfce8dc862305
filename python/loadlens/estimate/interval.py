"""Results of every estimator here: a point with its interval, or the reason why there is none.

Pure values without metric, unit or trial; `measure` turns them into figures of a report.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Interval:
    """A point and the interval around it; an end that the evidence cannot place is open (none)."""

    point: float
    low: float | None
    high: float | None
    independent: float  # effective number of independent observations behind it
    method: str
    confidence: float = 0.95

    @property
    def ratio(self) -> float | None:
        """Upper end over lower end; none when an end is open or not above zero."""
        if self.low is None or self.high is None or self.low <= 0:
            return None
        return self.high / self.low

    @property
    def half_width(self) -> float:
        """Half of what lies between its ends; with an open one its point, as if it could be nothing."""
        if self.low is None or self.high is None:
            return self.point
        return (self.high - self.low) / 2

    def scaled_to(self, point: float) -> Interval:
        """Return an interval about another point, with the same relative ends."""
        times = point / self.point if self.point > 0 else 1.0
        low, high = (None if end is None else end * times for end in (self.low, self.high))
        return replace(self, point=point, low=low, high=high)

    def covers(self, value: float) -> bool:
        """True if the interval contains `value`; an open end contains everything beyond."""
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class Insufficient:
    """No honest answer from these observations, and what would give one."""

    reason: str


Measured = Interval | Insufficient  # a value, or why there is none


def product(*parts: Interval, method: str) -> Interval:
    """Return the product of positive quantities that err independently.

    Args:
        parts: One at least. Errors of their logarithms are added in squares; an end that one of them leaves
            open, or that is not above zero, is open.
        method: Label of the figure.
    """
    point = math.prod(part.point for part in parts)
    below, above = _errors(parts, lambda end, at: math.log(end / at) if end > 0 else None)
    low = None if below is None else point * math.exp(-below)
    high = None if above is None else point * math.exp(above)
    return Interval(point, low, high, min(part.independent for part in parts), method)


def total(*parts: Interval, method: str) -> Interval:
    """Return the sum of quantities that err independently.

    Args:
        parts: One at least. Their errors are added in squares at each end; an end that one of them leaves
            open is open.
        method: Label of the figure.
    """
    point = math.fsum(part.point for part in parts)
    below, above = _errors(parts, lambda end, at: abs(end - at))
    low = None if below is None else point - below
    high = None if above is None else point + above
    return Interval(point, low, high, min(part.independent for part in parts), method)


def _errors(
    parts: Sequence[Interval], error: Callable[[float, float], float | None]
) -> tuple[float | None, float | None]:
    """Return the errors of all parts added in squares, below and above; none at an open end."""

    def added(ends: Sequence[float | None]) -> float | None:
        errors = [
            None if end is None else error(end, part.point) for end, part in zip(ends, parts, strict=True)
        ]
        placed = [value for value in errors if value is not None]
        return math.hypot(*placed) if len(placed) == len(errors) else None

    return added([part.low for part in parts]), added([part.high for part in parts])


def difference(minuend: Interval, subtrahend: Interval, *, method: str) -> Interval:
    """Return one quantity minus another; their errors are added as those of `total` are."""
    low, high = (None if end is None else -end for end in (subtrahend.high, subtrahend.low))
    return total(minuend, replace(subtrahend, point=-subtrahend.point, low=low, high=high), method=method)


def inverse(part: Interval) -> Interval:
    """One over a positive quantity."""
    low, high = (None if end is None or end <= 0 else 1 / end for end in (part.high, part.low))
    return Interval(1 / part.point, low, high, part.independent, part.method, part.confidence)


class ShapeError(ValueError):
    """Arrays that must match do not."""


def same_shape(*arrays: Floats | Ints | Bools) -> None:
    """Raise ShapeError unless all arrays have one shape."""
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise ShapeError(f"arrays differ in shape: {', '.join(str(array.shape) for array in arrays)}")
