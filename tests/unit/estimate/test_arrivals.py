"""Arrival processes drawn as planned, and spoilt in known ways."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.estimate.arrivals import Arrivals, check_constant, check_poisson
from loadlens.estimate.interval import Insufficient
from tests.unit.estimate.binomial import at_most
from tests.unit.estimate.queues import limited_connections, poisson


def checked(sent: np.ndarray, rate: float) -> Arrivals:
    found = check_poisson(sent, rate)
    assert isinstance(found, Arrivals), found
    return found


def test_a_poisson_stream_is_as_planned() -> None:
    off = 0
    for seed in range(100):
        off += not checked(poisson(np.random.default_rng(seed), 100.0, 5000), 100.0).is_as_planned

    assert off <= at_most(0.002, 100)  # two tests at one in a thousand


def test_counts_of_a_poisson_stream_scatter_by_their_mean() -> None:
    assert checked(poisson(np.random.default_rng(1), 100.0, 50_000), 100.0).dispersion == pytest.approx(
        1.0, abs=0.1
    )


def test_a_stream_at_another_rate_is_not_as_planned() -> None:
    assert not checked(poisson(np.random.default_rng(2), 110.0, 5000), 100.0).is_as_planned


def test_a_client_that_waits_for_answers_is_found_out() -> None:
    random = np.random.default_rng(3)
    due = poisson(random, 100.0, 5000)
    work = random.exponential(0.005, due.size)
    work[::500] = 1.0
    sent, _ = limited_connections(due, work, 2)

    assert not checked(np.sort(sent), 100.0).is_as_planned


def test_a_rate_that_swings_is_found_by_its_counts_though_its_gaps_look_exponential() -> None:
    random = np.random.default_rng(4)
    swinging = np.where((np.arange(5000) // 500) % 2 == 0, 75.0, 125.0)  # ten stretches of 500 requests

    found = checked(np.cumsum(random.exponential(1.0, 5000) / swinging), 96.0)

    assert found.distance < 0.04
    assert found.correlation > 0.3
    assert not found.is_as_planned


def test_an_even_stream_is_none_of_chance() -> None:
    found = checked(np.arange(5000) / 100.0, 100.0)

    assert not found.is_as_planned
    assert found.dispersion < 0.1


def test_a_constant_rate_is_as_planned_when_nobody_is_late_by_a_tenth_of_the_gap() -> None:
    due = np.arange(1000) / 100.0
    late = due.copy()
    late[500] += 0.002

    in_time, not_in_time = check_constant(due, due + 0.0005), check_constant(due, late)

    assert isinstance(in_time, Arrivals)
    assert isinstance(not_in_time, Arrivals)
    assert in_time.is_as_planned
    assert not not_in_time.is_as_planned
    assert not_in_time.distance == pytest.approx(0.2)


def test_few_requests_show_no_process() -> None:
    assert isinstance(check_poisson(np.arange(99.0), 1.0), Insufficient)
    assert isinstance(check_constant(np.arange(99.0), np.arange(99.0)), Insufficient)
