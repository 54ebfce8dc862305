"""Growth over a range. Expected values are counted by hand by the rules of Prometheus 2.42.

Growth between the first and last sample, falls counted as resets; extrapolated to an end of the range within
1.1 mean distances of a sample, else by half a distance; a counter never to before it was zero.
"""

from __future__ import annotations

import pytest

from loadlens.promql.over_time import extrapolated_growth, last_step, over_range, quantile


def test_samples_at_both_ends_need_no_extrapolation() -> None:
    assert extrapolated_growth([0, 1, 2, 3, 4], [0, 10, 20, 30, 40], 0, 4, is_counter=True) == 40


def test_ends_within_a_distance_are_reached() -> None:
    # samples every 10 s from 5 s to 45 s, the range is 0..50: 5 s are missing at each end
    # growth 80 over 40 s; extrapolated to 40 + 5 + 5 = 50 s: 80 * 50 / 40 = 100
    times, values = [5, 15, 25, 35, 45], [100, 120, 140, 160, 180]

    assert extrapolated_growth(times, values, 0, 50, is_counter=True) == pytest.approx(100)
    assert over_range("rate", times, values, 0, 50) == pytest.approx(2)


def test_a_far_end_counts_as_half_a_distance() -> None:
    # the first sample comes 25 s after the start, more than 1.1 * 10 s: half a distance, 5 s
    # growth 40 over 20 s; 20 + 5 + 5 = 30 s: 40 * 30 / 20 = 60
    times, values = [25, 35, 45], [100, 120, 140]

    assert extrapolated_growth(times, values, 0, 50, is_counter=True) == pytest.approx(60)


def test_an_end_just_beyond_the_reach_counts_as_half_a_distance_too() -> None:
    # 12 s are missing at the start, 1.2 distances: half a distance, 5 s; 8 s at the end are reached
    # growth 30 over 30 s; 30 + 5 + 8 = 43 s: 43
    assert extrapolated_growth(
        [12, 22, 32, 42], [100, 110, 120, 130], 0, 50, is_counter=True
    ) == pytest.approx(43)


def test_a_counter_is_not_taken_to_below_zero() -> None:
    # it was 2 at 5 s and grew by 1 a second: it was zero at 3 s, 2 s before the first sample
    # growth 40 over 40 s; 40 + 2 + 5 = 47 s: 47
    times, values = [5, 15, 25, 35, 45], [2, 12, 22, 32, 42]

    assert extrapolated_growth(times, values, 0, 50, is_counter=True) == pytest.approx(47)
    # a gauge may have been below zero: 40 + 5 + 5 = 50 s
    assert extrapolated_growth(times, values, 0, 50, is_counter=False) == pytest.approx(50)


def test_a_reset_adds_what_was_before_it() -> None:
    # 10 -> 30 (20), reset to 5 (5), 5 -> 25 (20): 45, no extrapolation
    times, values = [0, 10, 20, 30], [10, 30, 5, 25]

    assert extrapolated_growth(times, values, 0, 30, is_counter=True) == pytest.approx(45)
    assert extrapolated_growth(times, values, 0, 30, is_counter=False) == pytest.approx(15)


@pytest.mark.parametrize("samples", [0, 1])
def test_fewer_than_two_samples_give_nothing(samples: int) -> None:
    assert over_range("increase", [1.0][:samples], [1.0][:samples], 0, 10) is None


def test_the_last_step_knows_resets() -> None:
    assert last_step([0, 10, 20], [1, 50, 20], is_counter=True) == 20
    assert last_step([0, 10, 20], [1, 50, 20], is_counter=False) == -30
    assert over_range("irate", [0, 10, 20], [1, 50, 20], 0, 20) == 2


def test_the_increase_of_a_gauge_adds_up_its_rises_and_is_no_peak() -> None:
    # processes 100 -> 150 -> 100 -> 150 -> 100: peak 50 above the rest; every fall counts as a reset to zero,
    # after which the whole new value is growth: (150-100) + 100 + (150-100) + 100 = 300
    times, values = [0, 10, 20, 30, 40], [100, 150, 100, 150, 100]

    assert over_range("increase", times, values, 0, 40) == pytest.approx(300)


@pytest.mark.parametrize(("p", "expected"), [(0.5, 20), (0.25, 15), (1.0, 30), (0.0, 10), (0.9, 28)])
def test_quantiles_lie_between_ranks(p: float, expected: float) -> None:
    assert quantile(p, [30, 10, 20]) == pytest.approx(expected)
