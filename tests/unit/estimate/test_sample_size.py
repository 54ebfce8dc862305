"""Sample sizes against tables of the literature, hand counts and simulated queues."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as distributions

from loadlens.estimate.interval import Interval
from loadlens.estimate.sample_size import (
    best_split,
    best_trial_length,
    correlation_time,
    half_width_factor,
    pairs_for,
    power_of_pairs,
    relaxation_time,
    requests_for_quantile,
    trials_for,
)
from loadlens.estimate.within_trial import correlation_time as measured_correlation_time
from loadlens.estimate.within_trial import quantile
from tests.unit.estimate.queues import by_second, mm1


@pytest.mark.parametrize(("trials", "factor"), [(2, 8.98), (3, 2.48), (5, 1.24), (10, 0.72)])
def test_half_widths_are_those_of_the_table_of_t(trials: int, factor: float) -> None:
    assert half_width_factor(trials) == pytest.approx(factor, abs=0.005)  # t / sqrt(m), any table


def test_two_stages_keep_the_promised_width_and_coverage() -> None:
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        pilot = random.normal(0.0, 0.05, 5)
        more = random.normal(0.0, 0.05, trials_for(0.04, float(pilot.std(ddof=1)), 5) - 5)
        # Stein: the interval of the wanted width around the mean of all covers 95 %
        covered += abs(np.concatenate([pilot, more]).mean()) <= 0.04

    assert covered >= distributions.binom.ppf(1e-3, 400, 0.95)


def test_a_pilot_that_is_narrow_enough_needs_no_more_trials() -> None:
    assert trials_for(0.5, 0.01, 3) == 3


def test_many_short_trials_beat_few_long_ones() -> None:
    # between 3 %, within 30 % / sqrt(T), restart 20 s, 1,200 s: 21 trials of 37 s give 2.6 %, by enumeration
    best = best_split(0.03, 0.30, 20.0, 1200.0)

    assert best is not None
    assert best.trials == 21
    assert best.seconds == pytest.approx(1200 / 21 - 20)
    assert best.half_width == pytest.approx(0.0262, abs=0.0001)


def test_a_budget_for_less_than_three_trials_has_no_split() -> None:
    assert best_split(0.03, 0.3, 20.0, 62.0) is None


def test_the_best_length_balances_restart_and_variation() -> None:
    assert best_trial_length(0.03, 0.3, 16.0) == pytest.approx(40.0)  # sqrt(16) 0.3 / 0.03
    assert best_trial_length(0.0, 0.3, 16.0) == math.inf


@pytest.mark.parametrize(
    ("p", "half_width", "requests"),
    [(0.5, 0.1, 800), (0.9, 0.1, 653), (0.99, 0.1, 1794), (0.99, 0.02, 44833), (0.999, 0.2, 3688)],
)
def test_requests_for_a_quantile_of_an_exponential_tail(p: float, half_width: float, requests: int) -> None:
    # (1.96 / h)^2 p / ((1 - p) ln^2(1 - p)) by hand; the last needs more for two sides than for its width
    assert requests_for_quantile(p, half_width) == pytest.approx(requests, abs=2)


def test_planned_requests_reach_the_planned_width() -> None:
    n = requests_for_quantile(0.99, 0.10)
    random = np.random.default_rng(2)
    points = [np.quantile(random.exponential(1.0, n), 0.99, method="inverted_cdf") for _ in range(400)]

    assert 1.96 * np.std(points) / -math.log(0.01) == pytest.approx(0.10, rel=0.15)


def test_the_rule_for_correlation_is_near_what_a_queue_shows() -> None:
    # 59 requests at 80 % in a run of 8 million; here by the intervals of ten minutes
    done, response = mm1(1, 320.0, 400.0, 600)
    found = quantile(by_second(done, response, 600), 0.99)

    assert isinstance(found, Interval)
    assert correlation_time(0.8, 0.99) == pytest.approx(80.0)
    assert 1 / 3 < measured_correlation_time(found, done.size) / 59 < 3


def test_an_idle_queue_has_no_correlation_and_a_full_one_no_end_of_it() -> None:
    assert correlation_time(0.05, 0.5) == 1.0
    assert correlation_time(1.0, 0.99) == math.inf
    assert relaxation_time(200.0, 0.81) == pytest.approx(1 / (200 * 0.01))


def test_power_is_that_of_the_noncentral_t_by_simulation() -> None:
    random = np.random.default_rng(3)
    seen = sum(distributions.ttest_1samp(random.normal(0.05, 0.04, 8), 0).pvalue < 0.05 for _ in range(2000))

    assert seen / 2000 == pytest.approx(power_of_pairs(8, 0.05, 0.04), abs=0.035)


def test_pairs_for_an_effect_of_one_standard_deviation() -> None:
    assert pairs_for(0.05, 0.05) == 10  # Cohen 1988: n = 10 for d = 1, paired, 80 % at 5 %
    assert pairs_for(0.05, 0.0) == 3
