"""What probes see of a blocked server, against PASTA and Pollaczek-Khinchine."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.interval_counts import counts_from_values
from loadlens.estimate.probes import (
    Waiting,
    held_up,
    idle_time,
    parallelism,
    waiting,
)
from loadlens.estimate.within_trial import share
from tests.oracles.simulated_queues import poisson, several_servers, single_server

WORK = 0.02


def probed_server(seed: int, utilisation: float, seconds: int) -> tuple[np.ndarray, np.ndarray]:
    """Probe arrivals (20 /s, no work) and their waits at a server busy with deterministic work."""
    random = np.random.default_rng(seed)
    jobs = poisson(random, utilisation / WORK, int(utilisation / WORK * seconds))
    probes = poisson(random, 20.0, int(20 * seconds * 0.98))
    arrival = np.concatenate([jobs, probes])
    work = np.concatenate([np.full(jobs.size, WORK), np.zeros(probes.size)])
    is_probe = np.concatenate([np.zeros(jobs.size, dtype=bool), np.ones(probes.size, dtype=bool)])
    order = np.argsort(arrival)
    wait = single_server(arrival[order], work[order])
    return arrival[order][is_probe[order]], wait[is_probe[order]]


@pytest.mark.parametrize("utilisation", [0.2, 0.5, 0.8])
def test_the_share_of_probes_held_up_is_the_utilisation(utilisation: float) -> None:
    arrival, wait = probed_server(1, utilisation, 600)
    counts = counts_from_values(601, np.floor(arrival).astype(np.int64), wait + 0.001)

    waits = share(*held_up(counts, 0.001, WORK))

    assert isinstance(waits, Interval)
    assert waits.point == pytest.approx(utilisation, abs=0.06)  # waits under 1 ms are not counted


def test_one_shared_queue_has_a_coupling_of_one_and_two_passes_one_half() -> None:
    probe = Interval(0.121, 0.118, 0.124, 200, "x")

    once = waiting(probe, 0.001, Interval(0.130, 0.128, 0.132, 800, "x"), 0.010)
    twice = waiting(probe, 0.001, Interval(0.250, 0.245, 0.255, 800, "x"), 0.010)

    assert isinstance(once, Waiting)
    assert isinstance(twice, Waiting)
    assert once.coupling.covers(1.0)
    assert twice.passes.point == pytest.approx(2.0)
    assert twice.passes.covers(2.0)


def test_a_probe_that_never_waits_has_no_coupling() -> None:
    waits = waiting(
        Interval(0.001, 0.0009, 0.0011, 200, "x"), 0.001, Interval(0.13, 0.12, 0.14, 80, "x"), 0.01
    )

    assert isinstance(waits, Waiting)
    assert waits.coupling.point == 0.0


def test_without_waiting_of_the_expensive_requests_the_coupling_is_refused() -> None:
    waits = waiting(
        Interval(0.002, 0.001, 0.003, 200, "x"), 0.001, Interval(0.012, 0.011, 0.013, 80, "x"), 0.01
    )

    assert isinstance(waits, Insufficient)


def test_the_idle_time_is_what_a_probe_takes_that_met_nobody() -> None:
    arrival, wait = probed_server(3, 0.5, 60)

    assert idle_time(
        counts_from_values(61, np.floor(arrival).astype(np.int64), wait + 0.0018)
    ) == pytest.approx(0.0018)


def exactly(value: float) -> Interval:
    return Interval(value, value, value, 1.0, "x")


def test_effective_parallelism_is_the_pool_size() -> None:
    # pool of 4, 40 ms each
    assert parallelism(exactly(97.1), exactly(0.0412)).point == pytest.approx(4.0, abs=0.01)


def test_the_size_of_a_pool_has_the_errors_of_both_its_figures() -> None:
    waits = parallelism(Interval(80.0, 78.4, 81.6, 3, "x"), Interval(0.1, 0.099, 0.101, 3, "x"))

    assert waits.point == pytest.approx(8.0)
    assert waits.high == pytest.approx(8 * (1 + (0.02**2 + 0.01**2) ** 0.5))
    assert parallelism(Interval(80.0, None, None, 3, "x"), Interval(0.1, 0.1, 0.1, 3, "x")).low is None


def test_a_pool_of_ten_is_measured_as_ten() -> None:
    random = np.random.default_rng(4)
    work = random.lognormal(np.log(0.02) - 0.1, 0.2**0.5, 20_000)
    arrival = np.sort(random.uniform(0, 0.9 * work.sum() / 10, work.size))  # more than it can do
    done = arrival + several_servers(arrival, work, 10) + work
    middle = (done > done.max() * 0.1) & (done < done.max() * 0.9)

    capacity = middle.sum() / (0.8 * done.max())

    width = parallelism(exactly(float(capacity)), exactly(float(work.mean())))
    assert width.point == pytest.approx(10.0, rel=0.03)
