"""How much waiting the service time leaves out of the response time, and whose waiting it was.

Nothing is filled in: samples invented at the expected interval are wrong in both directions.

Sources: G. Tene, "How NOT to measure latency" (coordinated omission); B. Schroeder, A. Wierman and
M. Harchol-Balter, NSDI 2006 (open and closed loops).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.estimate.within_trial import quantile, share

LATE_FLOOR_S = 0.001
LATE_SHARE_OF_MEDIAN = 0.05
MOST_LATE = 0.01  # of the requests: more, and the service time tells another story
HIDDEN = 1.2  # p99 of response time over that of service time


@dataclass(frozen=True, slots=True)
class Omission:
    """What the service time of a trial leaves out."""

    mean_ratio: float  # mean response / mean service: 1 is none
    tail_ratio: float | None  # p99 of response / p99 of service; none when either is not known
    late: Interval | Insufficient  # share that the generator sent later than matters
    lag_p50_s: float  # generator's own, from when a request could leave
    lag_p99_s: float
    lag_max_s: float
    shortfall: float  # share of what was due that was never issued
    verdict: Literal["none", "waited", "late"]


def omission(
    response: IntervalCounts, service: IntervalCounts, lag: IntervalCounts, *, due: int, issued: int
) -> Omission | Insufficient:
    """Return how far the service time understates what a user waits.

    Args:
        response: Seconds from due to done, by interval.
        service: Seconds from sent to done, by interval.
        lag: Seconds by which the generator itself was late, by interval.
        due: Requests that the schedule wanted.
        issued: Requests that were sent.

    Returns:
        `late` when more than 1 % were sent later than 1 ms and 5 % of the median service time: the
        generator's doing; `waited` when the tails differ by a fifth though it was in time: requests waited
        for a connection, which an open load should never be short of; else `none`.
    """
    if not response.observed or not service.observed:
        return Insufficient("nothing finished")
    if not lag.observed:
        return Insufficient("the generator's lateness was not recorded")
    threshold = max(LATE_FLOOR_S, LATE_SHARE_OF_MEDIAN * _at(service, 0.5))
    late = share(lag.above_per_interval(threshold), lag.known_per_interval(threshold))
    tails = quantile(response, 0.99), quantile(service, 0.99)
    tail_ratio = None
    if isinstance(tails[0], Interval) and isinstance(tails[1], Interval):
        tail_ratio = tails[0].point / tails[1].point
    mean_ratio = _mean(response) / _mean(service)
    verdict: Literal["none", "waited", "late"] = "none"
    if isinstance(late, Interval) and late.point > MOST_LATE:
        verdict = "late"
    elif max(tail_ratio or 0.0, mean_ratio) >= HIDDEN:
        verdict = "waited"
    return Omission(
        mean_ratio,
        tail_ratio,
        late,
        _at(lag, 0.5),
        _at(lag, 0.99),
        float(lag.upper.max()),
        1 - issued / due if due else 0.0,
        verdict,
    )


def _mean(counts: IntervalCounts) -> float:
    return float((counts.middle * counts.count).sum()) / counts.observed


def _at(counts: IntervalCounts, p: float) -> float:
    """The p-quantile of what finished, without an interval."""
    _, upper, at_most = counts.finished().distribution()
    return float(upper[np.searchsorted(at_most, p - 1e-12)])
