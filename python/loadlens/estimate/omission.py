"""Waiting that the service time leaves out of the response time.

Nothing is filled in: samples invented at the expected interval are wrong in both directions.

Sources: G. Tene, "How NOT to measure latency" (coordinated omission); B. Schroeder, A. Wierman and
M. Harchol-Balter, NSDI 2006 (open and closed loops).
"""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.estimate.within_trial import quantile

LATE_FLOOR_S = 0.001
LATE_SHARE_OF_MEDIAN = 0.05
MOST_LATE = 0.01  # of the requests: beyond, the service time misleads
HIDDEN = 1.2  # p99 of response time over that of service time


@dataclass(frozen=True, slots=True)
class Omission:
    """Response time over service time of one trial."""

    mean_ratio: float  # mean response / mean service: 1 is none
    tail_ratio: float | None  # p99 of response / p99 of service; none when either is not known


def omission(response: IntervalCounts, service: IntervalCounts) -> Omission | Insufficient:
    """Return how far the service time understates what a user waits.

    Args:
        response: Seconds from due to done, by interval.
        service: Seconds from sent to done, by interval.
    """
    if not response.observed or not service.observed:
        return Insufficient("nothing finished")
    tails = quantile(response, 0.99), quantile(service, 0.99)
    tail_ratio = None
    if isinstance(tails[0], Interval) and isinstance(tails[1], Interval):
        tail_ratio = tails[0].point / tails[1].point
    return Omission(_mean(response) / _mean(service), tail_ratio)


def _mean(counts: IntervalCounts) -> float:
    return float((counts.middle * counts.count).sum()) / counts.observed
