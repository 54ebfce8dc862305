"""Pauses put into simulated queues, seen through the gaps that the engine keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadlens.estimate.interval import Insufficient
from loadlens.estimate.pauses import (
    Pauses,
    beat_of,
    beat_of_lives,
    joined,
    pauses,
    shortest_visible,
    slow_bursts,
    undisturbed,
)
from tests.oracles.simulated_queues import with_pauses
from tests.unit.estimate.binomial import at_most

RATE = 200.0
SECONDS = 120.0
GRID = 0.25


def gaps_of_intervals(done: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(begin, length) of the longest gap of each quarter of a second, cut at its end, as in records."""
    done = np.sort(done)
    begin, length = [], []
    for end in np.arange(GRID, SECONDS + GRID / 2, GRID):
        before = done[done < end - GRID][-1:]
        inside = done[(done >= end - GRID) & (done < end)]
        marks = np.concatenate([before if before.size else [0.0], inside, [end]])
        longest = int(np.diff(marks).argmax())
        begin.append(marks[longest])
        length.append(marks[longest + 1] - marks[longest])
    return np.array(begin), np.array(length)


def seen(seed: int, utilisation: float, every: float, length: float) -> Pauses:
    _, done = with_pauses(seed, RATE, utilisation, SECONDS, every, length)
    done = done[done < SECONDS]
    stops = pauses(*gaps_of_intervals(done), completions=done.size, seconds=SECONDS)
    assert isinstance(stops, Pauses), stops
    return stops


@pytest.mark.parametrize("utilisation", [0.3, 0.8])
def test_pauses_are_found_with_their_period(utilisation: float) -> None:
    stops = seen(3, utilisation, 5.0, 0.2)

    assert 23 <= stops.begin_s.size <= 24
    assert np.median(stops.length_s) == pytest.approx(0.205, abs=0.015)  # and the time to the next completion
    assert stops.beat is not None
    assert stops.beat.period_s == pytest.approx(5.0, abs=0.02)


@pytest.mark.parametrize("utilisation", [0.3, 0.8])
def test_a_queue_without_pauses_has_none(utilisation: float) -> None:
    alarms = sum(seen(seed, utilisation, 0.0, 0.0).begin_s.size > 0 for seed in range(40))

    assert alarms <= at_most(1e-3, 40)


def test_pauses_shorter_than_chance_allows_are_not_seen_and_the_limit_says_so() -> None:
    stops = seen(3, 0.3, 5.0, 0.05)

    assert stops.begin_s.size == 0
    assert stops.shortest_s > 0.05


@pytest.mark.parametrize(("rate", "limit"), [(50, 0.312), (200, 0.085), (1000, 0.019), (5000, 0.004)])
def test_the_shortest_visible_pause_is_that_of_exponential_gaps(rate: int, limit: float) -> None:
    # ln(n / 0.001) / X over two minutes, by hand
    assert shortest_visible(rate * 120, 120.0) == pytest.approx(limit, abs=0.0005)
    assert shortest_visible(0, 10.0) == math.inf


def test_pieces_of_a_gap_that_was_cut_at_intervals_are_one() -> None:
    begin, end = joined(np.array([5.0, 0.9, 0.9, 0.9]), np.array([5.2, 1.0, 1.25, 1.4]))

    assert begin.tolist() == [0.9, 5.0]
    assert end.tolist() == [1.4, 5.2]


def test_a_gap_during_which_the_generator_stood_still_is_its_own() -> None:
    begin, length = np.array([10.0, 20.0]), np.array([1.0, 1.0])
    stops = pauses(
        begin,
        length,
        completions=1000,
        seconds=60.0,
        own_begin_s=np.array([10.5]),
        own_end_s=np.array([11.5]),
    )

    assert isinstance(stops, Pauses)
    assert stops.begin_s.tolist() == [20.0]


def test_five_idle_response_times_or_the_hosts_own_jitter_are_no_pause() -> None:
    begin, length = np.array([10.0]), np.array([0.4])
    slow = pauses(begin, length, completions=10_000, seconds=60.0, idle_s=0.1)
    rough = pauses(begin, length, completions=10_000, seconds=60.0, floor_s=0.5)

    assert isinstance(slow, Pauses)
    assert isinstance(rough, Pauses)
    assert (slow.begin_s.size, slow.shortest_s) == (0, 0.5)
    assert (rough.begin_s.size, rough.shortest_s) == (0, 0.5)


