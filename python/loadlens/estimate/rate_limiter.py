"""Rate limit of a service: its rate and its burst, from what it refuses or from what it delays.

A limiter that delays lets its burst through at once and then one request for each token; one that counts per
window lets all of a window through at its begin.

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
LATE = 0.4  # of a load, at its end: there the rate has settled
EARLY = 0.3  # of a load, at its begin: a burst is over by then, while what slows down all along is not
CHANCE = 3.0  # standard deviations, between a burst and the last part
FEWEST_LATE = 30  # requests: their rate is known to 18 % by chance
FEWEST_BEGINS = 3  # two distances between windows
TOGETHER = 2.0  # requests in a window, on average: one at a time keeps time without any clock
SILENT = 0.3  # of the time, between what comes together
APART = 5.0  # times the usual distance: a gap
REGULAR = 0.1  # coefficient of variation of the distances of windows


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


@dataclass(frozen=True, slots=True)
class Settled:
    """The rate of one load when it had settled, and what was done before beyond it."""

    rate_per_s: float
    requests: int  # that the rate stands on
    ahead: float  # requests beyond the rate, from the first one's due time; 0: it does not settle early
    deviation: float  # requests, of `ahead`, if requests came at random


@dataclass(frozen=True, slots=True)
class Windows:
    """Requests that come together at equal distances, with hardly any between."""

    period_s: float
    sizes: tuple[int, ...]  # of each but the first and the last, which may be cut
    silent: float  # share of the time without a request


def settled(done_s: Floats, end_s: float) -> Settled | None:
    """Compare what was done early with the rate of the last part; none: too few requests.

    A service that does its work at one rate is never ahead of it: requests that are sent at 0 come after
    they were served. One that becomes slower all along is no burst: the rate must be flat after it.

    Args:
        done_s: When requests ended, ascending, from the first one's due time, shape (requests,).
        end_s: When the load ended.
    """
    begin_s = (1 - LATE) * end_s
    late = int((done_s >= begin_s).sum())
    early = done_s[done_s < begin_s]
    if late < FEWEST_LATE or not early.size:
        return None
    rate = late / (LATE * end_s)
    expected = rate * early
    beyond = np.arange(1, early.size + 1) - expected
    deviation = np.sqrt(np.arange(1, early.size + 1) + expected**2 / late)
    most = int((beyond / deviation).argmax())
    until_s = float(early[most])
    after, wanted = early.size - (most + 1), rate * (begin_s - until_s)
    is_flat = until_s <= EARLY * end_s and abs(after - wanted) <= CHANCE * np.sqrt(wanted + wanted**2 / late)
    return Settled(rate, late, float(beyond[most]) if is_flat else 0.0, float(deviation[most]))


def windows(done_s: Floats) -> Windows | None:
    """Return the windows in which requests come; none: they do not keep time, or there is little between.

    Args:
        done_s: When requests ended, ascending, shape (requests,).
    """
    gaps = np.diff(done_s)
    if gaps.size < FEWEST_BEGINS:
        return None
    longest = float(gaps.max())
    is_break = gaps > longest / 2
    breaks = np.flatnonzero(is_break)
    inside = gaps[~is_break]
    if breaks.size < FEWEST_BEGINS or (inside.size and longest < APART * float(inside.mean())):
        return None
    begins = done_s[breaks + 1]
    sizes = np.diff(breaks)
    periods = np.diff(begins)
    silent = float(gaps[is_break].sum() / (done_s[-1] - done_s[0]))
    if silent < SILENT or sizes.mean() < TOGETHER or periods.std() > REGULAR * periods.mean():
        return None
    return Windows(float(periods.mean()), tuple(map(int, sizes)), silent)
