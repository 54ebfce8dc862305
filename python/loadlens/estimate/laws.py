"""Little's law of a closed loop: with means, N = X (R + Z) is an identity, not a model.

Figures that break it were lost, counted twice, or timed from the wrong moment.

Sources: J. D. C. Little, Operations Research 9 (3), 1961; P. J. Denning and J. P. Buzen, ACM Computing
Surveys 10 (3), 1978.
"""

from __future__ import annotations

TOLERANCE = 0.02  # exact integrals agree to 1 %; twice that leaves room for the clock's grain


def closed_loop_ratio(throughput: float, response_time: float, think_time: float, users: float) -> float:
    """Return X (R + Z) / N of a closed loop: 1 when all users are accounted for.

    Below 1 users idled (think time not modelled, a stalled generator, failures missing from R); above 1
    the mean is inflated or there were fewer connections than users.
    """
    return throughput * (response_time + think_time) / users


def loop_reading(
    throughput: float,
    response_s: float,
    *,
    users: float,
    think_s: float = 0.0,
    median_s: float | None = None,
    edge_bound: float = 0.0,
) -> str:
    """Return what a closed loop's deviation from Little's law means; empty if there is none.

    Args:
        throughput: Completions per second, failures included, counted when they completed.
        response_s: Their mean seconds from due to done.
        users: Of the loop.
        think_s: Their mean think time.
        median_s: Median response time, to see whether it was printed as the mean.
        edge_bound: How far requests cut off by the window's edges may move a ratio: 2 longest / window.
    """
    tolerance = max(TOLERANCE, edge_bound)
    ratio = closed_loop_ratio(throughput, response_s, think_s, users)
    if abs(ratio - 1) <= tolerance:
        return ""
    if median_s is not None:
        by_median = closed_loop_ratio(throughput, median_s, think_s, users)
        if abs(by_median - 1) <= tolerance:
            return "only the median fits: what was printed as the mean is something else"
    if ratio < 1:
        return (
            f"{1 - ratio:.0%} of the users' time is missing: unreported think time, a generator that stood "
            "still, connecting, or failed requests left out of the mean"
        )
    return (
        f"the mean is {ratio:.2f} times what fits: filled-in samples, waiting in the client counted as the "
        "service's, or fewer connections than reported"
    )
