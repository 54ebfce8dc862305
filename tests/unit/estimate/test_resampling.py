"""Block resampling, against a queue whose quantiles are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.resampling import by_blocks, percentile_interval, quantile_ratio
from tests.unit.estimate.binomial import at_least
from tests.unit.estimate.queues import by_second, mm1

RATIO = math.log(0.05) / math.log(0.5)  # p95 over p50 of an exponential response time, any utilisation


def test_blocks_cover_a_ratio_of_quantiles_that_single_requests_do_not() -> None:
    blocks = requests = 0
    replications = 30
    for seed in range(replications):
        done, response = mm1(seed, 160.0, 200.0, 200)
        found = quantile_ratio(by_second(done, response, 200), 0.95, 0.5, resamples=100)
        assert isinstance(found, Interval), found
        blocks += found.covers(RATIO)
        random = np.random.default_rng(seed)
        drawn = [np.quantile(random.choice(response, response.size), [0.95, 0.5]) for _ in range(60)]
        ratios = [high / low for high, low in drawn]
        low, high = np.quantile(ratios, [0.025, 0.975])
        requests += low <= RATIO <= high

    assert blocks >= at_least(0.88, replications)  # what moving blocks are known to cover here
    assert requests < at_least(0.88, replications)


def test_the_point_is_the_statistic_of_the_whole() -> None:
    values = np.arange(400.0)

    found = by_blocks(400, lambda weights: float(values @ weights / weights.sum()))

    assert isinstance(found, Interval)
    assert found.point == pytest.approx(values.mean())
    assert found.independent == pytest.approx(400 / 16)  # blocks of 0.8 sqrt(400)


def test_too_few_intervals_for_ten_blocks_are_refused() -> None:
    assert isinstance(by_blocks(50, lambda weights: float(weights.sum())), Insufficient)


def test_a_statistic_without_a_value_is_refused() -> None:
    assert isinstance(by_blocks(400, lambda _: math.nan), Insufficient)


def test_infinite_draws_leave_an_end_open() -> None:
    draws = np.concatenate([np.linspace(1, 2, 90), np.full(10, math.inf)])

    found = percentile_interval(1.5, draws, widening=1.0, independent=9.0, method="x")

    assert found.high is None
    assert found.low == pytest.approx(1.02, abs=0.02)
