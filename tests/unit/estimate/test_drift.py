"""Leaks and drifts put into series with correlated noise."""

from __future__ import annotations

import numpy as np

from loadlens.estimate.drift import slope_of
from tests.unit.estimate.binomial import at_least

SECONDS = np.arange(600.0)


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


def test_the_interval_of_a_slope_allows_for_wandering_and_a_plain_one_does_not() -> None:
    from scipy import stats as distributions

    hits = plain = 0
    replications = 60
    for seed in range(replications):
        series = wander(seed, 200, 1.0, correlation=0.7)
        hits += slope_of(SECONDS[:200], series).covers(0.0)
        slope = distributions.theilslopes(series, SECONDS[:200])
        plain += slope.low_slope <= 0 <= slope.high_slope

    assert hits >= at_least(0.90, replications)
    assert plain < at_least(0.90, replications)
