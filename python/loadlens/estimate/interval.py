"""What every estimator here returns: a point with its interval, or the reason why there is none.

Pure values; nothing here knows a metric, a unit or a trial. `analyse` turns them into figures of a report.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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

    def covers(self, value: float) -> bool:
        """Whether the interval contains `value`; an open end contains everything beyond."""
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class Insufficient:
    """No honest answer from these observations, and what would give one."""

    reason: str


def product(*parts: Interval, method: str) -> Interval:
    """Return the product of positive quantities that err each by itself.

    Args:
        parts: One at least. Errors of their logarithms are added in squares; an end that one of them leaves
            open, or that is not above zero, is open.
        method: How it was come by.
    """
    point = math.prod(part.point for part in parts)

    def far(end: Callable[[Interval], float | None]) -> float | None:
        ends = [end(part) for part in parts]
        known = [value for value in ends if value is not None and value > 0]
        if len(known) < len(ends):
            return None
        return math.hypot(*(math.log(v / part.point) for v, part in zip(known, parts, strict=True)))

    below, above = far(lambda part: part.low), far(lambda part: part.high)
    return Interval(
        point,
        None if below is None else point * math.exp(-below),
        None if above is None else point * math.exp(above),
        min(part.independent for part in parts),
        method,
    )


def total(*parts: Interval, method: str) -> Interval:
    """Return the sum of quantities that err each by itself.

    Args:
        parts: One at least. Their errors are added in squares at each end; an end that one of them leaves
            open is open.
        method: How it was come by.
    """
    point = math.fsum(part.point for part in parts)

    def far(ends: list[float | None]) -> float | None:
        known = [abs(end - part.point) for end, part in zip(ends, parts, strict=True) if end is not None]
        return math.hypot(*known) if len(known) == len(ends) else None

    below, above = far([part.low for part in parts]), far([part.high for part in parts])
    return Interval(
        point,
        None if below is None else point - below,
        None if above is None else point + above,
        min(part.independent for part in parts),
        method,
    )


def difference(one: Interval, other: Interval, *, method: str) -> Interval:
    """Return how far one quantity lies above another; their errors are added as those of `total` are."""
    low, high = (None if end is None else -end for end in (other.high, other.low))
    return total(one, replace(other, point=-other.point, low=low, high=high), method=method)


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
