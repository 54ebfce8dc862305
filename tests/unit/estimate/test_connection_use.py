"""Limits of connections and fairness of balancers, with what was drawn known."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.estimate.connection_use import (
    Balance,
    Closings,
    Fairness,
    balance,
    closings,
    cost_of_connecting,
    fairness,
)
from loadlens.estimate.interval import Insufficient, Interval
from tests.unit.estimate.binomial import at_most


def common(requests: np.ndarray, age: np.ndarray) -> Closings:
    closed = closings(requests, age)
    assert isinstance(closed, Closings), closed
    return closed


@pytest.mark.parametrize("limit", [1, 10, 100, 1000])
def test_a_limit_of_requests_is_the_count_that_closed_connections_share(limit: int) -> None:
    closed = common(np.full(28, limit), np.random.default_rng(limit).uniform(1, 60, 28))

    assert (closed.count, closed.requests, closed.same_requests) == (28, limit, 1.0)


def test_connections_that_live_equally_long_meet_a_time_out() -> None:
    random = np.random.default_rng(1)
    closed = common(random.integers(1, 500, 30), random.normal(5.0, 0.05, 30))

    assert closed.same_requests < 0.8
    assert closed.same_age >= 0.8
    assert closed.age_s == pytest.approx(5.0, abs=0.1)


def test_connections_closed_by_errors_have_no_limit() -> None:
    random = np.random.default_rng(2)
    closed = common(random.integers(1, 500, 30), random.exponential(5.0, 30))

    assert max(closed.same_requests, closed.same_age) < 0.8


def test_few_closings_decide_nothing() -> None:
    assert isinstance(closings(np.full(9, 100), np.ones(9)), Insufficient)


def test_the_cost_of_connecting_is_spread_over_the_requests_of_a_connection() -> None:
    first, other = Interval(0.0033, 0.0032, 0.0034, 100, "x"), Interval(0.0013, 0.0013, 0.0013, 900, "x")

    result = cost_of_connecting(first, other, 10, 0.0015)

    assert result.point == pytest.approx(0.002 / (10 * 0.0015))
    assert result.high is not None
    assert result.high - result.point == pytest.approx(0.0001 / 0.015)


def fair(random: np.random.Generator, connections: int, replicas: int) -> tuple[Balance, np.ndarray]:
    hashed = np.bincount(random.integers(0, replicas, connections), minlength=replicas).astype(float)
    requests = random.poisson(hashed * 200).astype(float)
    result = balance(requests, hashed)
    assert isinstance(result, Balance), result
    return result, requests


@pytest.mark.parametrize(("connections", "replicas"), [(6, 3), (12, 4), (60, 4), (400, 4)])
def test_fair_hashing_is_hardly_ever_called_uneven_though_requests_look_so(
    connections: int, replicas: int
) -> None:
    from scipy import stats as distributions

    random = np.random.default_rng(connections)
    verdicts, by_requests = [], 0
    for _ in range(100):
        result, requests = fair(random, connections, replicas)
        verdicts.append(result.verdict)
        by_requests += distributions.chisquare(requests + 1e-9).pvalue < 1e-3

    assert verdicts.count("uneven") <= at_most(0.06, 100)  # 5 % beyond the quantile, and the test's own 1 %
    assert by_requests > 70


def test_how_uneven_fair_hashing_is_agrees_with_what_can_be_counted() -> None:
    # 2 connections on 2 replicas: half of the time one gets both (2 x the mean), else 1
    result = balance(np.array([100.0, 100.0]), np.array([1.0, 1.0]))

    assert isinstance(result, Balance)
    assert result.fair_p95 == 2.0
    assert result.verdict == "even"


def test_a_weight_of_three_to_one_is_uneven() -> None:
    result = balance(np.array([3000.0, 1000.0, 1000.0]), np.array([150.0, 50.0, 50.0]))

    assert isinstance(result, Balance)
    assert result.verdict == "uneven"
    assert result.most_over_mean == pytest.approx(1.8)


def test_six_connections_on_three_replicas_are_few_and_not_unfair() -> None:
    result = balance(np.array([3000.0, 2000.0, 1000.0]), np.array([3.0, 2.0, 1.0]))

    assert isinstance(result, Balance)
    assert result.verdict == "few_connections"


def test_jains_index_is_the_share_of_those_who_are_served() -> None:
    # Jain 1984: k of n equally served and the rest not at all gives k / n
    served = np.array([200.0] * 8 + [0.0] * 2)
    result = fairness(served)

    assert isinstance(result, Fairness)
    assert result.jain == pytest.approx(0.8)
    assert result.starves


def test_connections_that_differ_by_chance_do_not_starve() -> None:
    result = fairness(np.random.default_rng(1).poisson(100, 50).astype(float))

    assert isinstance(result, Fairness)
    assert not result.starves
    assert isinstance(fairness(np.full(50, 5.0)), Insufficient)
