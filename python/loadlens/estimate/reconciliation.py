"""Counts of requests by all sources, and what explains a difference.

Bounds, not tolerances: own scrapes are known exactly, a foreign periodic source gives one more or one less,
and requests in flight at an edge that was not drained may fall on either side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from loadlens.estimate import distributions
from loadlens.estimate.interval import Floats, Insufficient, Interval, same_shape

USUAL_PERIODS_S = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0)  # of scrapes and health checks


@dataclass(frozen=True, slots=True)
class Part:
    """A source of requests that the server counts: how many at least and at most."""

    source: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Expected and observed count of a server."""

    expected_low: int
    expected_high: int
    observed: int
    unexplained: int  # above 0: more than was sent; below 0: fewer; 0: within the bounds


def reconcile(observed: int, parts: tuple[Part, ...]) -> Reconciliation:
    """Compare a server's count with the sum of all who may have sent.

    Args:
        observed: Requests that the server counted over the window.
        parts: All sources of requests, with exact counts or bounds.

    Returns:
        The summed bounds and the distance from the nearer one.
    """
    low, high = sum(part.low for part in parts), sum(part.high for part in parts)
    over = observed - high if observed > high else min(0, observed - low)
    return Reconciliation(low, high, observed, over)


def periodic(source: str, seconds: float, period_s: float) -> Part:
    """Return how often a source that fires every `period_s` may have fired in a window of unknown phase."""
    return Part(source, math.floor(seconds / period_s), math.ceil(seconds / period_s) + 1)


@dataclass(frozen=True, slots=True)
class Excess:
    """Growth of an unexplained surplus with time and with requests."""

    per_second: Interval  # a source of its own, such as a scraper
    per_request: Interval  # proportional to what was sent, such as retries


def attribute_excess(
    seconds: Floats,
    sent: Floats,
    excess: Floats,
    *,
    confidence: float = 0.95,
    scatter: Floats | None = None,
) -> Excess | Insufficient:
    """Split a surplus into a part that grows with time and one that grows with the requests sent.

    Args:
        seconds: Length of each window, shape (windows,); at least 5.
        sent: Requests sent in each window, shape (windows,); must vary.
        excess: Requests that the server counted beyond, shape (windows,).
        confidence: Of the intervals; 0.99 where one that excludes zero is to be a finding.
        scatter: Variance of each surplus, in any unit; none: all alike. Retries scatter as what was sent.

    Returns:
        Both coefficients by least squares, each window by one over its variance, with t intervals.
    """
    same_shape(seconds, sent, excess)
    if seconds.size < 5:
        return Insufficient(f"{seconds.size} windows, needs 5")
    weight = np.ones(seconds.size) if scatter is None else 1 / np.sqrt(scatter)
    design, excess = np.column_stack([seconds, sent]) * weight[:, None], excess * weight
    if np.linalg.cond(design / np.linalg.norm(design, axis=0)) > 1e3:
        return Insufficient("what was sent grew in step with time: the two cannot be separated")
    fitted, *_ = np.linalg.lstsq(design, excess, rcond=None)
    residual = excess - design @ fitted
    freedom = seconds.size - 2
    covariance = np.linalg.inv(design.T @ design) * float(residual @ residual) / freedom
    half = distributions.t_quantile(0.5 + confidence / 2, freedom) * np.sqrt(np.diag(covariance))
    intervals = [
        Interval(
            float(point),
            float(point - h),
            float(point + h),
            float(seconds.size),
            "least squares, t",
            confidence,
        )
        for point, h in zip(fitted, half, strict=True)
    ]
    return Excess(intervals[0], intervals[1])


def period_of(per_second: Interval) -> float | None:
    """Return the usual period of scrapes and checks that a constant surplus fits, seconds.

    Args:
        per_second: Requests per second beyond those that were sent.

    Returns:
        The only one of 1, 2, 5, 10, 15, 30 and 60 s whose rate lies in the interval; none when several do, or
        none.
    """
    fitting = [period for period in USUAL_PERIODS_S if per_second.covers(1 / period)]
    return fitting[0] if len(fitting) == 1 else None
