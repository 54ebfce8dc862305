"""Leaks and drifts put into series with correlated noise."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.estimate.drift import Drift, Growth, drift, growth, slope_of
from loadlens.estimate.interval import Insufficient
from tests.unit.estimate.binomial import at_least, at_most

SECONDS = np.arange(600.0)
MIB = 2.0**20


def wander(seed: int, size: int, scale: float, correlation: float = 0.6) -> np.ndarray:
    """Noise in which neighbours go together (first-order autoregression)."""
    random = np.random.default_rng(seed)
    draws = random.normal(0, scale * np.sqrt(1 - correlation**2), size)
    out = np.empty(size)
    level = 0.0
    for i, draw in enumerate(draws):
        level = correlation * level + draw
        out[i] = level
    return out


def grown(level: np.ndarray, limit: float | None = None) -> Growth:
    found = growth(SECONDS[: level.size], level, limit=limit)
    assert isinstance(found, Growth), found
    return found


def test_memory_that_grows_by_2_percent_a_minute_is_a_leak_with_a_time_to_its_limit() -> None:
    level = 200 * MIB * (1 + 0.02 / 60 * SECONDS) + 0.5 * MIB * wander(1, 600, 1.0)

    found = grown(level, limit=480 * MIB)

    assert found.kind == "leak"
    assert found.per_second.covers(200 * MIB * 0.02 / 60)
    # at the end 240 MiB stand, 4 MiB a minute: 60 minutes to 480
    assert found.to_limit_s == pytest.approx(3600, rel=0.03)


def test_memory_that_fills_a_cache_and_stays_has_levelled_off() -> None:
    level = 200 * MIB * (2 - np.exp(-SECONDS / 60)) + 0.5 * MIB * wander(2, 600, 1.0)

    assert grown(level).kind == "levelled"


def test_steady_memory_is_no_leak_whatever_its_noise() -> None:
    kinds = [grown(200 * MIB * np.exp(wander(seed, 300, 0.02))).kind for seed in range(30)]

    assert kinds.count("leak") <= at_most(0.01, 30)


def test_a_falling_level_is_none_either() -> None:
    assert grown(200 * MIB * np.exp(-SECONDS / 1000 + wander(3, 600, 0.01))).kind == "falling"


def test_the_interval_of_a_slope_allows_for_wandering_and_a_plain_one_does_not() -> None:
    from scipy import stats as distributions

    hits = plain = 0
    replications = 60
    for seed in range(replications):
        series = wander(seed, 200, 1.0, correlation=0.7)
        hits += slope_of(SECONDS[:200], series).covers(0.0)
        found = distributions.theilslopes(series, SECONDS[:200])
        plain += found.low_slope <= 0 <= found.high_slope

    assert hits >= at_least(0.90, replications)
    assert plain < at_least(0.90, replications)


def test_a_service_that_becomes_slower_with_its_rows_drifts_for_a_reason() -> None:
    slower = 0.1 * np.exp(0.4 * SECONDS / 600 + wander(4, 600, 0.05))
    rows = 1000 + 10 * SECONDS
    steady = 0.003 * np.exp(wander(5, 600, 0.02))

    found = drift(slower, {"rows": rows, "cpu of a request": steady})

    assert isinstance(found, Drift)
    assert found.companions == ("rows",)
    assert found.is_explained


def test_a_steady_service_does_not_drift_though_its_rows_grow() -> None:
    found = drift(0.1 * np.exp(wander(6, 600, 0.05)), {"rows": 1000 + 10 * SECONDS})

    assert isinstance(found, Drift)
    assert not found.is_explained


def test_short_series_are_refused() -> None:
    assert isinstance(growth(SECONDS[:29], np.ones(29)), Insufficient)
    assert isinstance(drift(np.ones(29), {}), Insufficient)
