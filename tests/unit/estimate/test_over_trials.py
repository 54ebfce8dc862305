"""Intervals over trials, against normal variation between trials with known size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as distributions

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.interval_counts import counts_from_values
from loadlens.estimate.over_trials import (
    by_signed_ranks,
    level_over_trials,
    order_trend,
    outliers,
    over_trials,
    quantile_over_trials,
    share_over_trials,
    variation,
)
from tests.unit.estimate.binomial import at_least, at_most


def interval(typical: Interval | Insufficient) -> Interval:
    assert isinstance(typical, Interval), typical
    return typical


@pytest.mark.parametrize("trials", [3, 5])
def test_t_on_the_logarithm_covers_the_truth_with_few_trials(trials: int) -> None:
    random = np.random.default_rng(trials)
    hits = sum(
        interval(over_trials(np.exp(random.normal(np.log(0.2), 0.05, trials)))).covers(0.2)
        for _ in range(400)
    )

    assert at_least(0.95, 400) <= hits <= at_most(0.95, 400)  # exact under normal variation


def test_requests_pooled_over_trials_do_not_cover_what_trials_do() -> None:
    random = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        levels = np.exp(random.normal(np.log(0.2), 0.05, 3))
        requests = np.concatenate([random.normal(level, 0.02, 500) for level in levels])
        error = requests.std() / np.sqrt(requests.size)
        hits += abs(requests.mean() - 0.2) < 1.96 * error
    assert hits / 200 < 0.4


def test_the_interval_is_students_on_the_log_scale() -> None:
    values = np.array([0.21, 0.19, 0.2])
    expected = distributions.t.interval(0.95, 2, np.log(values).mean(), distributions.sem(np.log(values)))

    typical = interval(over_trials(values))

    assert (typical.low, typical.high) == pytest.approx(tuple(np.exp(expected)))


@pytest.mark.parametrize("trials", [1, 2])
def test_two_trials_are_refused_and_the_reason_says_how_many_are_needed(trials: int) -> None:
    typical = over_trials(np.full(trials, 0.2))

    assert typical == Insufficient(f"needs at least 3 trials, has {trials}")


def test_signed_rank_intervals_agree_with_the_tabled_ranks() -> None:
    # n = 6: the exact 96.9 % interval runs from the smallest to the largest value (Hollander and Wolfe, A.4)
    values = np.exp(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))

    typical = interval(by_signed_ranks(values))

    ends = np.array([typical.low, typical.point, typical.high], dtype=np.float64)
    assert np.log(ends) == pytest.approx([1.0, 3.5, 6.0])


def test_fewer_than_six_trials_have_no_signed_rank_interval() -> None:
    assert isinstance(by_signed_ranks(np.array([1.0, 2.0, 3.0, 4.0, 5.0])), Insufficient)


def test_a_trial_that_stands_apart_is_found_and_turns_eight_trials_to_ranks() -> None:
    values = np.array([1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 3.0])

    assert outliers(values).tolist() == [7]
    assert "Hodges-Lehmann" in interval(over_trials(values)).method


def test_no_failure_in_any_trial_keeps_an_upper_bound() -> None:
    typical = interval(share_over_trials(np.zeros(3), np.full(3, 100.0)))

    assert typical.point == 0.0
    assert typical.high == pytest.approx(1 - 0.025 ** (1 / 300))


def test_shares_stay_between_zero_and_one() -> None:
    typical = interval(share_over_trials(np.array([0.0, 0.01, 0.03]), np.full(3, 200.0)))

    assert typical.low is not None
    assert typical.high is not None
    assert 0 < typical.low < typical.point < typical.high < 1


def test_variation_between_trials_is_told_from_variation_within() -> None:
    random = np.random.default_rng(3)
    values = np.exp(random.normal(0.0, 0.05, 400) + random.normal(0.0, 0.02, 400))

    typical = variation(values, np.full(400, 0.02))

    assert not isinstance(typical, Insufficient)
    assert typical.between == pytest.approx(0.05, rel=0.1)
    assert typical.remedy == "more trials"


def test_the_interval_of_the_variation_between_trials_covers_it_and_is_wide() -> None:
    random = np.random.default_rng(4)
    hits, widths = 0, []
    for _ in range(300):
        values = np.exp(random.normal(0.0, 0.05, 5) + random.normal(0.0, 0.01, 5))
        typical = variation(values, np.full(5, 0.01))
        assert not isinstance(typical, Insufficient)
        hits += typical.between_low <= 0.05 <= typical.between_high
        widths.append(typical.between_high / max(typical.between_low, 1e-3))

    assert at_least(0.95, 300) <= hits <= at_most(0.95, 300)  # chi-square of 4 degrees, exact here
    assert np.median(widths) > 4


def test_trials_resampled_by_percentiles_cover_too_little() -> None:
    # the reason why no bootstrap of trials is offered: 73 % with three trials
    random = np.random.default_rng(5)
    hits = 0
    for _ in range(150):
        logs = random.normal(0.0, 0.05, 3)
        means = random.choice(logs, (300, 3)).mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        hits += low <= 0 <= high

    assert hits < at_least(0.95, 150)


@pytest.mark.parametrize("trials", [6, 10])
def test_signed_ranks_cover_when_a_trial_in_ten_is_four_times_as_noisy(trials: int) -> None:
    random = np.random.default_rng(trials)
    hits = 0
    for _ in range(300):
        scale = np.where(random.random(trials) < 0.1, 0.12, 0.03)
        hits += interval(by_signed_ranks(np.exp(scale * random.normal(size=trials)))).covers(1.0)

    assert hits >= at_least(0.948, 300)


def test_levels_that_may_be_zero_use_students_t_as_they_are() -> None:
    typical = interval(level_over_trials(np.array([0.0, 0.1, 0.2])))

    assert typical.point == pytest.approx(0.1)
    assert typical.high == pytest.approx(0.1 + distributions.t.ppf(0.975, 2) * 0.1 / 3**0.5)


@pytest.mark.parametrize(("requests", "method"), [(8000, "t on log"), (500, "jackknife")])
def test_a_tail_that_no_trial_shows_firmly_is_taken_from_all_trials(requests: int, method: str) -> None:
    random = np.random.default_rng(8)
    trials = [
        counts_from_values(40, np.arange(requests) % 40, random.exponential(1.0, requests)) for _ in range(5)
    ]

    typical = interval(quantile_over_trials(trials, 0.99))

    assert method in typical.method
    assert typical.covers(-np.log(0.01))  # exponential of mean 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("requests", [8000, 500])
def test_a_quantile_of_zero_has_no_interval_on_a_log_scale(requests: int) -> None:
    trials = [counts_from_values(40, np.arange(requests) % 40, np.zeros(requests)) for _ in range(3)]

    typical = quantile_over_trials(trials, 0.99)

    assert isinstance(typical, Insufficient)
    assert "zero" in typical.reason


def test_trials_that_rise_with_their_order_are_noticed_and_others_are_not() -> None:
    assert order_trend(np.array([1.0, 1.1, 1.2, 1.3, 1.4])) == pytest.approx(
        2 / 120
    )  # two orders of 5! are so
    assert order_trend(np.array([1.0, 1.1, 1.2])) == 1.0
    assert order_trend(np.ones(6)) == 1.0


def test_a_machine_at_rest_shows_a_trend_one_time_in_twenty() -> None:
    random = np.random.default_rng(9)
    alarms = sum(order_trend(random.normal(size=8)) < 0.05 for _ in range(400))

    assert alarms <= at_most(0.05, 400)
