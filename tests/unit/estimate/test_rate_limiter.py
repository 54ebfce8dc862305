"""Token buckets of known rate and burst."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loadlens.estimate.interval import Insufficient
from loadlens.estimate.rate_limiter import (
    Limiter,
    expected_refused,
    expected_under_way,
    least_scatter,
    limiter,
)
from tests.oracles.simulated_queues import poisson

RATE, BURST, SECONDS = 100.0, 50.0, 60


def bucket(seed: int, offered: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(accepted, refused, lengths) by second of a token bucket under a Poisson load."""
    random = np.random.default_rng(seed)
    due = poisson(random, offered, int(offered * SECONDS * 1.3))
    due = due[due < SECONDS]
    tokens, last, passed = BURST, 0.0, []
    for at in due:
        tokens, last = min(BURST, tokens + RATE * (at - last)), at
        passed.append(tokens >= 1)
        tokens -= passed[-1]
    place, through = np.floor(due).astype(int), np.array(passed)
    accepted = np.bincount(place[through], minlength=SECONDS).astype(float)
    refused = np.bincount(place[~through], minlength=SECONDS).astype(float)
    return accepted, refused, np.ones(SECONDS)


def found_at(offered: float, seed: int = 1) -> Limiter:
    limit = limiter(*bucket(seed, offered))
    assert isinstance(limit, Limiter), limit
    return limit


@pytest.mark.parametrize("offered", [120.0, 200.0, 400.0])
def test_rate_and_burst_of_a_bucket_are_found(offered: float) -> None:
    limit = found_at(offered)

    assert limit.rate_per_s.point == pytest.approx(RATE, rel=0.02)
    assert limit.is_even or offered == 120.0  # near the limit the bucket is empty only at times
    if offered > 150:  # the bucket empties at once
        assert limit.burst == pytest.approx(BURST, abs=6)


@pytest.mark.parametrize("offered", [120.0, 200.0, 400.0])
def test_the_refused_share_is_what_lies_beyond_the_rate(offered: float) -> None:
    limit = found_at(offered)

    # the burst lets 50 more through in the minute
    assert limit.refused.point == pytest.approx(expected_refused(RATE + BURST / SECONDS, offered), abs=0.03)


def test_a_load_that_grows_slowly_spends_the_same_burst() -> None:
    # 50/s fill nothing beyond the bucket; then 250/s spend the 50 in it within a third of a second
    accepted = np.array([50.0] * 10 + [150.0] + [100.0] * 20)
    refused = np.array([0.0] * 10 + [100.0] + [150.0] * 20)

    limit = limiter(accepted, refused, np.ones(31))

    assert isinstance(limit, Limiter)
    assert limit.burst == pytest.approx(50.0)


def test_below_its_rate_a_limiter_is_not_seen() -> None:
    assert limiter(*bucket(2, 60.0)) is None


def test_an_overloaded_service_lets_through_what_it_can_unevenly() -> None:
    random = np.random.default_rng(3)
    limit = limiter(random.poisson(100, 60).astype(float), np.full(60, 50.0), np.ones(60))

    assert isinstance(limit, Limiter)
    assert not limit.is_even


def test_refusals_of_a_few_intervals_decide_nothing() -> None:
    refused = np.zeros(60)
    refused[30:35] = 50

    assert isinstance(limiter(np.full(60, 100.0), refused, np.ones(60)), Insufficient)


@pytest.mark.parametrize(("places", "refused", "busy"), [(1, 0.5, 0.5), (10, 0.05, 5.91), (20, 0.01, 11.91)])
def test_requests_at_once_are_those_that_lose_so_many(places: int, refused: float, busy: float) -> None:
    """Erlang's printed tables: 6.22 erlangs on 10 places lose 5 %, 12.03 on 20 lose 1 %."""
    assert expected_under_way(places, refused) == pytest.approx(busy, rel=0.005)


def test_a_simulated_limit_of_requests_at_once_is_as_full_as_expected() -> None:
    random = np.random.default_rng(3)
    arrivals = np.cumsum(random.exponential(1 / 400.0, 80_000))  # 400/s of 50 ms on 8 places
    times, over = random.gamma(3.0, 0.05 / 3, arrivals.size), np.zeros(8)
    busy_s, lost = 0.0, 0
    for at, took in zip(arrivals, times, strict=True):
        place = int(over.argmin())
        if over[place] > at:
            lost += 1
        else:
            over[place], busy_s = at + took, busy_s + took

    assert busy_s / arrivals[-1] == pytest.approx(expected_under_way(8, lost / arrivals.size), rel=0.01)


def scatter_when_full(times: np.ndarray, places: int, *, load: float) -> float:
    """Variance over mean of the successes of a quarter of a second where requests at once are limited."""
    random = np.random.default_rng(11)
    arrivals = np.cumsum(random.exponential(times.mean() / (load * places), times.size))
    over, ends = np.zeros(places), []
    for at, took in zip(arrivals, times, strict=True):
        place = int(over.argmin())
        if over[place] <= at:
            over[place] = at + took
            ends.append(at + took)
    counts = np.histogram(ends, np.arange(1.0, arrivals[-1], 0.25))[0]
    return float(counts.var(ddof=1) / counts.mean())


def two_times(random: np.random.Generator) -> np.ndarray:
    return np.where(random.random(20_000) < 0.14, 0.259, 0.0098)


def gamma_times(random: np.random.Generator) -> np.ndarray:
    return random.gamma(2.0, 0.025, 20_000)


@pytest.mark.parametrize("draw", [two_times, gamma_times])
@pytest.mark.parametrize(("places", "load"), [(4, 1.3), (12, 5.0)])
def test_a_full_service_scatters_no_less_than_its_times_make_it(draw: Any, places: int, load: float) -> None:
    times = draw(np.random.default_rng(1))

    least = least_scatter(times.mean(), *np.quantile(times, [0.5, 0.99]))

    assert 0.02 < least < scatter_when_full(times, places, load=load)


def test_times_that_do_not_vary_say_nothing_of_the_scatter() -> None:
    assert least_scatter(0.02, 0.02, 0.02) == 0.0
    assert least_scatter(1.0, 0.0, 50.0) == 0.5  # no more than chance
    assert least_scatter(0.04, 0.02, 0.1) == pytest.approx(0.5 * (0.5 * 0.25 + 0.01 * 2.25))
