"""Intervals within one trial, against M/M/1 (exponential response time) and exact binomial ranks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as distributions

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.interval_counts import (
    IntervalCounts,
    bucket_lower_edge,
    counts_from_histograms,
    counts_from_values,
    counts_of,
    pooled,
)
from loadlens.estimate.within_trial import (
    is_firm,
    mean,
    mean_time,
    quantile,
    rate,
    share,
)
from tests.oracles.simulated_queues import (
    by_second,
    mm1,
    poisson,
    several_servers,
    single_server,
)
from tests.unit.estimate.binomial import at_least, at_most

SERVICE_RATE = 200.0


def at_once(seconds: np.ndarray) -> IntervalCounts:
    return counts_from_values(1, np.zeros(seconds.size, dtype=np.int64), seconds)


def interval(estimated: Interval | Insufficient) -> Interval:
    assert isinstance(estimated, Interval), estimated
    return estimated


def coverage(
    p: float, *, rate_per_s: float, replications: int, independent: bool = False, grid: int = 1
) -> float:
    """Share of replications whose interval holds the p-quantile of M/M/1, exponential with mu - lambda."""
    truth = -math.log(1 - p) / (SERVICE_RATE - rate_per_s)
    hits = 0
    for seed in range(replications):
        done, response = mm1(seed, rate_per_s, SERVICE_RATE, 600)
        counts = at_once(response) if independent else by_second(done * grid, response, 600 * grid)
        estimated = interval(quantile(counts, p))
        hits += estimated.covers(truth)
    return hits / replications


# utilisation, level, what intervals of 600 one-second intervals cover in long simulations
COVERED = [(0.5, 0.5, 0.94), (0.5, 0.99, 0.95), (0.8, 0.5, 0.94), (0.8, 0.99, 0.92), (0.9, 0.99, 0.91)]
REPLICATIONS = 50


@pytest.mark.parametrize(("utilisation", "p", "covered"), COVERED)
def test_quantile_intervals_cover_the_truth_of_a_queue(utilisation: float, p: float, covered: float) -> None:
    estimated = coverage(p, rate_per_s=utilisation * SERVICE_RATE, replications=REPLICATIONS)

    assert estimated * REPLICATIONS >= at_least(covered, REPLICATIONS)


@pytest.mark.parametrize(("utilisation", "p", "covered"), COVERED)
def test_intervals_for_independent_requests_fail_where_ours_hold(
    utilisation: float, p: float, covered: float
) -> None:
    estimated = coverage(p, rate_per_s=utilisation * SERVICE_RATE, replications=20, independent=True)

    assert estimated * 20 < at_least(covered, 20)


def test_intervals_of_time_as_short_as_a_record_has_them_cover_as_well() -> None:
    estimated = coverage(0.5, rate_per_s=0.9 * SERVICE_RATE, replications=40, grid=4)

    assert estimated * 40 >= at_least(0.93, 40)


def test_a_tail_at_90_percent_is_often_open_above_and_says_so() -> None:
    open_above = sum(
        interval(quantile(by_second(*mm1(seed, 180.0, SERVICE_RATE, 600), 600), 0.99)).high is None
        for seed in range(30)
    )

    assert at_least(0.24, 30) <= open_above <= at_most(0.24, 30)  # 24 % in long simulations


@pytest.mark.parametrize("servers", [1, 4])
def test_points_agree_with_the_closed_forms_of_queues_with_several_servers(servers: int) -> None:
    # M/M/c at 80 %: P(W > t) = C(c, a) exp(-(c mu - lambda) t); Erlang's C for 4 and a = 3.2 is 0.5964
    random = np.random.default_rng(servers)
    rate_per_s = 0.8 * servers * 50.0
    arrival = poisson(random, rate_per_s, 120_000)
    wait = several_servers(arrival, random.exponential(0.02, arrival.size), servers)
    busy = {1: 0.8, 4: 0.5964}[servers]
    truth = math.log(busy / 0.05) / (servers * 50.0 - rate_per_s)
    seconds = int(arrival[-1]) + 1

    estimated = interval(quantile(by_second(arrival, wait + 1e-9, seconds), 0.95))

    assert estimated.covers(truth)
    assert estimated.point == pytest.approx(truth, rel=0.1)


def test_the_shape_of_a_constant_server_is_that_of_erlang() -> None:
    # M/D/1: P(W <= t) = (1 - rho) sum_k (-lambda (t - k D))^k / k! exp(lambda (t - k D)), Erlang 1909
    rate_per_s, work = 40.0, 0.02

    def at_most_t(t: float) -> float:
        parts = [rate_per_s * (t - k * work) for k in range(int(t / work) + 1)]
        terms = [(-x) ** k / math.factorial(k) * math.exp(x) for k, x in enumerate(parts)]
        return (1 - rate_per_s * work) * sum(terms)

    arrival = poisson(np.random.default_rng(3), rate_per_s, 200_000)
    wait = single_server(arrival, np.full(arrival.size, work))
    counts = by_second(arrival, wait + 1e-9, int(arrival[-1]) + 1)

    for t in (0.03, 0.05, 0.1):
        assert interval(quantile(counts, at_most_t(t))).point == pytest.approx(t, rel=0.05)


def test_merging_histograms_changes_nothing() -> None:
    random = np.random.default_rng(6)
    upper = np.sort(random.integers(1_000, 10_000_000, 300))
    counts = [random.integers(0, 5, 300) for _ in range(40)]
    whole = counts_from_histograms(40, [(k, upper, count) for k, count in enumerate(counts)])
    halves = [
        counts_from_histograms(20, [(k, upper, count) for k, count in enumerate(part)])
        for part in (counts[:20], counts[20:])
    ]

    assert quantile(whole, 0.9) == quantile(pooled(halves), 0.9)


def test_exact_ranks_cover_independent_requests() -> None:
    hits = 0
    for seed in range(300):
        values = np.random.default_rng(seed).exponential(1.0, 500)
        hits += interval(quantile(at_once(values), 0.95)).covers(-math.log(0.05))

    assert at_least(0.95, 300) <= hits <= at_most(0.985, 300)


def test_the_point_is_the_inverse_of_the_empirical_distribution() -> None:
    values = np.arange(1, 1001) / 1000.0
    counts = counts_from_values(10, np.arange(1000) % 10, values)

    assert interval(quantile(counts, 0.9)).point == pytest.approx(0.900)


def test_a_tail_with_too_few_requests_for_two_sides_is_refused_with_the_count() -> None:
    counts = counts_from_values(10, np.arange(367) % 10, np.linspace(0.1, 0.2, 367))

    assert quantile(counts, 0.99) == Insufficient("367 requests, needs 368")  # 0.99^368 < 0.025 (Le Boudec)


def test_a_tail_with_ten_independent_requests_above_it_is_not_firm() -> None:
    counts = counts_from_values(10, np.arange(1000) % 10, np.linspace(0.1, 0.2, 1000))  # 10 above, 1 each

    estimated = interval(quantile(counts, 0.99))

    assert estimated.independent * 0.01 == pytest.approx(10.0)
    assert not is_firm(estimated, 0.99)


def test_an_end_that_the_evidence_cannot_place_is_open() -> None:
    bursts = np.where(np.arange(400) // 40 == 9, 1.0, 0.1) + np.linspace(0, 0.01, 400)  # one interval is slow
    counts = counts_from_values(10, np.arange(400) // 40, bursts)

    assert interval(quantile(counts, 0.95)).high is None


def test_a_censored_request_counts_above_only_what_it_is_known_to_have_outlasted() -> None:
    nine = (0, np.arange(100_000_000, 1_000_000_000, 100_000_000), np.ones(9, dtype=np.int64))  # 0.1 .. 0.9 s
    late = (0, np.array([500_000_000]), np.array([1], dtype=np.int64))
    counts = counts_from_histograms(1, [nine], [late])

    assert counts.known_per_interval(0.4).sum() == 10
    assert counts.above_per_interval(0.35).sum() == 7  # 0.4 .. 0.9 and the unfinished one
    assert counts.known_per_interval(0.8).sum() == 9  # may have ended before or after 0.8 s


def test_the_share_beyond_censored_ages_is_that_of_kaplan_and_meier() -> None:
    # Finished at 1, 3, 4; unfinished at 2: S = 3/4 after 1, then 1/2 of it after 3, then 0 (by hand)
    ones = np.ones(3, dtype=np.int64)
    counts = counts_of(
        1, np.zeros(3, dtype=np.int64), np.array([1.0, 3.0, 4.0]), np.array([1.0, 3.0, 4.0]), ones,
        (np.zeros(1, dtype=np.int64), np.array([2.0]), np.ones(1, dtype=np.int64)),
    )  # fmt: skip

    assert counts.distribution()[2] == pytest.approx([1 / 4, 5 / 8, 1.0])


def test_dropping_time_outs_understates_the_tail_and_counting_them_does_not() -> None:
    random = np.random.default_rng(4)
    slow = random.exponential(1.0, 20_000)
    finished = slow[slow < 2.0]
    numbers = (np.arange(finished.size) % 60).astype(np.int64)
    kept = counts_from_values(60, numbers, finished)
    with_late = counts_of(
        60,
        kept.interval,
        kept.lower,
        kept.upper,
        kept.count,
        (np.arange(60), np.full(60, 2.0), np.full(60, round((slow >= 2.0).sum() / 60))),
    )
    truth = -math.log(1 - 0.85)  # exponential of mean 1

    assert interval(quantile(kept, 0.85)).point < 0.85 * truth
    assert interval(quantile(with_late, 0.85)).point == pytest.approx(truth, rel=0.03)


def test_a_quantile_among_unfinished_requests_is_a_lower_bound_in_words() -> None:
    counts = counts_from_histograms(
        1, [(0, np.array([10**9]), np.array([80]))], [(0, np.array([2 * 10**9]), np.array([20]))]
    )

    estimated = quantile(counts, 0.9)

    assert isinstance(estimated, Insufficient)
    assert "never finished" in estimated.reason


def test_bucket_edges_are_those_of_hdr_histograms_with_three_digits() -> None:
    upper = np.array([1, 2047, 2049, 4095, 4099, 2**20 + 1023])  # widths 1, 1, 2, 2, 4, 1024 (HdrHistogram)

    assert bucket_lower_edge(upper).tolist() == [1, 2047, 2048, 4094, 4096, 2**20]


def test_rank_intervals_use_the_exact_binomial_ranks() -> None:
    values = np.arange(1.0, 101.0)

    estimated = interval(quantile(at_once(values), 0.5))

    assert estimated.low == distributions.binom.ppf(0.025, 100, 0.5)  # the k-th value is k
    assert estimated.high == distributions.binom.ppf(0.975, 100, 0.5) + 1


def test_mean_intervals_cover_the_truth_of_a_queue_at_80_percent() -> None:
    truth = 1 / (SERVICE_RATE - 160.0)
    hits = 0
    for seed in range(60):
        done, response = mm1(seed, 160.0, SERVICE_RATE, 600)
        second = np.floor(done).astype(np.int64)
        sums = np.bincount(second, weights=response, minlength=600).astype(np.float64)
        squares = np.bincount(second, weights=response**2, minlength=600).astype(np.float64)
        estimated = interval(mean(sums, np.bincount(second, minlength=600).astype(float), squares=squares))
        hits += estimated.covers(truth)
    assert hits >= at_least(0.93, 60)


def test_requests_that_all_end_in_one_burst_have_no_interval() -> None:
    sums, counts = np.zeros(32), np.zeros(32)
    sums[20], counts[20] = 17 * 7.2, 17

    estimated = interval(mean(sums, counts, squares=sums * 7.2))

    assert estimated.point == pytest.approx(7.2)
    assert (estimated.low, estimated.high) == (None, None)


def test_requests_of_a_few_bursts_count_as_clusters() -> None:
    sums, counts = np.zeros(32), np.zeros(32)
    sums[[5, 15, 25]], counts[[5, 15, 25]] = 20 * np.array([4.0, 4.2, 4.4]), 20  # means of three bursts

    estimated = interval(mean(sums, counts, squares=20 * np.array([4.0, 4.2, 4.4, *[0.0] * 29]) ** 2))

    half = distributions.t.ppf(0.975, 2) * 0.2 / 3**0.5  # the t interval of three values, by hand
    assert (estimated.low, estimated.high) == pytest.approx((4.2 - half, 4.2 + half))


def test_the_mean_counts_unfinished_requests_by_those_that_lasted_as_long() -> None:
    # Finished at 1, 3, 5 s, unfinished at 2 s: it lasts 4 s on average, as 3 and 5 did; mean 13 / 4 by hand
    ones = np.ones(3, dtype=np.int64)
    counts = counts_of(
        1, np.zeros(3, dtype=np.int64), np.array([1.0, 3.0, 5.0]), np.array([1.0, 3.0, 5.0]), ones,
        (np.zeros(1, dtype=np.int64), np.array([2.0]), np.ones(1, dtype=np.int64)),
    )  # fmt: skip

    estimated = interval(mean_time(np.array([9.0]), np.array([3.0]), counts, squares=np.array([35.0])))

    assert estimated.point == pytest.approx(13 / 4)


def test_a_request_that_outlasts_all_others_leaves_only_a_lower_bound() -> None:
    counts = counts_from_histograms(
        1, [(0, np.array([10**9]), np.array([8]))], [(0, np.array([30 * 10**9]), np.array([2]))]
    )

    estimated = interval(mean_time(np.array([8.0]), np.array([8.0]), counts, squares=np.array([8.0])))

    assert (estimated.low, estimated.high) == (estimated.point, None)
    assert estimated.point == pytest.approx((8 * 1 + 2 * 30) / 10, rel=1e-3)
    assert "2 of 10 requests had not finished" in estimated.method


def test_the_interval_of_an_error_share_allows_for_bursts() -> None:
    random = np.random.default_rng(7)
    hits = independent = 0
    for _ in range(200):
        totals = np.full(120, 100.0)
        failures = np.where(random.random(120) < 0.2, 10.0, 0.0)  # bursts of 10, share 0.02
        estimated = interval(share(failures, totals))
        hits += estimated.covers(0.02)
        n, k = totals.sum(), failures.sum()
        error = math.sqrt(k / n * (1 - k / n) / n)
        independent += abs(k / n - 0.02) <= 1.96 * error
    assert hits / 200 >= 0.88
    assert independent / 200 < 0.6


def test_no_failure_among_n_bounds_the_share_by_clopper_and_pearson() -> None:
    estimated = interval(share(np.zeros(10), np.full(10, 10.0)))

    assert estimated.point == 0.0
    assert estimated.high == pytest.approx(1 - 0.025 ** (1 / 100))


def test_a_rate_is_never_known_better_than_one_event_at_the_edges() -> None:
    estimated = interval(rate(np.full(20, 5.0), np.full(20, 1.0)))

    assert (estimated.point, estimated.low, estimated.high) == (5.0, 4.95, 5.05)


def test_what_lies_between_two_times_begins_above_the_first_and_holds_the_last() -> None:
    counts = counts_from_values(2, np.array([0, 0, 1, 1]), np.array([0.1, 0.2, 0.3, 0.4]))

    part = counts.between(0.1, 0.3)

    assert part.upper.tolist() == [0.2, 0.3]
    assert part.observed_per_interval().tolist() == [1.0, 1.0]  # every interval is still there


def test_the_mean_of_counts_takes_each_at_the_middle_of_its_bucket() -> None:
    """Ten intervals of two from 1 to 3 s and one of 5 s: (2 x 2 + 5) / 3 = 3 s."""
    interval = np.repeat(np.arange(10), 2)
    none = np.zeros(0, dtype=np.int64)
    lower, upper = np.tile([1.0, 5.0], 10), np.tile([3.0, 5.0], 10)
    counts = counts_of(10, interval, lower, upper, np.tile([2, 1], 10), (none, np.zeros(0), none))

    estimated = within_trial.mean_of(counts)

    assert isinstance(estimated, Interval)
    assert estimated.point == pytest.approx(3.0)
    assert estimated == within_trial.mean(
        np.full(10, 9.0), np.full(10, 3.0), squares=np.full(10, 2 * 4.0 + 25.0)
    )
