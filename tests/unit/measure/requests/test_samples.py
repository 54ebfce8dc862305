"""Single requests of a trial: standstills that several requests waited for, and times without those."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from loadlens.estimate.interval import Insufficient
from loadlens.measure.requests.samples import Rows, _read
from loadlens.measure.source import StepPlan, StreamPlan
from loadlens.model.counters import Counters, GeneratorCounters

EDGES = np.arange(1.0, 11.25, 0.25)
LOAD = StreamPlan(0, "load", False, True, 1.0, 0.0, "keep", 5.0, (StepPlan(0, "a", "GET", "/a"),))
PROBE = StreamPlan(1, "probe", True, False, 200.0, 0.0, "new", 5.0, (StepPlan(0, "b", "GET", "/b"),))


def rows(*requests: tuple[float, float, int], first: int = 0, **more: Any) -> pl.DataFrame:
    """(due, done, stream) of each; below 0: it did not end."""
    return pl.DataFrame(
        [
            {"due_ns": round(due * 1e9), "done_ns": round(done * 1e9), "first_ns": round(done * 1e9),
             "stream": stream, "step": 0, "outcome": 0, "thinned": 0,
             "body_bytes": 9, "flags": 1 if place < first else 0, **more}
            for place, (due, done, stream) in enumerate(requests)
        ]
    )  # fmt: skip


def served(
    stops: tuple[tuple[float, float], ...] = (), *, load_s: float = 0.01
) -> list[tuple[float, float, int]]:
    """A user without pauses and probes 200 times a second, until 11 s; in a stop nothing is answered."""

    def done(due: float, took: float) -> float:
        end = due + took
        return next((stop_end + 0.0005 for begin, stop_end in stops if begin <= end < stop_end), end)

    requests = [(due, done(due, 0.001), 1) for due in np.arange(0.0, 11.0, 0.005)]
    at = 0.0
    while at < 11.0:
        requests.append((at, done(at, load_s), 0))
        at = requests[-1][1]
    return requests


def read(requests: list[tuple[float, float, int]], *plans: StreamPlan, **more: Any) -> Rows:
    trial = _read(lambda: [rows(*requests, **more)], plans or (LOAD, PROBE), Counters(), EDGES)
    assert isinstance(trial, Rows), trial
    return trial


def test_a_stop_of_everything_is_seen_with_its_ends() -> None:
    trial = read(served(((3.0, 3.3), (7.0, 7.2))))

    assert trial.stops.begin_s == pytest.approx([3.0, 7.0], abs=0.006)
    assert trial.stops.begin_s + trial.stops.length_s == pytest.approx([3.3, 7.2], abs=0.002)
    assert trial.is_cut == (False, False)


def test_the_limit_is_that_of_the_probes_where_one_user_is_there() -> None:
    trial = read(served())

    assert trial.stops.begin_s.size == 0
    assert trial.stops.shortest_s == pytest.approx(np.log(2_000 / 0.001) * 10 / 2_000, rel=0.01)  # 72 ms


def thin(requests: list[tuple[float, float, int]], every: int) -> list[tuple[float, float, int]]:
    """With one probe in so many."""
    probes = [request for request in requests if request[2] == 1]
    return [*(request for request in requests if request[2] == 0), *probes[::every]]


def test_a_few_probes_that_waited_for_the_end_of_a_gap_show_a_short_stop() -> None:
    # 20/s separate a gap of ln(200 / 0.001) * 10 / 200 = 0.61 s from chance; three were due in 0.15 s.
    trial = read(thin(served(((3.0, 3.3), (7.0, 7.3))), 10))

    assert trial.stops.shortest_s == pytest.approx(0.61, rel=0.01)
    assert trial.stops.begin_s == pytest.approx([3.0, 7.0], abs=0.01)  # an answer each 10 ms


def test_one_probe_that_waited_tells_no_stop() -> None:
    # A probe each 0.2 s: 3.0 is due in the first half of the gap, and no other.
    assert read(thin(served(((2.95, 3.25),)), 40)).stops.begin_s.size == 0


def test_one_of_many_probes_that_waited_shows_no_stop() -> None:
    # 20/s: only the one of 3.0 s is due in the first half of the gap; the other 199 are quick.
    assert read(thin(served(((2.96, 3.09),)), 10)).stops.begin_s.size == 0


def test_probes_that_are_as_slow_elsewhere_tell_no_short_stop() -> None:
    # In each second nothing ends between 0.5 and 0.9; of the other probes a third takes 0.4 s as well.
    probes = []
    for due in np.arange(0.0, 10.9, 0.05):
        begin = np.floor(due + 1e-9)
        at = due - begin
        took = 0.901 - at if 0.49 < at < 0.89 else 0.001 if 0.09 < at < 0.5 else 0.4
        probes.append((due, due + took, 1))
    load, at = [], 0.0
    while at < 11.0:
        end = np.floor(at) + 0.9005 if 0.49 < at % 1 < 0.9 else at + 0.01
        load.append((at, end, 0))
        at = end

    assert read([*probes, *load]).stops.begin_s.size == 0


def test_probes_that_are_slow_now_and_then_tell_no_short_stop() -> None:
    # A tenth of the probes takes 0.3 s; so do the load's requests, one after the other: 33 gaps.
    probes = [
        (at, at + (0.3 if n % 10 == 0 else 0.001), 1) for n, at in enumerate(np.arange(0.0, 11.0, 0.05))
    ]
    slow = [(at, at + 0.3, 0) for at in np.arange(0.0, 10.7, 0.3)]

    assert read([*probes, *slow]).stops.begin_s.size == 0


def test_one_slow_request_beside_quick_probes_is_no_stop() -> None:
    slow = [(due, done, stream) for due, done, stream in served() if stream == 1]
    slow += [(at, at + 0.9, 0) for at in np.arange(0.0, 10.0, 0.9)]

    assert read(slow).stops.begin_s.size == 0


def in_step(stop: tuple[float, float] = (0.0, 0.0)) -> Rows:
    """128 users who are answered after 0.2 s, all within 64 ms: nothing for 136 ms; and one that is quick."""
    quick = (at for at in np.arange(0.03, 11.0, 0.2) if not stop[0] <= at < stop[1])
    requests = [(at, at + 0.001, 0) for at in quick]
    for user in range(128):
        at = user % 64 / 1000
        while at < 11.0:
            end = stop[1] + user % 64 / 1000 if stop[0] <= at + 0.2 < stop[1] else at + 0.2
            requests.append((at, end, 0))
            at = end
    return read(requests, StreamPlan(0, "load", False, True, 129.0, 0.0, "keep", 5.0, LOAD.steps))


def test_users_who_are_answered_in_step_leave_gaps_that_are_no_stops() -> None:
    trial = in_step()

    assert trial.stops.shortest_s == pytest.approx(0.05)
    assert trial.stops.begin_s.size == 0


def test_a_stop_of_users_in_step_makes_their_requests_longer() -> None:
    """Answers that were due from 3.0 on come from 3.2 on; the last one before came at 2.863."""
    trial = in_step((3.0, 3.2))

    assert trial.stops.begin_s == pytest.approx([2.863])
    assert trial.stops.length_s == pytest.approx([3.2 - 2.863])


def test_a_user_who_is_alone_shows_no_stop() -> None:
    alone = [request for request in served(((3.0, 3.3),)) if request[2] == 0]

    trial = read(alone, LOAD)

    assert trial.stops.begin_s.size == 0
    assert np.isinf(trial.stops.shortest_s)


def test_a_load_that_ended_early_is_no_stop() -> None:
    ended = [request for request in served() if request[0] < 5.0]

    assert read(ended).stops.begin_s.size == 0  # no request waited for an answer


def test_five_times_the_shortest_answer_is_no_stop() -> None:
    trial = read(served(((3.0, 3.3),), load_s=0.1))

    assert trial.stops.begin_s.size == 0
    assert trial.stops.shortest_s == pytest.approx(0.5, rel=0.01)


def test_a_stop_at_the_end_is_marked_as_cut() -> None:
    requests = [(due, done if done < 10.5 else -1.0, stream) for due, done, stream in served()]

    trial = read(requests)

    assert trial.is_cut == (True,)
    assert trial.stops.begin_s == pytest.approx([10.5], abs=0.006)


def test_what_met_a_stop_or_opened_a_connection_is_left_out_of_the_times() -> None:
    requests = sorted(served(((3.0, 3.3),)))
    load = [request for request in requests if request[2] == 0 and 1.0 <= request[1] <= 11.0]

    trial = read(requests)
    step, usual = trial.steps[0], trial.requests(0)

    # The request that waited, and those due until half the stop's length after it: 150 ms, 10 ms each.
    assert step.met == pytest.approx(16, abs=1)
    assert step.usual.observed == len(load) - step.met
    assert step.opening.observed == 0
    assert step.usual.upper.max() < 0.011
    assert usual.took_s.size == step.usual.observed
    assert usual.took_s == pytest.approx(0.01)

    opening = read(requests, first=len(requests)).steps[0]

    assert (opening.usual.observed, opening.opening.observed) == (0, len(load) - step.met)


def test_a_stall_of_the_generator_is_not_the_services() -> None:
    stalled = GeneratorCounters(3.25, 0.25, "measure", (0.3,))

    trial = _read(lambda: [rows(*served(((3.0, 3.3),)))], (LOAD, PROBE), Counters((), (stalled,)), EDGES)

    assert isinstance(trial, Rows)
    assert trial.stops.begin_s.size == 0


def test_half_of_a_crowds_answers_say_that_the_service_lives() -> None:
    many = StreamPlan(0, "load", False, True, 8.0, 0.0, "keep", 5.0, LOAD.steps)
    crowd = [
        request for user in range(8) for request in served(((3.0, 3.3),)) if request[2] == 0 and user < 8
    ]

    trial = read(crowd, many)

    assert trial.stops.begin_s == pytest.approx([3.0], abs=0.011)
    assert trial.stops.shortest_s == 0.05  # the floor: ln(n / alpha) / X is 40 ms


def test_hardly_any_request_says_nothing() -> None:
    assert isinstance(_read(lambda: [rows((0.0, 2.0, 0))], (LOAD,), Counters(), EDGES), Insufficient)


@pytest.mark.parametrize(
    ("together", "age_s"),
    [(1, 0.005), (2, 0.005), (4, 0.005)],  # E X^2 / 2 E X of one gap of 10 ms in `together` is half of it
)
def test_the_last_answer_is_as_old_as_the_gaps_and_not_the_answers_say(together: int, age_s: float) -> None:
    requests = [(at - 0.01, at, 0) for at in np.arange(0.01, 11.0, 0.01) for _ in range(together)]
    stopped = [(due, done if not 5.0 <= done < 6.0 else 6.0, stream) for due, done, stream in requests]

    trial = read([*stopped, *((at, at, 1) for at in np.arange(0.02, 5.0, 0.02))])

    assert trial.stops.begin_s == pytest.approx([5.0], abs=0.011)
    assert trial.age_s == pytest.approx(age_s, rel=0.02)


def test_answers_that_come_by_chance_are_a_mean_distance_ago() -> None:
    done = np.cumsum(np.random.default_rng(7).exponential(0.01, 1_100))

    trial = read([(at - 0.001, at, 1) for at in done], PROBE, LOAD)

    assert trial.age_s == pytest.approx(trial.between_s, rel=0.1)  # no memory: age and distance are one
