"""Operational laws on simulated queues and hand counts."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.stats.counts import counts_from_values
from loadlens.stats.interval import Interval, ShapeError
from loadlens.stats.laws import (
    check_little,
    closed_loop_ratio,
    occupancy_gap,
    omission,
    users_before_queueing,
)
from tests.unit.stats.queues import closed_loop, mm1, poisson, single_server


def test_a_queue_obeys_littles_law_within_the_edge_bound() -> None:
    done, response = mm1(3, 40.0, 50.0, 300)
    start = done - response
    in_flight = (np.minimum(done, 300) - np.maximum(start, 0)).sum() / 300

    found = check_little(
        done.size / 300, float(response.mean()), float(in_flight), longest=float(response.max()), window=300
    )

    assert found.verdict == "holds"


def test_a_mean_three_times_too_large_breaks_littles_law() -> None:
    # 24,387 /s x 13.40 ms = 327 in flight with 100 connections (ratio 3.27)
    found = check_little(24_387, 0.0134, 100, longest=0.2, window=60)

    assert found.ratio == pytest.approx(3.27, abs=0.005)
    assert found.verdict == "broken"


def test_a_window_shorter_than_its_requests_decides_nothing() -> None:
    assert check_little(4.5, 4.2, 19.0, longest=4.5, window=8).verdict == "unknown"


def test_the_gap_is_nan_where_nothing_was_in_flight_and_shapes_must_match() -> None:
    assert np.isnan(occupancy_gap(np.zeros(1), np.zeros(1), np.zeros(1))).all()
    with pytest.raises(ShapeError):
        occupancy_gap(np.zeros(2), np.zeros(1), np.zeros(1))


def test_a_simulated_closed_loop_accounts_for_all_users() -> None:
    due, done = closed_loop(1, 8, 0.5, 0.1, 2, 20_000)
    rate = done.size / done.max()

    assert closed_loop_ratio(rate, float((done - due).mean()), 0.5, 8) == pytest.approx(1.0, abs=0.02)


def test_the_knee_of_k_servers_is_k_times_demand_plus_think_over_demand() -> None:
    assert users_before_queueing(4 / 0.22, 0.22, 0.15) == pytest.approx(4 * 0.37 / 0.22)


def test_a_stall_hidden_from_the_service_time_stands_in_the_response_time() -> None:
    # One connection, 100 requests a second due, work 2 ms, a stall of 1 s every 20 s: the schedule is known.
    due = np.arange(0.0, 60.0, 0.01)
    work = np.full(due.size, 0.002)
    work[::2000] = 1.0
    wait = single_server(due, work)
    lag = counts_from_values(60, np.floor(due).astype(np.int64), wait)

    found = omission(float((wait + work).mean()), float(work.mean()), float(np.median(work)), lag)

    assert found.mean_ratio > 5
    assert isinstance(found.late, Interval)
    assert found.late.point == pytest.approx(float((wait > 0.001).mean()))


def test_probes_that_arrive_at_random_see_the_utilisation() -> None:
    # PASTA: the share of arrivals that find an M/M/1 server busy is rho
    random = np.random.default_rng(5)
    arrival = poisson(random, 40.0, 200_000)
    wait = single_server(arrival, random.exponential(0.02, arrival.size))

    assert (wait > 0).mean() == pytest.approx(0.8, abs=0.01)