def test_a_period_with_missing_beats_is_found() -> None:
    beats = np.array([0, 1, 3, 4, 6, 9, 10])

    stops = beat_of(2.5 * beats + 0.01)

    assert stops is not None
    assert stops.period_s == pytest.approx(2.5)


def test_events_at_random_rarely_keep_a_period() -> None:
    alarms = 0
    for seed in range(400):
        random = np.random.default_rng(seed)
        alarms += beat_of(np.sort(random.uniform(0, 120, random.integers(4, 12)))) is not None

    assert alarms <= 30  # some of those with four events


def test_three_events_have_no_period() -> None:
    assert beat_of(np.array([1.0, 2.0, 3.0])) is None


def test_requests_that_were_under_way_in_a_pause_are_marked() -> None:
    stops = pauses(np.array([10.0, 20.0]), np.array([1.0, 1.0]), completions=10_000, seconds=60.0)

    assert isinstance(stops, Pauses)
    due = np.array([9.0, 9.0, 10.5, 11.0, 19.9, 30.0])
    done = np.array([9.9, 10.1, 11.5, 12.0, 20.0, 31.0])
    assert undisturbed(due, done, stops).tolist() == [True, False, False, True, True, True]


def test_too_few_completions_decide_nothing() -> None:
    assert isinstance(pauses(np.zeros(1), np.ones(1), completions=3, seconds=60.0), Insufficient)


def within_trials(moments: np.ndarray, trials: int) -> np.ndarray:
    """What falls into trials of 5 s that begin every 6.5 s, from 3 s on."""
    begins = 3 + 6.5 * np.arange(trials)
    inside = (moments[:, None] > begins) & (moments[:, None] < begins + 5)
    return moments[inside.any(axis=1)]


@pytest.mark.parametrize("period", [1.0, 1.7, 2.3, 4.0])
def test_a_period_is_seen_through_the_gaps_between_trials(period: float) -> None:
    rng = np.random.default_rng(3)
    jitter = 0.004 * np.abs(rng.standard_normal(200))

    stops = beat_of_lives([within_trials(0.7 + period * np.arange(200) + jitter, 10)])

    assert stops is not None
    assert stops.period_s == pytest.approx(period, rel=0.003)


def test_each_life_has_a_phase_of_its_own() -> None:
    lives = [np.array([first, first + 1.5, first + 3.0]) for first in (0.2, 20.9, 47.3)]

    stops = beat_of_lives(lives)

    assert stops is not None
    assert stops.period_s == pytest.approx(1.5)
    assert beat_of_lives([life[:1] for life in lives]) is None  # one event each: no distance


def test_events_at_random_hardly_ever_seem_to_keep_a_period() -> None:
    alarms = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        moments = np.cumsum(np.maximum(0.6, rng.exponential(2.3, 60)))
        alarms += beat_of_lives([within_trials(moments, 5)]) is not None

    assert alarms <= at_most(0.01, 400)


def test_slow_requests_that_overlap_are_one_burst() -> None:
    """100 requests every 0.1 s, 20 ms each; those due within 0.25 s of 2 and 5 s take 0.32 s: 6 of them."""
    due = np.linspace(0.0, 9.9, 100)
    took = np.where((np.abs(due - 2.1) < 0.15) | (np.abs(due - 5.1) < 0.15), 0.32, 0.02)

    bursts = slow_bursts(due, took)

    assert bursts is not None
    assert bursts.begin_s == pytest.approx([2.0, 5.0])
    assert (bursts.slow, bursts.requests, bursts.usual_s) == (6, 100, 0.02)
    assert bursts.longer_s == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("took", "why"),
    [([0.02] * 27 + [0.1] * 13, "a third is"), ([0.1] + [0.02] * 18, "few")],
)
def test_where_many_are_slow_there_are_no_bursts(took: list[float], why: str) -> None:
    assert slow_bursts(np.linspace(0.0, 39.0, len(took)), np.array(took)) is None, why


def test_where_none_is_slow_the_usual_time_is_known() -> None:
    bursts = slow_bursts(np.linspace(0.0, 39.0, 40), np.full(40, 0.02))

    assert bursts is not None
    assert (bursts.begin_s.size, bursts.slow, bursts.usual_s) == (0, 0, 0.02)
