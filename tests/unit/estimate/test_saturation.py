"""Knees and plateaus, against the machine repairman (M/M/c//N) and asymptotic bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.saturation import (
    Fall,
    Saturation,
    Step,
    fall,
    knee_interval,
    saturation,
)
from tests.unit.estimate.binomial import at_least, at_most


def repairman(users: int, think: float, work: float, servers: int) -> float:
    """Exact throughput of M/M/c//N (birth and death, in logs)."""
    logs = [0.0]
    for n in range(1, users + 1):
        logs.append(logs[-1] + math.log((users - n + 1) / think) - math.log(min(n, servers) / work))
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    return float((np.minimum(np.arange(users + 1), servers) * weights).sum() / work)


def curve(seed: int, loads: list[int], noise: float = 0.02, trials: int = 3, servers: int = 1) -> list[Step]:
    random = np.random.default_rng(seed)
    return [Step(n, repairman(n, 0.4, 0.1, servers) * np.exp(random.normal(0, noise, trials))) for n in loads]


def outcome(steps: list[Step], alone_s: float | None = 0.1) -> Saturation:
    result = saturation(steps, alone_s=alone_s, think_s=0.4)
    assert isinstance(result, Saturation), result
    return result


@pytest.mark.parametrize(("servers", "knee"), [(1, 5.0), (4, 20.0)])
def test_littles_knee_is_servers_times_demand_plus_think_over_demand(servers: int, knee: float) -> None:
    steps = curve(1, [1, 8, 16, 32, 64, 128], servers=servers)

    assert outcome(steps).knee == pytest.approx(knee, rel=0.07)


def test_a_full_server_is_saturated_and_a_lightly_used_one_is_not() -> None:
    assert outcome(curve(1, [1, 4, 16, 32])).verdict == "saturated"
    assert outcome(curve(1, [1, 2, 3, 4])).verdict == "underdriven"


def test_six_clients_do_not_saturate_three_servers_with_a_knee_at_ten() -> None:
    steps = [Step(3, np.array([45.0] * 3)), Step(6, np.array([73.0] * 3))]

    result = saturation(steps, alone_s=0.0725, think_s=0.0)

    assert isinstance(result, Saturation)
    assert result.verdict == "underdriven"


def test_a_flat_curve_is_not_called_falling() -> None:
    alarms = sum(
        outcome(
            [
                Step(n, 100 * np.exp(np.random.default_rng(31 * s + n).normal(0, 0.03, 3)))
                for n in (10, 20, 40, 80, 160)
            ],
            alone_s=0.01,
        ).verdict
        == "retrograde"
        for s in range(200)
    )

    assert alarms <= 2


def test_a_fall_of_a_fifth_is_found() -> None:
    level = {10: 100.0, 20: 100.0, 40: 99.0, 80: 90.0, 160: 80.0}
    seen = 0
    for s in range(40):
        random = np.random.default_rng(s)
        steps = [Step(n, x * np.exp(random.normal(0, 0.03, 3))) for n, x in level.items()]
        seen += outcome(steps, alone_s=0.01).verdict == "retrograde"
    assert seen >= 36


def test_a_plateau_needs_load_beyond_the_knee_even_if_the_last_doubling_gave_nothing() -> None:
    steps = [Step(2, np.array([10.0])), Step(4, np.array([10.2]))]

    result = saturation(steps, alone_s=0.3, think_s=0.1)

    assert isinstance(result, Saturation)
    assert result.verdict == "underdriven"
    assert "1.0 times the knee" in result.reason


def test_a_step_that_only_comes_back_from_a_dip_brought_no_gain_over_the_plateau() -> None:
    """88 over the 84 of a quarter of the users is 5 % for a doubling, whatever half of them brought."""
    rates = {1: 3.1, 4: 12.4, 16: 48.2, 32: 84.0, 64: 71.1, 128: 88.1}

    seen = outcome([Step(users, np.array([rate])) for users, rate in rates.items()], alone_s=0.325)

    assert seen.gain_per_doubling == pytest.approx(88.1 / 84.0 - 1)
    assert seen.verdict == "saturated"


def test_a_step_within_the_noise_of_the_plateau_is_compared_as_it_is() -> None:
    rates = {1: 3.1, 16: 48.2, 32: 84.0, 64: 80.0, 128: 96.0}  # 80 lies within 5 % of 84

    seen = outcome([Step(users, np.array([rate])) for users, rate in rates.items()], alone_s=0.325)

    assert seen.gain_per_doubling == pytest.approx(96.0 / 80.0 - 1)
    assert seen.verdict == "underdriven"


def test_no_knee_lies_below_one_user() -> None:
    steps = [Step(n, np.array([100.0] * 3)) for n in (1, 2, 4)]

    result = saturation(steps, alone_s=0.004, think_s=0.0)  # a lower bound: 100/s x 4 ms = 0.4 users

    assert isinstance(result, Saturation)
    assert (result.knee, result.beyond_knee) == (1.0, 4.0)


def test_one_level_is_refused() -> None:
    assert isinstance(saturation([Step(1, np.ones(3))], alone_s=None, think_s=0.0), Insufficient)


def test_errors_of_the_knee_add_in_squares() -> None:
    capacity = Interval(10.0, 9.0, 11.0, 3, "x")
    alone = Interval(0.5, 0.45, 0.55, 3, "x")

    knee = knee_interval(capacity, alone, 0.0)

    assert knee.point == pytest.approx(5.0)
    assert (knee.low, knee.high) == pytest.approx((5 * (1 - 0.1 * 2**0.5), 5 * (1 + 0.1 * 2**0.5)))


def falls(trials: int, drop: float, replications: int = 400) -> list[Fall]:
    random = np.random.default_rng(trials)
    outcome = []
    for _ in range(replications):
        noisy = np.exp(0.03 * random.normal(size=(5, trials)))
        tested = fall(list(noisy[:4]), (1 - drop) * noisy[4])
        assert isinstance(tested, Fall)
        outcome.append(tested)
    return outcome


@pytest.mark.parametrize("trials", [3, 5])
def test_a_fall_at_the_margin_is_called_real_one_time_in_a_hundred_and_none_never(trials: int) -> None:
    assert sum(tested.is_real for tested in falls(trials, 0.0)) <= at_most(0.001, 400)
    assert sum(tested.is_real for tested in falls(trials, 0.05)) <= at_most(0.01, 400)


@pytest.mark.parametrize(("trials", "power"), [(3, 0.84), (5, 0.968)])
def test_a_tenth_less_is_seen_as_often_as_planned(trials: int, power: float) -> None:
    # 84 % and 97 % at the 5 % level, from 3,000 replications with 3 % noise
    seen = sum(tested.p_value < 0.05 for tested in falls(trials, 0.10))

    assert seen >= at_least(power, 400)


def test_the_interval_of_the_drop_covers_it() -> None:
    assert sum(tested.drop.covers(0.10) for tested in falls(3, 0.10)) >= at_least(0.95, 400)


def test_single_trials_have_no_fall() -> None:
    assert isinstance(fall([np.ones(1)], np.ones(1)), Insufficient)
