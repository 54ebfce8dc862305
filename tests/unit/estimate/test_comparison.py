"""Comparisons of pairs of trials, with differences, noise and drift that are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as distributions

from loadlens.estimate.comparison import Comparison, compare_pairs
from loadlens.estimate.interval import Insufficient, ShapeError
from tests.oracles.simulated_queues import mm1
from tests.unit.estimate.binomial import at_least, at_most

NOISE = 0.03


def compared(baseline: np.ndarray, candidate: np.ndarray) -> Comparison:
    found = compare_pairs(baseline, candidate)
    assert isinstance(found, Comparison), found
    return found


def arms(random: np.random.Generator, pairs: int, ratio: float) -> Comparison:
    baseline = 0.1 * np.exp(NOISE * random.normal(size=pairs))
    return compared(baseline, 0.1 * ratio * np.exp(NOISE * random.normal(size=pairs)))


def test_the_interval_of_the_ratio_is_students_on_log_ratios() -> None:
    baseline, candidate = np.array([0.10, 0.11, 0.12, 0.10]), np.array([0.12, 0.12, 0.14, 0.11])
    test = distributions.ttest_rel(np.log(candidate), np.log(baseline))  # scipy's own paired test
    ends = np.exp(np.array(test.confidence_interval(0.95)))

    found = compared(baseline, candidate)

    assert (found.ratio.low, found.ratio.high) == pytest.approx(tuple(ends))
    assert found.p_value == pytest.approx(test.pvalue)


@pytest.mark.parametrize(("pairs", "equivalent"), [(8, 0.79), (12, 0.96)])
def test_equal_arms_are_called_equivalent_as_often_as_the_design_promises(
    pairs: int, equivalent: float
) -> None:
    random = np.random.default_rng(pairs)
    verdicts = [arms(random, pairs, 1.0).verdict for _ in range(300)]

    assert at_least(equivalent, 300) <= verdicts.count("equivalent") <= at_most(equivalent, 300)
    assert verdicts.count("different") <= 1


def test_a_tenth_slower_is_seen_and_never_called_equivalent() -> None:
    random = np.random.default_rng(2)
    verdicts = [arms(random, 12, 1.10).verdict for _ in range(200)]

    assert verdicts.count("different") >= at_least(0.93, 200)  # 0.933 of 3,000 by simulation
    assert verdicts.count("equivalent") == 0


def test_a_difference_at_the_margin_is_called_equivalent_one_time_in_twenty_at_most() -> None:
    # that is what two one-sided tests at 5 % promise (Schuirmann 1987)
    random = np.random.default_rng(3)
    verdicts = [arms(random, 8, 1.05).verdict for _ in range(400)]

    assert verdicts.count("equivalent") <= at_most(0.05, 400)


def test_the_same_service_twice_differs_one_time_in_twenty_by_trials_and_mostly_by_requests() -> None:
    by_trials = by_requests = 0
    for seed in range(60):
        parts = [mm1(100 * seed + k, 200.0, 400.0, 10)[1] for k in range(10)]
        medians = np.array([np.median(part) for part in parts])
        by_trials += compared(medians[:5], medians[5:]).p_value < 0.05
        one, other = np.concatenate(parts[:5]), np.concatenate(parts[5:])
        by_requests += distributions.mannwhitneyu(one, other).pvalue < 0.05

    assert by_trials <= at_most(0.05, 60)
    assert by_requests > 20


@pytest.mark.parametrize(("order", "bias"), [("AAAAAABBBBBB", 0.18), ("ABBAABBAABBA", 0.0)])
def test_a_drift_falls_on_both_arms_when_their_order_turns(order: str, bias: float) -> None:
    # 3 % a trial: 6 trials later it is 18 %; in ABBA every pair cancels its neighbour's
    letters = np.array(list(order))
    level = np.exp(0.03 * np.arange(12))

    found = compared(level[letters == "A"], level[letters == "B"])

    assert np.log(found.ratio.point) == pytest.approx(bias)


def test_a_trial_that_stands_apart_turns_to_signed_ranks() -> None:
    candidate = np.array([1.08, 1.09, 1.08, 1.07, 1.08, 1.085, 1.075, 3.0])

    found = compared(np.ones(8), candidate)

    assert "signed rank" in found.ratio.method
    assert found.ratio.point == pytest.approx(1.08, rel=0.01)
    assert found.p_value == pytest.approx(2 / 2**8)  # all eight of one sign: exact signed rank


def test_what_is_inconclusive_says_how_many_pairs_would_do() -> None:
    random = np.random.default_rng(5)
    found = compared(np.exp(0.1 * random.normal(size=4)), np.exp(0.1 * random.normal(size=4)))

    assert found.verdict == "inconclusive"
    assert found.pairs_needed is not None
    assert found.pairs_needed > 10


def test_equal_figures_are_equivalent_and_too_few_pairs_are_refused() -> None:
    same = np.array([0.2, 0.3, 0.25])

    assert compared(same, same).verdict == "equivalent"
    assert isinstance(compare_pairs(same[:2], same[:2]), Insufficient)
    with pytest.raises(ShapeError):
        compare_pairs(same, same[:2])
