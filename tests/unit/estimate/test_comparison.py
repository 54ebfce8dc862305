"""Comparisons of pairs of trials, with differences, noise and drift that are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as distributions

from loadlens.estimate.comparison import ratio_of_pairs
from loadlens.estimate.interval import Insufficient, Interval, ShapeError
from tests.oracles.simulated_queues import mm1
from tests.unit.estimate.binomial import at_most


def ratio(baseline: np.ndarray, candidate: np.ndarray) -> Interval:
    interval = ratio_of_pairs(baseline, candidate)
    assert isinstance(interval, Interval), interval
    return interval


def test_the_interval_of_the_ratio_is_students_on_log_ratios() -> None:
    baseline, candidate = np.array([0.10, 0.11, 0.12, 0.10]), np.array([0.12, 0.12, 0.14, 0.11])
    test = distributions.ttest_rel(np.log(candidate), np.log(baseline))  # scipy's own paired test
    ends = np.exp(np.array(test.confidence_interval(0.95)))

    interval = ratio(baseline, candidate)

    assert (interval.low, interval.high) == pytest.approx(tuple(ends))


def test_the_same_service_twice_differs_one_time_in_twenty_by_trials_and_mostly_by_requests() -> None:
    by_trials = by_requests = 0
    for seed in range(60):
        parts = [mm1(100 * seed + k, 200.0, 400.0, 10)[1] for k in range(10)]
        medians = np.array([np.median(part) for part in parts])
        by_trials += not ratio(medians[:5], medians[5:]).covers(1.0)
        first, second = np.concatenate(parts[:5]), np.concatenate(parts[5:])
        by_requests += distributions.mannwhitneyu(first, second).pvalue < 0.05

    assert by_trials <= at_most(0.05, 60)
    assert by_requests > 20


@pytest.mark.parametrize(("order", "bias"), [("AAAAAABBBBBB", 0.18), ("ABBAABBAABBA", 0.0)])
def test_a_drift_falls_on_both_arms_when_their_order_turns(order: str, bias: float) -> None:
    # 3 % a trial: 6 trials later it is 18 %; in ABBA every pair cancels its neighbour's
    letters = np.array(list(order))
    level = np.exp(0.03 * np.arange(12))

    interval = ratio(level[letters == "A"], level[letters == "B"])

    assert np.log(interval.point) == pytest.approx(bias)


def test_a_trial_that_stands_apart_turns_to_signed_ranks() -> None:
    candidate = np.array([1.08, 1.09, 1.08, 1.07, 1.08, 1.085, 1.075, 3.0])

    interval = ratio(np.ones(8), candidate)

    assert "signed rank" in interval.method
    assert interval.point == pytest.approx(1.08, rel=0.01)


def test_too_few_pairs_and_zero_figures_are_refused() -> None:
    same = np.array([0.2, 0.3, 0.25])

    assert isinstance(ratio_of_pairs(same[:2], same[:2]), Insufficient)
    assert isinstance(ratio_of_pairs(same, 0 * same), Insufficient)
    with pytest.raises(ShapeError):
        ratio_of_pairs(same, same[:2])
