"""Whether the load generator measured the service or itself.

A thread of the engine is a queue with one server: an event costs g seconds, the thread is busy a share rho of
the time, and an event waits rho g / (2 (1 - rho)) on average. A request passes it twice, to leave and to come
back.

Source: F. Pollaczek 1930 and A. Khinchine 1932, constant service.
"""

from __future__ import annotations

import math

MOST_WAITING = 0.01  # share of time in which a thread wanted a core and had none
BUSY_AT_A_LIMIT = 0.85


def expected_lag(busy: float, event_s: float) -> float:
    """Return how long an event of the engine waits for its thread on average, seconds.

    Args:
        busy: Share of time, 0 to 1. From 0.9 on the true lag is up to a third above: events come in bunches.
        event_s: CPU time of one event.

    Returns:
        rho g / (2 (1 - rho)); infinite at 1.
    """
    return math.inf if busy >= 1 else busy * event_s / (2 * (1 - busy))
