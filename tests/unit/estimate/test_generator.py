"""The generator as a queue of its own, against a simulation of its thread."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadlens.estimate.generator import (
    Health,
    added_to_response,
    expected_lag,
    health,
    is_the_limit,
)
from tests.unit.estimate.queues import poisson, single_server

EVENT = 5e-6


def simulated(busy: float) -> tuple[float, float]:
    """(mean lag, mean added to the response time) of a thread that sends and receives, 5 us an event."""
    random = np.random.default_rng(9)
    count = 200_000
    due = poisson(random, busy / (2 * EVENT), count)
    served = random.exponential(1e-3, count)
    times = np.concatenate([due, due + served + EVENT])  # as if nothing had waited before it was sent
    order = np.argsort(times, kind="stable")
    wait = np.empty(2 * count)
    wait[order] = single_server(times[order], np.full(2 * count, EVENT))
    return float(wait[:count].mean()), float((wait[:count] + wait[count:]).mean() + 2 * EVENT)


@pytest.mark.parametrize("busy", [0.1, 0.5, 0.7, 0.8])
def test_the_lag_is_that_of_a_queue_with_constant_service(busy: float) -> None:
    lag, added = simulated(busy)

    assert lag == pytest.approx(expected_lag(busy, EVENT), rel=0.10)
    assert added == pytest.approx(added_to_response(busy, EVENT), rel=0.10)


def test_a_full_thread_lags_without_end() -> None:
    assert expected_lag(1.0, EVENT) == math.inf


def asked(**change: float | None) -> Health:
    usual: dict[str, float | None] = {
        "busy": 0.3,
        "lag_p99_s": 50e-6,
        "median_response_s": 0.002,
        "waiting": 0.001,
        "throughput": 10_000.0,
        "ceiling": 60_000.0,
    }
    return health(**{**usual, **change})


def test_a_generator_with_room_allows_times_and_rates() -> None:
    found = asked()

    assert (found.allows_times, found.allows_rates, found.reasons) == (True, True, ())
    assert found.headroom == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"busy": 0.75}, "busy"),
        ({"lag_p99_s": 150e-6}, "lateness"),
        ({"waiting": 0.02}, "waited for a core"),
        ({"throughput": 33_000.0}, "ceiling"),
    ],
)
def test_each_sign_forbids_times_and_leaves_rates(change: dict[str, float], word: str) -> None:
    found = asked(**change)

    assert not found.allows_times
    assert found.allows_rates
    assert word in found.reasons[0]


def test_lateness_may_be_two_percent_of_what_is_measured() -> None:
    assert asked(lag_p99_s=0.0009, median_response_s=0.05).allows_times


def test_near_its_ceiling_not_even_rates_are_the_services() -> None:
    assert not asked(throughput=50_000.0).allows_rates


def test_a_plateau_is_the_generators_when_it_is_full_and_the_service_is_not() -> None:
    full = {"busy": 0.95, "users": 100.0, "throughput": 50_000.0, "ceiling": 55_000.0}

    assert is_the_limit(**full, in_service=20.0)
    assert is_the_limit(**full, in_service=95.0) is False
    assert is_the_limit(**full, in_service=None) is None
    assert is_the_limit(**{**full, "busy": 0.3, "throughput": 1000.0}, in_service=20.0) is False
