"""Closed loads on servers, on a bucket that delays and on windows, each simulated from its definition."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
import pytest

from loadlens.estimate import rate_limiter

END_S = 4.0
USERS = 32


def closed(users: int, passes: Callable[[float], float], serves: Callable[[], float]) -> np.ndarray:
    """The ends of requests of users who ask again at once: each passes a gate, and is then served."""
    asks = [0.0] * users
    done = []
    while (at := heapq.heappop(asks)) < END_S:
        ended = passes(at) + serves()
        done.append(ended)
        heapq.heappush(asks, ended)
    return np.sort([at for at in done if at < END_S])


class Servers:
    def __init__(self, places: int, serves: Callable[[], float]) -> None:
        self.free = [0.0] * places
        self.serves = serves

    def passes(self, at: float) -> float:
        begin = max(at, heapq.heappop(self.free)) + self.serves()
        heapq.heappush(self.free, begin)
        return begin


class Bucket:
    """A request takes a token, or waits until there is one (Turner 1986)."""

    def __init__(self, rate: float, burst: float) -> None:
        self.every, self.tolerance, self.next = 1 / rate, burst / rate, -burst / rate  # full

    def passes(self, at: float) -> float:
        slot = max(self.next, at - self.tolerance)
        self.next = slot + self.every
        return max(at, slot)


class Window:
    """So many pass in each window; who is later waits for the next."""

    def __init__(self, each: int, period_s: float) -> None:
        self.each, self.period_s, self.passed = each, period_s, dict[int, int]()

    def passes(self, at: float) -> float:
        window = int(at / self.period_s)
        while self.passed.get(window, 0) >= self.each:
            window += 1
        self.passed[window] = self.passed.get(window, 0) + 1
        return max(at, window * self.period_s)


@pytest.mark.parametrize("users", [16, 32, 64])
def test_a_burst_that_is_spent_is_what_was_done_beyond_the_rate(users: int) -> None:
    done = closed(users, Bucket(60.0, 50.0).passes, lambda: 0.1)

    late = rate_limiter.settled(done, END_S)

    assert late is not None
    assert late.rate_per_s == pytest.approx(60, rel=0.05)
    assert late.ahead == pytest.approx(50 - 6, abs=6)  # 60/s x 0.1 s are under way
    assert late.ahead > 3 * late.deviation


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("places", [1, 4])
def test_servers_are_not_ahead_of_their_rate_and_have_no_windows(places: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    servers = Servers(places, lambda: random.exponential(places / 100))

    done = closed(USERS, servers.passes, lambda: 0.0)

    late = rate_limiter.settled(done, END_S)
    assert late is not None
    assert late.ahead < 4 * late.deviation
    assert rate_limiter.windows(done) is None


@pytest.mark.parametrize("users", [30, 60])
def test_a_window_is_as_large_and_as_long_as_it_is(users: int) -> None:
    seen = rate_limiter.windows(closed(users, Window(12, 0.5).passes, lambda: 0.01))

    assert seen is not None
    assert seen.period_s == pytest.approx(0.5, rel=0.02)
    assert set(seen.sizes) == {12}
    assert seen.silent > 0.9


def test_one_at_a_time_is_no_window() -> None:
    assert rate_limiter.windows(closed(8, Servers(1, lambda: 0.05).passes, lambda: 0.0)) is None


def test_too_few_requests_decide_nothing() -> None:
    assert rate_limiter.settled(np.arange(1.0, 20.0) / 5, END_S) is None
    assert rate_limiter.windows(np.array([0.1, 0.2])) is None
