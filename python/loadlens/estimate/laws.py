"""Laws that hold whatever the service does: Little's law and the bounds that follow from it.

With means, N = X (R + Z) is an identity, not a model: figures that break it were lost, counted twice, or
timed from the wrong moment.

Sources: J. D. C. Little, Operations Research 9 (3), 1961; P. J. Denning and J. P. Buzen, ACM Computing
Surveys 10 (3), 1978.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TOLERANCE = 0.02  # exact integrals agree to 1 %; twice that leaves room for the clock's grain
OUTSIDE_MATTERS = 0.10  # of the response time


def closed_loop_ratio(throughput: float, response_time: float, think_time: float, users: float) -> float:
    """Return X (R + Z) / N of a closed loop: 1 when all users are accounted for.

    Below 1 users idled (think time not modelled, a stalled generator, failures missing from R); above 1
    the mean is inflated or there were fewer connections than users.
    """
    return throughput * (response_time + think_time) / users


@dataclass(frozen=True, slots=True)
class Reading:
    """What a violation means."""

    kind: Literal["idle", "inflated", "outside", "median", "server"]
    text: str


@dataclass(frozen=True, slots=True)
class ThreeWays:
    """Little's law asked three times: of the client's integral, of its users, and of the server's clock."""

    client: float | None  # X R / mean in flight
    closed: float | None  # X (R + Z) / N
    server: float | None  # X R_server / the server's own gauge
    outside_s: float | None  # mean seconds that a request spends outside the server's clock
    in_server: float | None  # mean requests in the server, by its clock: X R_server
    readings: tuple[Reading, ...]  # what is off; empty: all agree


def three_ways(
    throughput: float,
    response_s: float,
    *,
    in_flight: float | None = None,
    users: float | None = None,
    think_s: float = 0.0,
    median_s: float | None = None,
    server_s: float | None = None,
    server_in_flight: float | None = None,
    edge_bound: float = 0.0,
) -> ThreeWays:
    """Return how throughput, response time and concurrency agree wherever two of them are known.

    Args:
        throughput: Completions per second, failures included, counted when they completed.
        response_s: Their mean seconds from due to done.
        in_flight: The client's time integral of requests between due and done, over the window.
        users: Of a closed loop.
        think_s: Their mean think time.
        median_s: Median response time, to see whether it was printed as the mean.
        server_s: Mean time as the server measures it.
        server_in_flight: The server's own gauge of requests in it, its mean.
        edge_bound: How far requests cut off by the window's edges may move a ratio: 2 longest / window.

    Returns:
        The ratios, 1 where all is well, and what each violation means: users idle, times inflated, time spent
        outside the server's handler.
    """
    tolerance = max(TOLERANCE, edge_bound)
    client = throughput * response_s / in_flight if in_flight else None
    closed = closed_loop_ratio(throughput, response_s, think_s, users) if users else None
    in_server = None if server_s is None else throughput * server_s
    server = in_server / server_in_flight if in_server is not None and server_in_flight else None
    outside = None if server_s is None else response_s - server_s
    loop = _of_loop(client if closed is None else closed, tolerance)
    if loop is not None and users and median_s is not None:
        by_median = closed_loop_ratio(throughput, median_s, think_s, users)
        if abs(by_median - 1) <= tolerance:
            loop = Reading("median", "only the median fits: what was printed as the mean is something else")
    found = [] if loop is None else [loop]
    if outside is not None and outside > OUTSIDE_MATTERS * response_s:
        share_outside = outside / response_s
        found.append(
            Reading(
                "outside",
                f"{share_outside:.0%} of the response time is spent outside the handler: in the accept "
                "queue, a proxy, the event loop's queue or TLS",
            )
        )
    if server is not None and abs(server - 1) > tolerance:
        found.append(
            Reading(
                "server",
                f"the server's mean time and its gauge differ by {server - 1:+.0%}: "
                "they are of different parts",
            )
        )
    return ThreeWays(client, closed, server, outside, in_server, tuple(found))


def _of_loop(ratio: float | None, tolerance: float) -> Reading | None:
    if ratio is None or abs(ratio - 1) <= tolerance:
        return None
    if ratio < 1:
        return Reading(
            "idle",
            f"{1 - ratio:.0%} of the users' time is missing: think time that was not told, a generator that "
            "stood still, connecting, or failed requests left out of the mean",
        )
    return Reading(
        "inflated",
        f"the mean is {ratio:.2f} times what fits: filled-in samples, waiting in the client counted as the "
        "service's, or fewer connections than were told",
    )
