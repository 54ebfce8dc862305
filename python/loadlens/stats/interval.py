"""What every estimator here returns: a point with its interval, or the reason why there is none.

Pure values; nothing here knows a metric, a unit or a trial. `analyse` turns them into figures of a report.
"""

from __future__ import annotations

from dataclasses import dataclass

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

    def covers(self, value: float) -> bool:
        """Whether the interval contains `value`; an open end contains everything beyond."""
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class Insufficient:
    """No honest answer from these observations, and what would give one."""

    reason: str


class ShapeError(ValueError):
    """Arrays that must match do not."""


def same_shape(*arrays: Floats | Ints | Bools) -> None:
    """Raise ShapeError unless all arrays have one shape."""
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise ShapeError(f"arrays differ in shape: {', '.join(str(array.shape) for array in arrays)}")
