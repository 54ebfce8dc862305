"""Warm-up cuts and trends on series whose truth is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from loadlens.estimate.interval import Insufficient, ShapeError
from loadlens.estimate.steady_state import (
    Steadiness,
    level_cut,
    mser_cut,
    segments,
    steadiness,
    trend_of,
)
from tests.oracles.simulated_queues import poisson, single_server
from tests.unit.estimate.binomial import at_least, at_most


def steady(series: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Steadiness:
    settled = steadiness(series)
    assert isinstance(settled, Steadiness), settled
    return settled


def noise(seed: int, points: int, correlation: float = 0.0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    random = np.random.default_rng(seed)
    out = np.empty(points)
    level = 0.0
    for i in range(points):
        level = correlation * level + random.normal(0, 0.05 * np.sqrt(1 - correlation**2))
        out[i] = level
    return out


def test_a_stationary_series_has_no_shift() -> None:
    shifts = sum(len(segments(noise(seed, 120))) > 1 for seed in range(40))

    assert shifts <= 1


def test_a_stationary_correlated_series_is_called_steady() -> None:
    refused = sum(not steady(np.exp(noise(seed, 120, 0.6))).is_steady for seed in range(40))

    assert refused <= 2


def test_a_step_is_cut_where_it_happens() -> None:
    series = np.log(0.1) + noise(2, 120)
    series[:15] += np.log(1.6)

    assert level_cut(series) == 15


def test_an_exponential_warm_up_is_cut_and_the_rest_is_unbiased() -> None:
    time = np.arange(120)
    biases = []
    for seed in range(10):
        series = 0.1 * np.exp(noise(seed, 120)) * (1 + 0.9 * np.exp(-time / 8))
        settled = steady(series)
        biases.append(np.median(series[settled.cut :]) / 0.1 - 1)
        assert settled.kind == "warmup"
    assert abs(np.mean(biases)) < 0.03  # untrimmed: 11 %


def test_drift_is_refused_though_mser_sees_nothing() -> None:
    series = np.linspace(0.0, 0.4, 120) + noise(5, 120)
    flat = np.linspace(0.0, 0.05, 120) + noise(5, 120)

    assert not steady(np.exp(series)).is_steady
    assert mser_cut(flat) < 60
    assert trend_of(series).matters


def test_a_late_shift_is_no_steady_state() -> None:
    series = np.log(0.1) + noise(6, 120)
    series[90:] += np.log(1.6)

    assert steady(np.exp(series)).kind == "no_steady"


def test_the_trend_test_keeps_its_level_on_correlated_noise() -> None:
    alarms = sum(trend_of(noise(seed, 120, 0.5)).p_value < 0.01 for seed in range(100))

    assert alarms <= 5


def test_a_curved_trend_is_found() -> None:
    curve = 0.3 * (np.arange(120) / 120) ** 3
    settled = sum(trend_of(curve + noise(seed, 120)).p_value < 0.01 for seed in range(20))

    assert settled >= 18


def test_segments_are_those_of_an_exhaustive_search() -> None:
    series = np.concatenate([np.zeros(8), np.full(8, 2.0)]) + noise(1, 16) * 0.2
    cost = {
        start: ((series[:start] - series[:start].mean()) ** 2).sum()
        + ((series[start:] - series[start:].mean()) ** 2).sum()
        for start in range(5, 12)
    }

    assert segments(series) == [0, min(cost, key=lambda start: cost[start])]


def test_gaps_in_a_series_are_skipped() -> None:
    series = np.exp(noise(1, 40))
    series[5:9] = np.nan

    assert steady(series).is_steady


@pytest.mark.parametrize("points", [0, 9])
def test_too_short_a_series_is_refused(points: int) -> None:
    assert isinstance(steadiness(np.ones(points)), Insufficient)


def medians(
    seed: int, utilisation: float, slower: Callable[[np.ndarray], np.ndarray] | None = None
) -> np.ndarray:
    """Median response time of each second of an M/M/1 queue over two minutes, its work multiplied in time."""
    random = np.random.default_rng(seed)
    arrival = poisson(random, 200.0, 26_000)
    work = random.exponential(utilisation / 200.0, arrival.size)
    if slower is not None:
        work = work * slower(arrival)
    response = single_server(arrival, work) + work
    second = np.floor(arrival).astype(int)
    return np.array([np.median(response[second == k]) for k in range(120)])


@pytest.mark.parametrize("utilisation", [0.5, 0.8])
def test_a_queue_at_rest_has_no_shift_and_no_trend(utilisation: float) -> None:
    settled = [medians(seed, utilisation)[20:] for seed in range(30)]

    # at 80 % a queue of two minutes wanders: what matters is that it is hardly ever refused
    assert sum(not steady(series).is_steady for series in settled) <= at_most(0.03, 30)
    assert sum(trend_of(np.log(series)).p_value < 0.01 for series in settled) <= at_most(0.01, 30)


def test_a_queue_whose_work_becomes_dearer_is_refused() -> None:
    settled = [medians(seed, 0.5, lambda t: 1 + 0.5 * t / 120) for seed in range(20)]

    assert sum(steady(series).kind == "no_steady" for series in settled) >= at_least(0.95, 20)


def test_a_cold_queue_is_cut_where_its_first_seconds_were_slow() -> None:
    cuts = [steady(medians(seed, 0.5, lambda t: np.where(t < 15, 1.7, 1.0))).cut for seed in range(20)]

    assert np.median(cuts) == pytest.approx(15, abs=1)


def test_pauses_that_are_left_out_are_no_shifts() -> None:
    series = np.exp(noise(1, 200))
    pause = (np.arange(200) // 10) % 3 == 2  # ten intervals of every thirty stand still
    series[pause] *= 20

    assert not steady(series).is_steady
    settled = steadiness(series, left_out=pause, is_periodic=True)
    assert isinstance(settled, Steadiness)
    assert (settled.kind, settled.cut) == ("cyclic", 0)
    with pytest.raises(ShapeError):
        steadiness(series, left_out=pause[1:])


def test_equal_figures_have_no_trend() -> None:
    assert trend_of(np.ones(50)).p_value == 1.0
