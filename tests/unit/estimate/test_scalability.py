"""Which curve is chosen, on queues whose throughput is exact and on the universal scalability law itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.scalability import (
    Scalability,
    Usl,
    isotonic_knee,
    most_efficient,
    scalability,
)
from tests.unit.estimate.binomial import at_least
from tests.unit.estimate.test_saturation import repairman

USERS = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
LAW = Usl(200.0, 0.05, 0.0005)  # its peak lies at sqrt(0.95 / 0.0005) = 43.6 users
NOISE = 0.03


def measured(truth: np.ndarray, seed: int, users: np.ndarray = USERS) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return np.repeat(users, 3), np.repeat(truth, 3) * np.exp(NOISE * random.normal(size=3 * users.size))


def chosen(truth: np.ndarray, seed: int, users: np.ndarray = USERS, resamples: int = 1) -> Scalability:
    found = scalability(*measured(truth, seed, users), resamples=resamples)
    assert isinstance(found, Scalability), found
    return found


def machine(users: np.ndarray, think: float, work: float, servers: int) -> np.ndarray:
    return np.array([repairman(int(n), think, work, servers) for n in users])


TRUTHS = {
    "one server": (machine(USERS, 0.08, 0.02, 1), 50.0, 5.0),
    "four servers": (machine(USERS, 0.0001, 0.02, 4), 200.0, 4.0),
    "a pool of eight": (np.minimum(USERS / 0.1, 80.0), 80.0, 8.0),
}


@pytest.mark.parametrize("name", TRUTHS)
def test_a_queue_that_fills_up_is_a_bend_and_never_a_peak(name: str) -> None:
    truth, capacity, knee = TRUTHS[name]
    found = [chosen(truth, seed) for seed in range(10)]

    assert {one.kind for one in found} == {"hinge"}
    assert all(isinstance(one.peak, Insufficient) for one in found)
    assert np.median([one.capacity.point for one in found]) == pytest.approx(capacity, rel=0.03)
    assert np.median([one.knee.point for one in found]) == pytest.approx(knee, rel=0.10)


def test_the_law_is_chosen_where_it_is_the_truth_and_its_peak_was_passed() -> None:
    found = [chosen(LAW.throughput(USERS), seed, resamples=20) for seed in range(8)]

    assert {one.kind for one in found} == {"usl"}
    peaks = [one.peak.point for one in found if isinstance(one.peak, Interval)]
    assert len(peaks) == 8
    assert np.median(peaks) == pytest.approx(LAW.peak, rel=0.1)
    assert np.median([one.capacity.point for one in found]) == pytest.approx(
        float(LAW.throughput(np.array([LAW.peak]))[0]), rel=0.03
    )


def test_a_peak_beyond_the_largest_load_is_not_identified() -> None:
    users = USERS[:5]
    found = [chosen(LAW.throughput(users), seed, users, resamples=20) for seed in range(8)]

    assert all(isinstance(one.peak, Insufficient) for one in found)


def test_the_interval_of_the_knee_covers_it() -> None:
    hits = 0
    replications = 15
    for seed in range(replications):
        knee = chosen(TRUTHS["a pool of eight"][0], seed, resamples=40).knee
        assert isinstance(knee, Interval)
        hits += knee.covers(8.0)

    assert hits >= at_least(0.90, replications)


def test_the_intervals_of_the_law_cover_its_parameters() -> None:
    hits = 0
    replications = 12
    for seed in range(replications):
        found = chosen(LAW.throughput(USERS), 100 + seed, resamples=40)
        assert isinstance(found.contention, Interval)
        assert isinstance(found.coherency, Interval)
        hits += found.contention.covers(LAW.contention) + found.coherency.covers(LAW.coherency)

    assert hits >= at_least(0.90, 2 * replications)


def test_throughput_in_proportion_to_the_load_has_no_capacity_yet() -> None:
    found = chosen(10.0 * USERS[:5], 1, USERS[:5])

    assert found.kind == "linear"
    assert isinstance(found.capacity, Insufficient)


def test_the_peak_of_the_law_is_where_its_derivative_is_zero() -> None:
    near = LAW.throughput(np.array([LAW.peak - 0.01, LAW.peak, LAW.peak + 0.01]))

    assert near[1] == near.max()
    assert Usl(1.0, 0.1, 0.0).peak == math.inf


def test_too_few_levels_or_trials_are_refused() -> None:
    assert isinstance(scalability(np.repeat([1.0, 2.0, 4.0], 3), np.ones(9)), Insufficient)
    assert isinstance(scalability(np.arange(1.0, 6.0), np.ones(5)), Insufficient)


def test_one_lucky_level_does_not_move_the_isotonic_knee() -> None:
    users = np.array([1.0, 2.0, 4.0, 8.0, 16.0])

    assert isotonic_knee(users, np.array([25.0, 50.0, 102.0, 98.0, 100.0])) == 4.0


def test_most_throughput_for_the_time_is_where_a_lone_user_is_without_thinking() -> None:
    # one server, no think time: X is 1 / D from the first user on and R = N D (Kleinrock 1979)
    users = np.array([1.0, 2.0, 4.0])

    assert most_efficient(users, np.full(3, 10.0), 0.1 * users) == 1.0
