"""Rate limit of a service: its rate and its burst.

Source: J. Turner, IEEE Communications Magazine 24 (10), 1986 (leaky and token buckets).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadlens.estimate.interval import Floats, Insufficient, Interval, same_shape
from loadlens.estimate.within_trial import rate, share

LEAST_REFUSED = 0.01
EVEN = 0.2  # index of dispersion of accepted counts: a limiter lets them through evenly
FEWEST_INTERVALS = 8


@dataclass(frozen=True, slots=True)
class Limiter:
    """A limit as its refusals show it."""

    rate_per_s: Interval  # accepted while it refuses
    burst: float  # requests beyond the rate that it accepted at once; 0 when that was spent before
    refused: Interval  # share of the requests
    dispersion: float  # variance over mean of the accepted of an interval

    @property
    def is_even(self) -> bool:
        """True if accepted requests come evenly, as from a bucket, and not as an overloaded service sheds."""
        return self.dispersion < EVEN


def limiter(accepted: Floats, refused: Floats, lengths_s: Floats) -> Limiter | Insufficient | None:
    """Return the rate limit behind refusals; none when hardly any request was refused.

    Args:
        accepted: Requests that were let through in each interval, shape (intervals,), from the begin of the
            load.
        refused: Requests that were refused for their rate (429, or 503 with Retry-After), same shape.
        lengths_s: Length of each interval, seconds, same shape.

    Returns:
        The rate between the first refusals and the last: the bucket was empty at both. The burst is what was
        accepted beyond it until the first, from when more was asked for than that rate. An offered load
        hardly above the limit lets the bucket fill up again, and the rate then comes out a little low.
    """
    same_shape(accepted, refused, lengths_s)
    refused_share = share(refused, accepted + refused)
    if isinstance(refused_share, Insufficient):
        return refused_share
    if refused_share.point < LEAST_REFUSED:
        return None
    limited = np.flatnonzero(refused > 0)
    if limited.size < FEWEST_INTERVALS:
        return Insufficient(f"{limited.size} intervals with refusals, needs {FEWEST_INTERVALS}")
    first = int(limited[0])  # in it the bucket still had something
    between = slice(first + 1, int(limited[-1]) + 1)
    let_through, lengths = accepted[between], lengths_s[between]
    limit = rate(let_through, lengths)
    if isinstance(limit, Insufficient):
        return limit
    scatter = let_through - limit.point * lengths
    mean = float(let_through.mean())
    dispersion = float((scatter**2).mean()) / mean if mean > 0 else float("inf")
    burst = beyond = 0.0
    for count, length in zip(accepted[: first + 1], lengths_s[: first + 1], strict=True):
        # A full bucket gains nothing while less is asked for than its rate.
        beyond = max(0.0, beyond + float(count) - limit.point * float(length))
        burst = max(burst, beyond)
    return Limiter(limit, burst, refused_share, dispersion)


def expected_refused(limit_per_s: float, offered_per_s: float) -> float:
    """Return the share that a limit refuses of an offered rate: 1 - r / lambda, 0 below the limit."""
    return max(0.0, 1 - limit_per_s / offered_per_s)


def expected_under_way(places: int, refused: float) -> float:
    """Return how many requests are under way, on average, in a service that has room for so many at once.

    Args:
        places: Requests at once; a request that finds all of them taken is refused.
        refused: Share of the requests that is, above 0 and below 1.

    Source: Erlang's loss formula, solved for the load that loses this share.
    """
    from scipy.optimize import brentq  # costs 0.3 s to import, and few services refuse requests

    most = places / (1 - refused)  # it loses more than this share of that
    offered = float(brentq(lambda load: erlang_b(load, places) - refused, 0.0, most))
    return offered * (1 - refused)


def least_scatter(mean: float, p50: float, p99: float) -> float:
    """Return how much the successes of a service that is full scatter at least, variance over mean of counts.

    Each place is a renewal process of the times that it is taken for: counts over long stretches scatter as
    the squared coefficient of variation of these, over short ones as by chance, 1. Half of the lesser of
    both, as a place also waits for its next request. Quantiles show the least that times can vary.

    Args:
        mean, p50, p99: Of the time that a place is taken for.

    Source: D. R. Cox, Renewal Theory, 1962, chapters 4 and 6.
    """
    varies = 0.5 * max(0.0, mean - p50) ** 2 + 0.01 * max(0.0, p99 - mean) ** 2
    return 0.5 * min(1.0, varies / mean**2)


def erlang_b(offered: float, places: int) -> float:
    """Return the chance that an arrival finds all places taken and goes away, M/G/c/c.

    Args:
        offered: Arrival rate times mean service time, erlangs.
        places: c.

    Source: A. K. Erlang 1917, by recursion; the law of the service times does not matter (Sevastyanov 1957).
    """
    if offered < 0 or places < 1:
        raise ValueError("wants an offered load of at least 0 and a place")
    blocked = 1.0
    for n in range(1, places + 1):
        blocked = offered * blocked / (n + offered * blocked)
    return blocked
