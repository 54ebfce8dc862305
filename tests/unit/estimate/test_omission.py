"""Waiting that the service time hides, with a known schedule and server."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.estimate.interval import Insufficient
from loadlens.estimate.interval_counts import IntervalCounts, counts_from_values
from loadlens.estimate.omission import Omission, omission
from tests.oracles.simulated_queues import limited_connections, single_server

DUE = np.arange(0.0, 200.0, 0.01)


def stalling_work() -> np.ndarray:
    work = np.random.default_rng(5).exponential(0.005, DUE.size)
    work[1000::2000] = 1.0  # stands still for a second, every 20 s
    return work


def gathered(seconds: np.ndarray) -> IntervalCounts:
    return counts_from_values(200, np.floor(DUE).astype(np.int64), seconds)


def measured(connections: int) -> Omission:
    sent, done = limited_connections(DUE, stalling_work(), connections)
    hidden = omission(gathered(done - DUE), gathered(done - sent))
    assert isinstance(hidden, Omission), hidden
    return hidden


@pytest.mark.parametrize("connections", [1, 8, 32])
def test_response_times_do_not_depend_on_the_connections_and_service_times_hide_the_stall(
    connections: int,
) -> None:
    sent, done = limited_connections(DUE, stalling_work(), connections)
    truth = single_server(DUE, stalling_work()) + stalling_work()  # as if every user could send at once

    assert done - DUE == pytest.approx(truth)
    assert (done - sent).mean() < 0.8 * truth.mean()


def test_a_single_connection_hides_most_of_what_users_wait() -> None:
    hidden = measured(1)

    assert hidden.mean_ratio > 5
    assert hidden.tail_ratio is not None
    assert hidden.tail_ratio > 10


def test_connections_to_spare_hide_nothing() -> None:
    assert measured(400).mean_ratio == pytest.approx(1.0)


def test_filling_in_what_was_not_sent_is_wrong_in_both_directions() -> None:
    # the reason why nothing here does it: the expected interval is 10 ms, one connection
    sent, done = limited_connections(DUE, stalling_work(), 1)
    service = done - sent
    filled = np.concatenate([service, *(np.arange(s - 0.01, 0.00999, -0.01) for s in service if s > 0.02)])

    assert filled.mean() < 0.7 * (done - DUE).mean()


def test_without_answers_there_is_nothing_to_compare() -> None:
    none = gathered(np.zeros(DUE.size)).select([])

    assert isinstance(omission(none, none), Insufficient)
