"""Closed forms against hand counts, each other, and the simulator (the other way in crates/queues)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from loadlens import engine
from loadlens.errors import EngineError
from loadlens.estimate.rate_limiter import erlang_b
from tests.oracles import closed_forms as queues
from tests.oracles import simulated_queues

SEEDS = 12


def one_station(work: dict[str, Any], stream: dict[str, Any], seed: int, seconds: float) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "seed": seed,
        "warmup_s": seconds / 10,
        "duration_s": seconds,
        "stations": [{"name": "s", "discipline": "fifo", "capacity": 1}],
        "classes": [{"name": "a", "route": [{"do": "serve", "station": "s", "work": work}]}],
        "streams": [
            {"name": "load", "load": stream, "scenarios": [{"weight": 1, "steps": [{"class": "a"}]}]}
        ],
    }


def simulated(
    work: dict[str, Any], stream: dict[str, Any], figure: str, seconds: float
) -> tuple[float, float]:
    """Mean of a figure over seeds, and its standard error."""
    found = [
        engine.simulate(one_station(work, stream, seed, seconds))["streams"][0]["all"][figure]
        for seed in range(SEEDS)
    ]
    mean = sum(found) / SEEDS
    return mean, math.sqrt(sum((x - mean) ** 2 for x in found) / (SEEDS - 1) / SEEDS)


def test_one_user_never_waits() -> None:
    found = queues.repairman(1, 2.0, 0.5)

    assert found.throughput == pytest.approx(1 / 2.5)
    assert found.response == pytest.approx(0.5)


def test_the_repairman_is_a_hand_count_for_two_users() -> None:
    # Z = S = 1: weights 1, 2, 2; p = .2, .4, .4; X = .8, R = 2/.8 - 1.
    found = queues.repairman(2, 1.0, 1.0)

    assert found.in_system == pytest.approx((0.2, 0.4, 0.4))
    assert found.throughput == pytest.approx(0.8)
    assert found.response == pytest.approx(1.5)


@pytest.mark.parametrize("users", [1, 2, 7, 40, 400])
def test_mean_value_analysis_of_one_station_is_the_repairman(users: int) -> None:
    chain, recursion = queues.repairman(users, 1.5, 0.2), queues.mva([0.2], 1.5, users)

    assert recursion.throughput == pytest.approx(chain.throughput, rel=1e-12)
    assert recursion.response == pytest.approx(chain.response, rel=1e-9)


def test_as_many_servers_as_users_are_no_queue() -> None:
    assert queues.repairman(5, 1.0, 0.3, servers=5).response == pytest.approx(0.3)


def test_users_who_do_not_think_keep_every_server_busy() -> None:
    found = queues.repairman(6, 0.0, 0.5, servers=2)

    assert (found.throughput, found.response) == (4.0, 1.5)


def test_little_holds_in_a_network() -> None:
    found = queues.mva([0.1, 0.03, 0.2], 0.7, 12)

    assert sum(found.queues) + found.throughput * 0.7 == pytest.approx(12)
    assert max(x * found.throughput for x in (0.1, 0.03, 0.2)) < 1


def test_a_stream_without_arrivals_changes_nothing_and_sees_the_users() -> None:
    alone = queues.mva([0.1], 0.5, 5)

    found = queues.mixed([0.1], 0.5, 5, open_demands=[0.02], rate=1e-9)

    assert found is not None
    assert found.closed.throughput == pytest.approx(alone.throughput)
    assert found.open_response == pytest.approx(0.02 * (1 + alone.queues[0]))


def test_arrivals_beyond_a_station_have_no_steady_state() -> None:
    assert queues.mixed([0.1], 0.5, 5, open_demands=[0.5], rate=2.0) is None


def test_erlang_c_is_what_a_hand_count_gives() -> None:
    # M/M/1, where C is the utilisation, and a hand count.
    assert queues.erlang_c(0.7, 1) == pytest.approx(0.7)
    assert queues.erlang_c(2.0, 3) == pytest.approx(4 / 9)  # by hand: (8/6)(3)/(1+2+2+4) = 4/9
    assert queues.erlang_c(5.0, 5) == 1.0


@pytest.mark.parametrize(("places", "offered", "lost"), [(1, 1.0, 0.5), (10, 6.22, 0.05), (20, 12.03, 0.01)])
def test_erlang_b_is_what_the_printed_tables_say(places: int, offered: float, lost: float) -> None:
    assert erlang_b(offered, places) == pytest.approx(lost, rel=0.005)


def test_m_m_1_waits_as_everyone_knows() -> None:
    assert queues.mmc_wait(0.9, 1.0) == pytest.approx(9.0)
    # P(W > t) = rho exp(-(mu - lambda) t)
    assert queues.mmc_wait_quantile(0.9, 1.0, 1, 0.99) == pytest.approx(math.log(90) / 0.1)
    assert queues.mmc_wait_quantile(0.3, 1.0, 1, 0.5) == 0.0


def test_m_d_1_waits_half_as_long() -> None:
    assert queues.md1_wait(0.9, 1.0) == pytest.approx(queues.mmc_wait(0.9, 1.0) / 2)


@pytest.mark.parametrize("used", [0.1, 0.5, 0.9])
def test_the_law_of_the_wait_of_m_d_1_is_erlangs_within_the_first_service(used: float) -> None:
    """P(W <= t) = (1 - rho) exp(lambda t) for t < D: one term of the classical sum, exact."""
    for t in (0.0, 0.3, 0.99):
        expected = 1 - (1 - used) * math.exp(used * t)
        assert queues.md1_wait_above(used, 1.0, t) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("used", [0.3, 0.8, 0.9])
def test_the_law_of_the_wait_of_m_d_1_has_its_mean(used: float) -> None:
    """The mean is the integral of P(W > t): Simpson within each service, where the law has no kink."""
    total, k = 0.0, 0
    while True:
        edges = [queues.md1_wait_above(used, 1.0, k + part) for part in (0.0, 0.25, 0.5, 0.75, 1.0 - 1e-12)]
        total += (edges[0] + 4 * edges[1] + 2 * edges[2] + 4 * edges[3] + edges[4]) / 12
        if edges[-1] < 1e-7:
            break
        k += 1

    assert total == pytest.approx(queues.md1_wait(used, 1.0), rel=1e-3)


def test_a_quantile_of_m_d_1_is_where_its_law_says() -> None:
    t = queues.md1_wait_quantile(80.0, 0.01, 0.99)

    assert queues.md1_wait_above(80.0, 0.01, t) == pytest.approx(0.01, rel=1e-3)
    assert queues.md1_wait_quantile(0.4, 1.0, 0.5) == 0.0  # 60 % do not wait


def test_bounds_hold_for_a_network_and_meet_at_the_knee() -> None:
    demands, think = [0.1, 0.04], 0.86
    for users in (1, 5, 10, 50):
        found, limit = queues.mva(demands, think, users), queues.bounds(demands, think, users)
        assert found.throughput <= limit.most_throughput + 1e-12
        assert found.response >= limit.least_response - 1e-12

    assert queues.bounds(demands, think, 1).knee == pytest.approx(10.0)
    assert queues.bounds(demands, think, 1, servers=2).knee == pytest.approx(20.0)


@pytest.mark.parametrize("p", [0.5, 0.9, 0.99])
def test_quantiles_of_the_repairman_are_those_of_the_simulator(p: float) -> None:
    stream = {"kind": "closed", "users": 6, "think": {"kind": "exponential", "mean_s": 1.0}}
    exact = queues.repairman_quantile(6, 1.0, 0.3, p)

    mean, error = simulated(
        {"kind": "exponential", "mean_s": 0.3}, stream, f"p{round(p * 100)}_s", seconds=20_000
    )

    assert error < 0.02 * exact
    assert abs(mean - exact) <= 4 * error


@pytest.mark.parametrize("p", [0.9, 0.99])
def test_quantiles_of_m_d_1_are_those_of_the_simulator(p: float) -> None:
    exact = 1 + queues.md1_wait_quantile(0.7, 1.0, p)
    stream = {"kind": "open", "rate_per_s": 0.7, "arrivals": "poisson"}

    mean, error = simulated({"kind": "fixed", "s": 1.0}, stream, f"p{round(p * 100)}_s", seconds=50_000)

    assert error < 0.02 * exact
    assert abs(mean - exact) <= 4 * error


def test_a_faulty_model_is_refused_with_every_fault() -> None:
    model = one_station({"kind": "fixed", "s": -1}, {"kind": "closed", "users": 1}, 1, 0)

    with pytest.raises(EngineError) as raised:
        engine.simulate(model)

    assert "duration_s" in raised.value.message
    assert "classes[0].route[0].work.s" in raised.value.message


@pytest.mark.parametrize("used", [0.3, 0.8, 0.95])
def test_md1_is_the_case_of_one_server_of_mdc(used: float) -> None:
    for t in (0.0, 0.4, 1.0, 2.7, 6.5):
        assert queues.mdc_wait_above(used, 1.0, 1, t) == pytest.approx(
            queues.md1_wait_above(used, 1.0, t), abs=1e-9
        )


@pytest.mark.parametrize(("servers", "used"), [(2, 0.8), (4, 0.9)])
def test_the_wait_of_mdc_is_that_of_a_simulation(servers: int, used: float) -> None:
    random = np.random.default_rng(3)
    arrival = simulated_queues.poisson(random, used * servers, 200_000)
    wait = simulated_queues.several_servers(arrival, np.ones(arrival.size), servers)[20_000:]

    for t in (0.0, 0.5, 1.0, 2.0):
        above = queues.mdc_wait_above(used * servers, 1.0, servers, t)
        assert float(np.mean(wait > t)) == pytest.approx(above, rel=0.06)
    quantile = queues.mdc_wait_quantile(used * servers, 1.0, servers, 0.99)
    assert float(np.quantile(wait, 0.99)) == pytest.approx(quantile, rel=0.06)
