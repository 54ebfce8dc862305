"""Service demand recovered from counters made with known demands."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.estimate.demand import (
    Demand,
    Resource,
    bounds,
    demand,
    demand_with_background,
)
from loadlens.estimate.interval import Insufficient, Interval
from tests.unit.estimate.binomial import at_least


def observations(seed: int, background: float, demands: list[float]) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    rates = random.uniform(5, 100, (18, len(demands)))
    busy = background + rates @ np.array(demands)
    return busy * (1 + random.normal(0, 0.02, 18)), rates


def test_the_background_is_not_charged_to_requests() -> None:
    busy, rates = observations(1, 0.04, [0.003])

    fitted = demand(busy, rates)

    assert isinstance(fitted, Demand)
    assert fitted.per_request[0].point == pytest.approx(0.003, rel=0.03)
    assert (busy / rates[:, 0]).mean() > 1.1 * 0.003  # the bare ratio is a fifth too high


def test_intervals_of_two_classes_cover_their_demands() -> None:
    hits = 0
    for seed in range(30):
        busy, rates = observations(seed, 0.04, [0.003, 0.0005])
        fitted = demand(busy, rates)
        assert isinstance(fitted, Demand)
        hits += fitted.per_request[0].covers(0.003) + fitted.per_request[1].covers(0.0005)
    assert hits >= at_least(0.93, 60)  # what the widened bootstrap covers in a thousand replications


def test_rates_that_hardly_vary_are_refused() -> None:
    rates = np.linspace(4.50, 4.55, 8)[:, None]

    fitted = demand(0.01 + 0.218 * rates[:, 0], rates)

    assert isinstance(fitted, Insufficient)
    assert "varied too little" in fitted.reason


def test_without_variation_the_demand_is_bounded_by_the_background() -> None:
    busy = Interval(0.99, 0.98, 1.0, 10, "x")
    rate = Interval(4.5, 4.5, 4.5, 10, "x")

    fitted = demand_with_background(busy, rate, most_background=0.09)

    assert isinstance(fitted, Interval)
    assert (fitted.point, fitted.low, fitted.high) == pytest.approx((0.22, 0.98 / 4.5 - 0.02, 1.0 / 4.5))


def around(point: float, relative: float = 0.02) -> Interval:
    return Interval(point, point * (1 - relative), point * (1 + relative), 18, "x")


def test_the_resource_whose_bound_is_the_plateau_explains_it() -> None:
    fitted = bounds([Resource("disk", 1, around(0.001)), Resource("cpu", 2, around(0.01))], around(195.0))

    assert [(single.name, single.explains) for single in fitted] == [("cpu", True), ("disk", False)]
    assert fitted[0].rate.point == pytest.approx(200.0)
    assert fitted[0].utilisation == pytest.approx(0.975)
    assert (fitted[0].rate.low, fitted[0].rate.high) == pytest.approx((2 / 0.0102, 2 / 0.0098))


def test_a_bound_a_fifth_away_decides_only_by_its_interval() -> None:
    near, far = around(2 / 120, 0.25), around(2 / 120, 0.01)

    assert bounds([Resource("cpu", 2, near)], around(100.0))[0].explains is None
    assert bounds([Resource("cpu", 2, far)], around(100.0))[0].explains is False
