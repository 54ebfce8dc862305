"""Hills of distributions that are known to have one, two or three."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import ndimage

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.interval_counts import IntervalCounts, counts_from_values
from loadlens.estimate.mixtures import (
    Mixture,
    _smoothed,
    is_constant,
    mixture,
    piles,
    slow_path,
    timer_of,
)
from tests.oracles.simulated_queues import poisson, single_server
from tests.unit.estimate.binomial import at_least

N = 10_000


def gathered(seconds: np.ndarray) -> IntervalCounts:
    return counts_from_values(50, (np.arange(seconds.size) % 50).astype(np.int64), seconds)


def hills(seconds: np.ndarray) -> Mixture:
    modes = mixture(gathered(seconds))
    assert isinstance(modes, Mixture), modes
    return modes


def queue(random: np.random.Generator, utilisation: float) -> np.ndarray:
    work = random.exponential(0.02, N)
    return single_server(poisson(random, utilisation / 0.02, N), work) + work


ONE_HILL: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "exponential": lambda random: random.exponential(0.02, N),
    "lognormal": lambda random: 0.02 * np.exp(random.normal(size=N)),
    "gamma": lambda random: random.gamma(4, 0.005, N),
    "queue at 90 %": lambda random: queue(random, 0.9),
    "Pareto": lambda random: 0.005 * (1 + random.pareto(1.5, N)),
}


@pytest.mark.parametrize("name", ONE_HILL)
def test_what_has_one_hill_is_never_called_a_mixture(name: str) -> None:
    modes = [len(hills(ONE_HILL[name](np.random.default_rng(seed))).components) for seed in range(20)]

    assert set(modes) == {1}


@pytest.mark.parametrize("weight", [0.01, 0.1, 0.3])
def test_a_path_that_takes_half_a_second_longer_is_found_with_weight_and_shift(weight: float) -> None:
    covered = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        modes = hills(0.02 * np.exp(0.3 * random.normal(size=N)) + 0.5 * (random.random(N) < weight))

        assert len(modes.components) == 2
        usual, slow = (part.median for part in modes.components)
        assert isinstance(usual, Interval)
        assert isinstance(slow, Interval)
        assert slow.point - usual.point == pytest.approx(0.5, abs=0.004)
        assert slow_path(modes) is modes.components[1]
        covered += modes.components[1].weight.covers(weight)
    assert covered >= at_least(0.93, 20)


def test_steps_of_equal_work_are_no_slow_path() -> None:
    random = np.random.default_rng(1)
    modes = hills(0.02 * random.integers(1, 3, N) + 0.0005 * random.random(N))  # one or two in the queue

    assert len(modes.components) == 2
    assert slow_path(modes) is None  # 40 ms is twice 20 ms


def test_bursts_of_slow_requests_widen_the_interval_of_their_weight() -> None:
    random = np.random.default_rng(3)
    interval = (np.arange(N) % 50).astype(np.int64)
    slow = random.random(50)[interval] < 0.1  # whole intervals are slow
    seconds = 0.02 * np.exp(0.3 * random.normal(size=N)) + 0.5 * slow
    modes = mixture(counts_from_values(50, interval, seconds))

    assert isinstance(modes, Mixture)
    weight = modes.components[1].weight
    binomial = 1.96 * np.sqrt(weight.point * (1 - weight.point) / N)
    assert (weight.high or 0) - weight.point > 4 * binomial


def test_one_lost_packet_in_a_thousand_piles_up_at_its_timer() -> None:
    random = np.random.default_rng(4)
    seconds = 0.003 * np.exp(0.5 * random.normal(size=N))
    seconds[:100] += 1.0
    seconds[100:110] += 3.0  # 0.1 %: too light for a hill

    modes = piles(gathered(seconds))

    assert [pile.timer_s for pile in modes] == [1.0, 3.0]
    assert modes[1].share.point == pytest.approx(0.001)


def test_a_heavy_tail_piles_up_at_no_timer() -> None:
    alarms = sum(
        len(piles(gathered(0.003 * (1 + np.random.default_rng(seed).pareto(1.2, N))))) for seed in range(30)
    )

    assert alarms <= 2


@pytest.mark.parametrize(("shift", "timer"), [(0.0405, "delayed"), (0.2, "retransmission"), (1.02, "SYN")])
def test_shifts_of_tcp_are_named(shift: float, timer: str) -> None:
    assert timer in (timer_of(shift) or "")
    assert timer_of(0.5) is None


def test_a_shift_that_grows_with_the_load_is_queueing() -> None:
    assert is_constant([0.50, 0.51, 0.49])
    assert is_constant([0.50, 0.70]) is False
    assert is_constant([0.5]) is None


def test_heights_are_smoothed_as_scipy_does() -> None:
    heights = np.random.default_rng(7).poisson(3, 40).astype(np.float64)

    assert _smoothed(heights, 3.0) == pytest.approx(ndimage.gaussian_filter1d(heights, 3.0), rel=1e-12)


def test_too_few_requests_are_refused() -> None:
    assert isinstance(mixture(gathered(np.full(199, 0.1))), Insufficient)
