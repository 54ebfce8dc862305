"""The generator as a queue of its own, against a simulation of its thread."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadlens.stats.generator import expected_lag
from tests.unit.stats.queues import poisson, single_server

EVENT = 5e-6


def simulated(busy: float) -> float:
    """Mean lag of a thread that sends and receives, 5 us an event."""
    random = np.random.default_rng(9)
    count = 200_000
    due = poisson(random, busy / (2 * EVENT), count)
    served = random.exponential(1e-3, count)
    times = np.concatenate([due, due + served + EVENT])  # as if nothing had waited before it was sent
    order = np.argsort(times, kind="stable")
    wait = np.empty(2 * count)
    wait[order] = single_server(times[order], np.full(2 * count, EVENT))
    return float(wait[:count].mean())


@pytest.mark.parametrize("busy", [0.1, 0.5, 0.7, 0.8])
def test_the_lag_is_that_of_a_queue_with_constant_service(busy: float) -> None:
    assert simulated(busy) == pytest.approx(expected_lag(busy, EVENT), rel=0.10)


def test_a_full_thread_lags_without_end() -> None:
    assert expected_lag(1.0, EVENT) == math.inf
