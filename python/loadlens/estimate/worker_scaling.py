"""Effect of more workers, and whether a prediction is good enough to print.

A model is believed where it was held against a number of workers that it had not seen, and no further than
four times the largest that was measured.

Sources: P. J. Denning and J. P. Buzen 1978 (bounds); M. Stone, J. R. Stat. Soc. B 36, 1974 (hold-out
    validation).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from loadlens.estimate.interval import Insufficient, Interval

TRUSTED_ERROR = 0.10
FURTHEST = 4.0  # times the most workers that were measured


def bound(workers: float, demand_s: float, *, cores: float = math.inf, cpu_s: float = 0.0) -> float:
    """Return the most requests per second that workers can do.

    Args:
        workers: How many there are, each at one request at a time.
        demand_s: Time that a worker is held by one request, above 0.
        cores: That all of them share.
        cpu_s: CPU time of one request.

    Returns:
        min(k / D, cores / D_cpu): workers beyond the cores bring nothing to work that needs them.
    """
    return min(workers / demand_s, cores / cpu_s if cpu_s > 0 else math.inf)


@dataclass(frozen=True, slots=True)
class Validation:
    """A prediction next to what was then measured."""

    error: float  # predicted over measured, minus 1
    is_covered: bool  # the two intervals meet
    may_extrapolate: bool
    reason: str


def validate(
    predicted: Interval, measured: Interval, *, workers: float, most_measured: float
) -> Validation | Insufficient:
    """Return how far a prediction missed the case that was held out, and whether to extrapolate by its model.

    Args:
        predicted: Before the case ran.
        measured: When it had run.
        workers: For which a further prediction is wanted.
        most_measured: The most workers of any measured case.

    Returns:
        Extrapolation is refused when the error exceeds 10 %, or beyond four times the measured.

    Source: Stone 1974.
    """
    if measured.point <= 0:
        return Insufficient("nothing was measured to compare with")
    error = predicted.point / measured.point - 1
    meets = not (_is_below(predicted, measured) or _is_below(measured, predicted))
    if abs(error) > TRUSTED_ERROR:
        reason = f"it missed the held-out case by {error:+.0%}, at most {TRUSTED_ERROR:.0%}"
    elif workers > FURTHEST * most_measured:
        times = workers / most_measured
        reason = f"{workers:g} workers are {times:.1f} times the measured, at most {FURTHEST:g}"
    else:
        reason = f"it missed the held-out case by {error:+.0%}"
        return Validation(error, meets, may_extrapolate=True, reason=reason)
    return Validation(error, meets, may_extrapolate=False, reason=reason)


def _is_below(lower: Interval, upper: Interval) -> bool:
    return lower.high is not None and upper.low is not None and lower.high < upper.low
