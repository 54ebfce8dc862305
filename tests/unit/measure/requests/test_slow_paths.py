"""Slow paths and timers from single requests whose paths are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from loadlens.estimate.pauses import Pauses
from loadlens.measure.requests import slow_paths
from loadlens.measure.requests.kept import Requests, counted, step_rows
from loadlens.measure.requests.samples import Rows
from loadlens.measure.source import StepPlan, StreamPlan
from loadlens.model.finding import Estimate
from loadlens.model.shapes import SlowPath, TimerLevel

EDGES = np.arange(0.0, 10.25, 0.25)
STEP = StepPlan(0, "a", "GET", "/a")


def trial(took: Sequence[float], *, body: Sequence[float] | None = None, held: bool = False) -> Rows:
    """Requests of the given times over 10 s; probes every 5 ms take 1 ms, or wait for slow requests."""
    times = np.array(took)
    due = np.linspace(0, 9.9, times.size)
    probe_due = np.arange(0.0, 10.0, 0.005)
    probe_took = np.full(probe_due.size, 0.001)
    if held:
        for begin, length in zip(due[times > 0.1], times[times > 0.1], strict=True):
            inside = (probe_due > begin) & (probe_due < begin + length)
            probe_took[inside] = begin + length - probe_due[inside]
    none = np.zeros(0)
    bodies = np.zeros(times.size) if body is None else np.array(body)
    requests = Requests(due, times, bodies)
    part = step_rows(requests, counted(none, none, EDGES), 0, EDGES)
    stops = Pauses(none, none, 0.072, None)
    return Rows(0.0, stops, (), 0.003, 0.003, (part,), lambda _: requests, probe_due, probe_took)


def case(users: float, *trials: Rows, closed: bool = True) -> Any:
    plan = StreamPlan(0, "load", False, closed, users, 0.0, "keep", 5.0, (STEP,))
    return SimpleNamespace(
        usable=tuple(SimpleNamespace(rows=rows) for rows in trials), reference=SimpleNamespace(plan=plan)
    )


def mixed(
    size: int, *, share: float = 0.1, shift: float = 0.3, fast: float = 0.01, seed: int = 1
) -> list[float]:
    """Times of which a share is longer; 2 % of noise."""
    rng = np.random.default_rng(seed)
    return list(fast * (1 + 0.02 * rng.standard_normal(size)) + shift * (rng.random(size) < share))


def found(cases: Sequence[Any], beside: Sequence[Any] = ()) -> SlowPath:
    paths = slow_paths.slow_paths(cases, beside)
    assert len(paths) == 1
    return paths[0]


def test_a_path_is_found_with_weight_and_shift_at_every_level() -> None:
    cases = [case(users, trial(mixed(round(300 * users), seed=int(users)))) for users in (1, 2, 8)]

    path = found(cases)

    assert path.alone is not None
    assert path.alone.load == 1
    assert [level.load for level in path.levels] == [2, 8]
    assert isinstance(path.weight, Estimate)
    assert path.weight.point == pytest.approx(0.1, abs=0.015)
    assert path.weight.low is not None
    assert path.weight.high is not None
    assert path.weight.low < 0.1 < path.weight.high
    assert isinstance(path.shift, Estimate)
    assert path.shift.point == pytest.approx(0.3, rel=0.002)
    assert path.is_even is True
    assert path.together == 0.0
    assert (path.queued, path.lacking) == (0, ())


def test_those_who_do_not_take_it_alone_are_told_beside_all() -> None:
    """10 ms, and for one in ten 310 ms; the look with dense probes counts too."""
    cases = [case(1, trial(mixed(500, seed=3))), case(4, trial(mixed(2_000)))]

    alone = found(cases, [case(1, trial(mixed(500, seed=5)))]).alone

    assert alone is not None
    assert alone.took is not None
    assert alone.usual is not None
    all_of_them, usual, p99 = alone.took.mean, alone.usual.mean, alone.usual.p99
    assert isinstance(all_of_them, Estimate)
    assert isinstance(usual, Estimate)
    assert isinstance(p99, Estimate)
    assert all_of_them.point == pytest.approx(0.01 + 0.3 * alone.slow / 1_000, rel=0.01)
    assert usual.point == pytest.approx(0.01, rel=0.005)
    assert p99.point == pytest.approx(0.01 * (1 + 2.33 * 0.02), rel=0.01)  # p99 of a normal law
    assert (usual.samples, usual.trials) == (1_000 - alone.slow, 2)
    assert usual.low is not None
    assert usual.high is not None
    assert usual.low < 0.01 < usual.high
    assert usual.high - usual.low < 0.05 * usual.point


def closed_loop(users: int, *, seconds: float, stops: Sequence[tuple[float, float]] = ()) -> Rows:
    """Users without pauses, 10 % of whose requests take 400 ms longer; what ended from 0 to `seconds`."""
    rng = np.random.default_rng(users)
    rows = []
    for _ in range(users):
        at = -1.0
        while at < seconds:
            took = 0.014 + 0.4 * (rng.random() < 0.1)
            end = next((over for begin, over in stops if begin <= at + took < over), at + took)
            rows.append((at, end - at, any(at < over and at + took > begin for begin, over in stops)))
            at = end
    kept = sorted((due, took) for due, took, is_met in rows if not is_met and 0 <= due + took <= seconds)
    dues, times = np.array(kept).T
    edges, none = np.arange(0.0, seconds + 0.25, 0.25), np.zeros(0)
    requests = Requests(dues, times, 0 * dues)
    part = step_rows(requests, counted(none, none, edges), 0, edges)
    begins, ends = (np.array([stop[end] for stop in stops], dtype=np.float64) for end in (0, 1))
    stood = Pauses(begins, ends - begins, 0.072, None)
    cut = tuple(False for _ in stops)
    return Rows(0.0, stood, cut, 0.003, 0.003, (part,), lambda _: requests, none, none)


@pytest.mark.parametrize("stops", [(), ((0.7, 0.9),), ((0.5, 0.6), (1.1, 1.2))])
def test_short_trials_that_cut_slow_requests_off_have_the_same_share_all_along(
    stops: tuple[tuple[float, float], ...],
) -> None:
    cases = [case(users, closed_loop(users, seconds=2.0, stops=stops)) for users in (1, 8, 64)]

    path = found(cases)

    assert path.is_even is True
    assert isinstance(path.weight, Estimate)
    assert path.weight.low is not None
    assert path.weight.high is not None
    assert path.weight.low < 0.1 < path.weight.high
    assert path.weight.point == pytest.approx(0.1, rel=0.15)


def test_a_stop_counts_as_seen_where_every_trial_would_have_shown_it() -> None:
    none = np.zeros(0)
    blunt = replace(trial(mixed(300)), stops=Pauses(none, none, 0.6, None))

    path = found([case(1, blunt), case(4, trial(mixed(2_000)))])

    assert path.unseen_s == 0.6


def test_few_requests_alone_are_parted_at_the_valley_of_the_levels_above() -> None:
    cases = [case(1, trial(mixed(80, seed=4))), case(4, trial(mixed(2_000)))]

    path = found(cases)

    assert path.alone is not None
    assert path.alone.requests == 80
    assert path.alone.slow >= 5


def test_the_look_with_dense_probes_counts_at_the_lowest_level() -> None:
    cases = [case(1, trial(mixed(80, seed=4))), case(4, trial(mixed(2_000)))]

    path = found(cases, [case(1, trial(mixed(200, seed=9)))])

    assert path.alone is not None
    assert path.alone.requests == 280


def test_where_nobody_is_slow_alone_the_level_lacks_it() -> None:
    cases = [case(1, trial(mixed(400, share=0.0))), case(4, trial(mixed(2_000)))]

    path = found(cases)

    assert path.alone is None
    assert path.alone_requests == 400


def test_one_hill_has_no_path() -> None:
    rng = np.random.default_rng(3)
    cases = [case(users, trial(list(rng.exponential(0.02, 2_000)))) for users in (1, 4)]

    path = found(cases)

    assert path.alone is None
    assert path.levels == ()
    assert path.weight is None


def test_levels_where_requests_queue_are_left_out() -> None:
    full = case(64, trial(mixed(2_000, fast=0.05)))
    cases = [case(1, trial(mixed(400))), case(4, trial(mixed(2_000))), full]

    path = found(cases)

    assert [level.load for level in path.levels] == [4]
    assert path.queued == 1


def test_a_calm_level_with_one_hill_is_named() -> None:
    cases = [case(1, trial(mixed(400))), case(4, trial(mixed(2_000, share=0.0)))]

    assert found(cases).lacking == (4,)


def test_a_cold_first_trial_comes_and_goes() -> None:
    cold, warm = [0.08] * 400, [0.01] * 400
    cases = [case(1, trial(cold), trial(warm)), case(2, trial(cold), trial(warm))]

    assert found(cases).is_even is False


def test_probes_that_wait_for_slow_requests_are_counted() -> None:
    assert found([case(1, trial(mixed(300), held=True))]).together == pytest.approx(1.0, abs=0.05)


def test_answers_held_back_for_an_acknowledgement_are_a_pile() -> None:
    rng = np.random.default_rng(2)
    body = np.where(rng.random(2_000) < 0.6, 0.0402 + 0.003 * rng.random(2_000), 0.0002)
    took = 0.005 + body

    piles = slow_paths.timer_piles([case(2, trial(list(took), body=list(body)))], ())

    assert [(pile.place, pile.timer_s) for pile in piles] == [("answer", 0.04)]
    assert isinstance(piles[0].weight, Estimate)
    assert piles[0].weight.point == pytest.approx(0.6, abs=0.03)
    assert isinstance(piles[0].shift, Estimate)
    assert piles[0].shift.point == pytest.approx(0.0417, abs=0.0005)
    assert piles[0].levels == (TimerLevel(2, int((body > 0.04).sum()), 2_000),)


def test_answers_that_take_any_time_are_no_pile() -> None:
    rng = np.random.default_rng(2)
    body = rng.exponential(0.04, 2_000)

    assert slow_paths.timer_piles([case(2, trial(list(0.005 + body), body=list(body)))], ()) == ()


def test_a_retransmission_is_a_pile_of_the_whole() -> None:
    took = mixed(4_000, share=0.0)
    took[::500] = [0.01 + 0.2] * 8  # 0.2 % of the requests

    piles = slow_paths.timer_piles([case(2, trial(took))], ())

    assert [(pile.place, pile.timer_s, pile.count) for pile in piles] == [("whole", 0.2, 8)]


def test_a_second_hill_that_hides_the_valley_does_not_take_the_path_away() -> None:
    # Pauses that few answers do not show: 1 % wait 120 ms, not a third of what the slow ones take.
    rng = np.random.default_rng(8)
    blurred = np.array(mixed(1_000, seed=6)) + 0.12 * (rng.random(1_000) < 0.01)
    cases = [case(1, trial(mixed(400))), case(2, trial(list(blurred))), case(8, trial(mixed(4_000, seed=2)))]

    path = found(cases)

    assert path.lacking == ()
    assert 8 in [level.load for level in path.levels]
