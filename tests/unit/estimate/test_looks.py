"""Looks at a comparison: the error over all of them under drift, bursts and warm-up; power from tables."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from loadlens.estimate import looks
from loadlens.estimate.comparison import holm, ratio_of_pairs
from loadlens.estimate.interval import Interval
from loadlens.estimate.looks import LOOKS, error_of, looks_within
from tests.unit.estimate.binomial import at_most

PAIRS = LOOKS[-1]


def arms(
    rng: np.random.Generator, size: int, drift: float, ratio: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Figures of two arms, shape (size, pairs), on a machine that drifts, is disturbed and warms up."""
    time = np.arange(2 * PAIRS)
    level = 0.02 * rng.standard_normal((size, time.size))
    level += drift * rng.choice([-1.0, 1.0], (size, 1)) * time / time.size
    level += np.where(rng.random((size, time.size)) < 0.08, rng.exponential(0.2, (size, time.size)), 0.0)
    level += 0.1 * rng.random((size, 1)) * np.exp(-time / 2)
    is_first = rng.random((size, PAIRS)) < 0.5
    even, odd = level[:, ::2], level[:, 1::2]
    return np.exp(np.where(is_first, even, odd)), ratio * np.exp(np.where(is_first, odd, even))


def differs(baseline: np.ndarray, candidate: np.ndarray) -> int | None:
    """Return the first look at which a ratio excludes 1."""
    for look in LOOKS:
        interval = ratio_of_pairs(baseline[:look], candidate[:look], confidence=1 - error_of(look, LOOKS))
        assert isinstance(interval, Interval)
        if not interval.covers(1.0):
            return look
    return None


def test_the_parts_of_the_error_add_up_to_all_of_it() -> None:
    for pairs in (3, 7, 8, 40):
        within = looks_within(pairs)

        assert sum(error_of(look, within) for look in within) == pytest.approx(0.05)
    # 3 of 13 pairs have 3/13 of 5 %, by hand
    assert error_of(3, LOOKS) == pytest.approx(0.0115, abs=1e-4)
    assert looks_within(2) == ()


@pytest.mark.parametrize("drift", [0.0, 0.03, 0.3])
def test_equal_arms_differ_at_any_look_at_most_one_time_in_twenty(drift: float) -> None:
    baseline, candidate = arms(np.random.default_rng(17), 1000, drift)

    alarms = sum(differs(a, b) is not None for a, b in zip(baseline, candidate, strict=True))

    assert alarms <= 50


def test_an_arm_that_is_five_percent_slower_is_found_within_13_pairs() -> None:
    rng = np.random.default_rng(18)
    noise = np.exp(0.02 * rng.standard_normal((2, 300, PAIRS)))

    slower = sum(differs(a, 1.05 * b) is not None for a, b in zip(*noise, strict=True))

    # pairs scatter by 2.8 %: at the last look alone the noncentral t distribution gives 0.995
    assert slower >= 285


# Pairs of a two-sided paired t test at 5 % with power 0.80, as G*Power 3 prints them
# (F. Faul et al., Behavior Research Methods 39, 2007; Cohen 1988 has the same after rounding).
@pytest.mark.parametrize(("effect", "pairs"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_a_difference_is_found_as_often_as_published_tables_say(effect: float, pairs: int) -> None:
    rng = np.random.default_rng(19)
    scatter = 0.04  # so small that the scatter of a ratio is that of its logarithm
    noise = np.exp(scatter / math.sqrt(2) * rng.standard_normal((2, 2000, pairs)))

    differ = 0
    for a, b in zip(*noise, strict=True):
        interval = ratio_of_pairs(a, b * math.exp(effect * scatter), confidence=0.95)
        differ += isinstance(interval, Interval) and not interval.covers(1.0)

    assert differ / 2000 == pytest.approx(0.80, abs=0.03)  # three standard errors, and the table's rounding


def test_a_decidable_margin_decides_for_equal_arms_as_often_as_it_says() -> None:
    rng = np.random.default_rng(20)
    scatter, error = 0.02, error_of(13, LOOKS)
    margin = looks.decidable_margin(scatter, 13, error)
    ratios = scatter * rng.standard_normal((20_000, 13))
    half = 2.7022 * ratios.std(axis=1, ddof=1) / math.sqrt(13)  # t of 12 degrees at 1 - error/2, from scipy

    within = float(np.mean(np.abs(ratios.mean(axis=1)) + half < math.log1p(margin)))

    # the plan takes the scatter as known; estimated from 13 pairs it varies by a fifth
    assert within == pytest.approx(0.8, abs=0.06)
    assert looks.allowed_scatter(margin, 13, error) == pytest.approx(scatter)


def test_the_pairs_that_would_decide_grow_as_the_effect_nears_the_margin() -> None:
    far, near = (looks.pairs_to_decide(ratio, 0.02, 0.03, 0.05) for ratio in (1.08, 1.04))

    assert far < near < looks.MOST_PAIRS
    assert looks.pairs_to_decide(1.03, 0.02, 0.03, 0.05) == looks.MOST_PAIRS


def test_holm_rejects_as_by_hand() -> None:
    # p-values 0.01, 0.02, 0.04: 0.01 < 0.05/3, 0.02 < 0.05/2, 0.04 < 0.05; with 0.03 second all stop there
    def effect(p: float) -> Callable[[float], Interval]:
        return lambda confidence: Interval(1.2, 1.1 if 1 - confidence >= p else 0.9, 1.5, 9, "", confidence)

    def differing(*values: float) -> list[float]:
        return [p for p, tested in holm({p: effect(p) for p in values}, 0.05).items() if tested.differs]

    assert sorted(differing(0.01, 0.02, 0.04)) == [0.01, 0.02, 0.04]
    assert differing(0.01, 0.03, 0.04) == [0.01]
    assert differing(0.02, 0.03, 0.04) == []


def test_equal_arms_with_five_metrics_are_told_apart_at_most_one_time_in_twenty() -> None:
    rng = np.random.default_rng(21)
    alarms = 0
    for _ in range(300):
        shared = 0.02 * rng.standard_normal((2, PAIRS))
        metrics = [np.exp(shared + 0.03 * rng.standard_normal((2, PAIRS))) for _ in range(5)]
        for look in LOOKS:
            effects = {
                place: lambda confidence, arm=arm, look=look: ratio_of_pairs(
                    arm[0][:look], arm[1][:look], confidence=confidence
                )
                for place, arm in enumerate(metrics)
            }
            if any(tested.differs for tested in holm(effects, error_of(look, LOOKS)).values()):
                alarms += 1
                break

    assert alarms <= at_most(0.05, 300)
