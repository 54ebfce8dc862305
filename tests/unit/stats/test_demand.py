"""Service demand recovered from counters made with known demands."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.stats.demand import Demand, demand, demand_with_background
from loadlens.stats.interval import Insufficient, Interval


def observations(seed: int, background: float, demands: list[float]) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    rates = random.uniform(5, 100, (18, len(demands)))
    busy = background + rates @ np.array(demands)
    return busy * (1 + random.normal(0, 0.02, 18)), rates


def test_the_background_is_not_charged_to_requests() -> None:
    busy, rates = observations(1, 0.04, [0.003])

    found = demand(busy, rates)

    assert isinstance(found, Demand)
    assert found.per_request[0].point == pytest.approx(0.003, rel=0.03)
    assert (busy / rates[:, 0]).mean() > 1.1 * 0.003  # the bare ratio is a fifth too high


def test_intervals_of_two_classes_cover_their_demands() -> None:
    hits = 0
    for seed in range(30):
        busy, rates = observations(seed, 0.04, [0.003, 0.0005])
        found = demand(busy, rates)
        assert isinstance(found, Demand)
        hits += found.per_request[0].covers(0.003) + found.per_request[1].covers(0.0005)
    assert hits / 60 >= 0.85


def test_rates_that_hardly_vary_are_refused() -> None:
    rates = np.linspace(4.50, 4.55, 8)[:, None]

    found = demand(0.01 + 0.218 * rates[:, 0], rates)

    assert isinstance(found, Insufficient)
    assert "varied too little" in found.reason


def test_without_variation_the_demand_is_bounded_by_the_background() -> None:
    busy = Interval(0.99, 0.98, 1.0, 10, "x")
    rate = Interval(4.5, 4.5, 4.5, 10, "x")

    found = demand_with_background(busy, rate, most_background=0.09)

    assert isinstance(found, Interval)
    assert (found.point, found.low, found.high) == pytest.approx((0.22, 0.98 / 4.5 - 0.02, 1.0 / 4.5))
