"""Little's law on simulated queues and hand counts."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.estimate.laws import closed_loop_ratio, loop_reading
from tests.oracles.simulated_queues import closed_loop, poisson, single_server


def test_a_simulated_closed_loop_accounts_for_all_users() -> None:
    due, done = closed_loop(1, 8, 0.5, 0.1, 2, 20_000)
    rate = done.size / done.max()

    assert closed_loop_ratio(rate, float((done - due).mean()), 0.5, 8) == pytest.approx(1.0, abs=0.02)


def test_a_closed_loop_that_is_measured_right_needs_no_reading() -> None:
    due, done = closed_loop(2, 8, 0.5, 0.1, 2, 20_000)
    rate, response = done.size / done.max(), float((done - due).mean())

    assert loop_reading(rate, response, users=8, think_s=0.5) == ""


def test_filled_in_samples_inflate_the_mean() -> None:
    # 24,000 /s with 100 connections and a printed mean of 13 ms: 312 requests in flight with 100 connections
    assert loop_reading(24_000, 0.013, users=100).startswith("the mean is 3.12 times what fits")


def test_time_outs_left_out_of_the_mean_leave_users_idle() -> None:
    # 10 users; a tenth of their requests time out after 2 s and are left out of X and R = 0.4 s; each user
    # cycles in 0.9 x 0.4 + 0.1 x 2 s = 0.56 s, so X of the rest is 16.1 /s: 1 - 16.1 x 0.4 / 10 = 36 %
    assert loop_reading(10 * 0.9 / 0.56, 0.4, users=10).startswith("36% of the users' time is missing")


def test_a_median_that_was_printed_as_the_mean_is_recognised() -> None:
    # 6 clients at 43.2 /s: the mean must be 6 / 43.2 = 138.9 ms
    assert loop_reading(43.2, 0.090, users=6, median_s=0.1389).startswith("only the median fits")


def test_probes_that_arrive_at_random_see_the_utilisation() -> None:
    # PASTA: the share of arrivals that find an M/M/1 server busy is rho
    random = np.random.default_rng(5)
    arrival = poisson(random, 40.0, 200_000)
    wait = single_server(arrival, random.exponential(0.02, arrival.size))

    assert (wait > 0).mean() == pytest.approx(0.8, abs=0.01)
