"""Whether the load generator measured the service or itself.

A thread of the engine is a queue with one server: an event costs g seconds, the thread is busy a share rho of
the time, and an event waits rho g / (2 (1 - rho)) on average. A request passes it twice, to leave and to come
back.

Source: F. Pollaczek 1930 and A. Khinchine 1932, constant service.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MOST_BUSY = 0.7
LATE_S = 100e-6
LATE_SHARE = 0.02  # of the median response time
MOST_WAITING = 0.01  # share of time in which a thread wanted a core and had none
CEILING_FOR_TIMES = 0.5  # of what the generator can do on this machine
CEILING_FOR_RATES = 0.8
BUSY_AT_A_LIMIT = 0.85
QUEUED_IN_CLIENT = 0.7  # of the users: fewer in the service, the rest wait in the client


@dataclass(frozen=True, slots=True)
class Health:
    """What a generator's state allows to be said."""

    allows_times: bool
    allows_rates: bool
    headroom: float | None  # ceiling over throughput; none when it was not calibrated
    expected_lag_s: float | None
    reasons: tuple[str, ...]


def expected_lag(busy: float, event_s: float) -> float:
    """Return how long an event of the engine waits for its thread on average, seconds.

    Args:
        busy: Share of time, 0 to 1. From 0.9 on the true lag is up to a third above: events come in bunches.
        event_s: CPU time of one event.

    Returns:
        rho g / (2 (1 - rho)); infinite at 1.
    """
    return math.inf if busy >= 1 else busy * event_s / (2 * (1 - busy))


def added_to_response(busy: float, event_s: float) -> float:
    """Return what the generator adds to a response time on average, seconds: lag and event, out and back."""
    return 2 * (expected_lag(busy, event_s) + event_s)


def health(
    *,
    busy: float,
    lag_p99_s: float,
    median_response_s: float,
    waiting: float,
    throughput: float,
    ceiling: float | None,
    event_s: float | None = None,
) -> Health:
    """Return whether response times and rates of a trial may be believed, as far as the generator goes.

    Args:
        busy: Busy share of the busiest engine thread.
        lag_p99_s: p99 of the generator's own lateness.
        median_response_s: Of the load.
        waiting: Share of time that a thread waited for a core.
        throughput: Requests per second.
        ceiling: What the generator reached on this machine against a server that does nothing; none: not
            known.
        event_s: CPU time of one event, for the expected lag.
    """
    of_times, of_rates = [], []
    used = 0.0 if ceiling is None else throughput / ceiling
    limit = max(LATE_S, LATE_SHARE * median_response_s)
    if busy > MOST_BUSY:
        of_times.append(f"a thread was busy {busy:.0%} of the time, at most {MOST_BUSY:.0%}")
    if lag_p99_s > limit:
        of_times.append(f"p99 of its lateness was {lag_p99_s * 1e3:.2g} ms, at most {limit * 1e3:.2g} ms")
    if waiting > MOST_WAITING:
        of_times.append(f"a thread waited for a core {waiting:.1%} of the time, at most {MOST_WAITING:.0%}")
    if used > CEILING_FOR_TIMES:
        of_times.append(f"it ran at {used:.0%} of its ceiling, for times at most {CEILING_FOR_TIMES:.0%}")
    if used > CEILING_FOR_RATES:
        of_rates.append(f"it ran at {used:.0%} of its ceiling, for rates at most {CEILING_FOR_RATES:.0%}")
    return Health(
        allows_times=not of_times,
        allows_rates=not of_rates and busy < BUSY_AT_A_LIMIT,
        headroom=None if ceiling is None or throughput <= 0 else ceiling / throughput,
        expected_lag_s=None if event_s is None else expected_lag(busy, event_s),
        reasons=(*of_times, *of_rates),
    )


def is_the_limit(
    *, busy: float, users: float, in_service: float | None, throughput: float, ceiling: float | None
) -> bool | None:
    """Return whether a plateau of throughput is the generator's own.

    Args:
        busy: Busy share of the busiest engine thread.
        users: Who could be in the service at once.
        in_service: Mean requests in the service by its own gauge; none when it has none.
        throughput: On the plateau.
        ceiling: Of the generator on this machine; none: not known.

    Returns:
        True when the generator is busy 85 % or at 80 % of its ceiling while fewer than 70 % of the users are
        in the service; none when it is busy and nobody knows how many are in the service.
    """
    is_full = busy >= BUSY_AT_A_LIMIT or (ceiling is not None and throughput >= CEILING_FOR_RATES * ceiling)
    if not is_full:
        return False
    return None if in_service is None else in_service < QUEUED_IN_CLIENT * users
