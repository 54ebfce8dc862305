"""Laws that hold whatever the service does: Little's law, and what waiting in the generator hides.

With means, N = X (R + Z) is an identity, not a model: figures that break it were lost, counted twice, or
timed from the wrong moment.

Sources: J. D. C. Little, Operations Research 9 (3), 1961; P. J. Denning and J. P. Buzen, ACM Computing
Surveys 10 (3), 1978; G. Tene, "How NOT to measure latency" (coordinated omission).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from loadlens.stats.counts import IntervalCounts
from loadlens.stats.interval import Floats, Insufficient, Interval, same_shape
from loadlens.stats.within import share

TOLERANCE = 0.02  # exact integrals agree to 1 %; twice that leaves room for the clock's grain
LATE_FLOOR_S = 0.001
LATE_SHARE_OF_MEDIAN = 0.05


@dataclass(frozen=True, slots=True)
class LittleCheck:
    """How three independent figures of one trial agree."""

    ratio: float  # X R / L: 1 when they agree
    edge_bound: float  # how far requests cut off by the window's edges may move it
    verdict: Literal["holds", "broken", "unknown"]


def occupancy_gap(throughput: Floats, response_time: Floats, in_flight: Floats) -> Floats:
    """Return how far each window departs from Little's law, as a fraction of L.

    In a stable system the mean number in flight equals throughput times mean response time. A lasting gap
    means that requests were lost, counted twice, or timed from the wrong moment.

    Args:
        throughput: Completions per second, shape (windows,).
        response_time: Mean seconds from due to done, shape (windows,).
        in_flight: Time-averaged requests between due and done, shape (windows,).

    Returns:
        (L - X R) / L, shape (windows,); NaN where nothing was in flight.

    Raises:
        ShapeError: The arrays differ in length.

    Source: Little 1961.
    """
    same_shape(throughput, response_time, in_flight)
    gap = in_flight - throughput * response_time
    return np.divide(gap, in_flight, out=np.full_like(gap, np.nan), where=in_flight > 0)


def check_little(
    throughput: float, response_time: float, in_flight: float, *, longest: float, window: float
) -> LittleCheck:
    """Return whether throughput, mean response time and mean in flight of one window can all be true.

    Args:
        throughput: Completions per second, counted by completion time, failures included.
        response_time: Their mean seconds from due to done.
        in_flight: Mean requests between due and done over the window.
        longest: Longest response time, seconds.
        window: Length of the window, seconds.

    Returns:
        `broken` only when the ratio is off by more than 2 % and by more than 2 longest / window, the most
        that requests cut off by the edges can explain. `unknown` when that bound exceeds one half.
    """
    if in_flight <= 0 or window <= 0:
        return LittleCheck(float("nan"), float("nan"), "unknown")
    ratio = throughput * response_time / in_flight
    bound = 2 * longest / window
    if abs(ratio - 1) <= max(TOLERANCE, bound):
        verdict: Literal["holds", "broken", "unknown"] = "unknown" if bound > 0.5 else "holds"
    else:
        verdict = "broken"
    return LittleCheck(ratio, bound, verdict)


def closed_loop_ratio(throughput: float, response_time: float, think_time: float, users: float) -> float:
    """Return X (R + Z) / N of a closed loop: 1 when all users are accounted for.

    Below 1 users idled (think time not modelled, a stalled generator, failures missing from R); above 1
    the mean is inflated or there were fewer connections than users.
    """
    return throughput * (response_time + think_time) / users


def users_before_queueing(capacity_per_s: float, alone_s: float, think_s: float) -> float:
    """Return N*, the number of users from which on more users only wait for each other.

    Args:
        capacity_per_s: Highest throughput.
        alone_s: Response time of a user who is alone.
        think_s: Think time.

    Returns:
        capacity (alone + think). For k servers of demand D that is k (D + Z) / D.

    Source: Denning and Buzen 1978 (asymptotic bounds).
    """
    return capacity_per_s * (alone_s + think_s)


@dataclass(frozen=True, slots=True)
class Omission:
    """How much waiting the service time leaves out of the response time."""

    mean_ratio: float  # mean response / mean service: 1 is none
    late: Interval | Insufficient  # share of requests sent later than they matter


def omission(
    response_mean: float, service_mean: float, service_median: float, lag: IntervalCounts
) -> Omission:
    """Return how far the service time understates what a user waits.

    Args:
        response_mean: Mean seconds from due to done.
        service_mean: Mean seconds from sent to done.
        service_median: Median seconds from sent to done.
        lag: Seconds from due to sent, by interval.

    Returns:
        The ratio of means, and the share of requests whose lag exceeds 1 ms and 5 % of the median service
        time. Nothing is filled in: back-filled samples are wrong in both directions.
    """
    threshold = max(LATE_FLOOR_S, LATE_SHARE_OF_MEDIAN * service_median)
    late = share(lag.above_per_interval(threshold), lag.known_per_interval(threshold))
    return Omission(response_mean / service_mean if service_mean > 0 else float("nan"), late)
