"""Causes of a full service, from simulations of each of them and from real servers that were built so."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.probes import Waiting, waiting
from loadlens.estimate.separation import (
    Ahead,
    slope_error,
    waits_for_those_ahead,
)
from loadlens.estimate.within_trial import mean
from tests.oracles.simulated_queues import fair_sharing, poisson, several_servers

WORK = 0.02
# one plateau each: a server whose cause is known, 12 closed clients and a probe of 25 /s on two cores


def mixed(
    seed: int, jobs: int, rate: float, work: float, probe_rate: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(arrival, work, is_probe) of expensive requests with constant work and cheap probes, both at random."""
    random = np.random.default_rng(seed)
    expensive = poisson(random, rate, jobs)
    probes = poisson(random, probe_rate, int(probe_rate * expensive[-1]))
    arrival = np.concatenate([expensive, probes])
    order = np.argsort(arrival, kind="stable")
    lengths = np.concatenate([np.full(expensive.size, work), np.full(probes.size, 1e-4)])
    is_probe = np.concatenate([np.zeros(expensive.size, dtype=bool), np.ones(probes.size, dtype=bool)])
    return arrival[order], lengths[order], is_probe[order]


def coupling(arrival: np.ndarray, response: np.ndarray, is_probe: np.ndarray, work: float) -> float:
    def mean_of(kind: np.ndarray) -> Interval:
        second = np.floor(arrival[kind]).astype(np.int64)
        growth = mean(
            np.bincount(second, weights=response[kind]).astype(np.float64), np.bincount(second).astype(float)
        )
        assert isinstance(growth, Interval)
        return growth

    growth = waiting(mean_of(is_probe), 1e-4, mean_of(~is_probe), work)
    assert isinstance(growth, Waiting), growth
    return growth.coupling.point


def test_a_probe_waits_as_long_as_the_work_in_one_queue() -> None:
    arrival, work, is_probe = mixed(1, 12_000, 0.8 / WORK, WORK, 20.0)
    response = several_servers(arrival, work, 1) + work

    assert coupling(arrival, response, is_probe, WORK) == pytest.approx(1.0, abs=0.1)


def test_a_probe_waits_as_long_as_the_work_in_a_full_pool() -> None:
    arrival, work, is_probe = mixed(2, 12_000, 0.95 * 8 / 0.1, 0.1, 20.0)
    response = several_servers(arrival, work, 8) + work

    assert coupling(arrival, response, is_probe, 0.1) == pytest.approx(1.0, abs=0.15)


def test_a_probe_hardly_waits_where_cores_are_shared_fairly() -> None:
    arrival, work, is_probe = mixed(3, 3_000, 0.8 / WORK, WORK, 20.0)
    response = fair_sharing(arrival, work)

    assert coupling(arrival, response, is_probe, WORK) < 0.1


@pytest.mark.parametrize("shares_fairly", [False, True])
def test_what_is_ahead_explains_the_wait_in_one_queue_and_not_in_fair_sharing(
    shares_fairly: bool,
) -> None:
    arrival, work, is_probe = mixed(4, 3_000, 0.8 / WORK, WORK, 20.0)
    response = fair_sharing(arrival, work) if shares_fairly else several_servers(arrival, work, 1) + work
    done = np.sort((arrival + response)[~is_probe])
    came = np.sort(arrival[~is_probe])
    probes = arrival[is_probe]
    ahead = (np.searchsorted(came, probes) - np.searchsorted(done, probes)).astype(float)

    growth = waits_for_those_ahead(ahead, response[is_probe] - 1e-4)

    assert isinstance(growth, Ahead)
    if shares_fairly:
        assert growth.per_request_s.point < 0.25 * WORK or growth.explained < 0.5
    else:
        assert growth.per_request_s.point == pytest.approx(WORK, rel=0.1)
        assert growth.explained >= 0.5


def test_few_probes_or_an_even_load_say_nothing_about_who_is_ahead() -> None:
    assert isinstance(waits_for_those_ahead(np.arange(499.0), np.ones(499)), Insufficient)
    assert isinstance(waits_for_those_ahead(np.ones(500), np.ones(500)), Insufficient)


def test_the_error_of_a_slope_is_that_of_trials_not_of_probes() -> None:
    """Slopes of 1, 2, 3 over the same two points: without one 2.5, 2, 1.5, an error of 0.577, t 4.303."""
    ahead = [np.array([-1.0, 1.0])] * 3
    waits = [slope * ahead[0] for slope in (1.0, 2.0, 3.0)]

    assert slope_error(ahead, waits) == pytest.approx(4.3027 * np.sqrt(1 / 3), rel=1e-4)
    assert slope_error(ahead * 200, waits * 200) == pytest.approx(1.96 * np.sqrt(2 / 3 / 600), rel=0.01)


def test_two_trials_or_an_even_load_leave_the_error_of_a_slope_open() -> None:
    assert slope_error([np.arange(9.0)] * 2, [np.arange(9.0)] * 2) is None
    assert slope_error([np.ones(9)] * 3, [np.arange(9.0)] * 3) is None
