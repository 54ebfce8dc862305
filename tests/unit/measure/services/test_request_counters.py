"""Counters of services, from scrapes written by hand; expected values are sums by hand."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from loadlens.measure.requests import sizes
from loadlens.measure.services import request_counters
from loadlens.model.trial import Outcome

SCHEMA = ["time_ns", "source", "metric", "labels", "unit", "value"]


def trial(rows: list[tuple[float, str, str, float | None]], service: str = "api") -> Any:
    """Scrapes: second, metric, status label, value."""
    made = [
        (int(at * 1e9), "scrape", metric, json.dumps({"service": service, "status": status}), "", value)
        for at, metric, status, value in rows
    ]
    frame = pl.DataFrame(made, schema=SCHEMA, orient="row")
    return SimpleNamespace(source=SimpleNamespace(readings=lambda: frame))


def test_a_counter_is_summed_over_labels_and_one_that_comes_later_began_at_nothing() -> None:
    made = trial(
        [
            (-1.0, "n", "200", 5.0),  # before the load
            (1.0, "n", "200", 105.0),
            (1.0, "n", "404", 3.0),  # the first of its kind
            (2.0, "n", "200", 205.0),
            (2.0, "n", "404", 4.0),
            (2.0, "m", "200", 9999.0),
        ]
    )

    counter = request_counters.read(made, "api", "n")

    assert counter is not None
    assert counter.seconds.tolist() == [-1.0, 1.0, 2.0]
    assert counter.values.tolist() == [5.0, 108.0, 209.0]
    assert counter.rise == 204.0


def test_a_counter_that_is_not_there_before_the_first_request_began_at_nothing() -> None:
    made = trial(
        [(-1.0, "scrape_seconds", "", 0.01), (1.0, "scrape_seconds", "", 0.01), (1.0, "n", "200", 100.0)]
    )

    counter = request_counters.read(made, "api", "n")

    assert counter is not None
    assert counter.seconds.tolist() == [-1.0, 1.0]
    assert counter.rise == 100.0


def test_what_failed_is_read_from_the_label_that_says_the_status() -> None:
    made = trial(
        [
            (0.0, "n", "200", 50.0),
            (0.0, "n", "503", 1.0),
            (9.0, "n", "200", 150.0),
            (9.0, "n", "503", 21.0),
            (9.0, "n", "429", 4.0),
            (9.0, "n", "404", 7.0),  # a 404 is not retried
        ]
    )

    counter = request_counters.read_failed(made, "api", "n")

    assert counter is not None
    assert counter.rise == 24.0


@pytest.mark.parametrize("status", ["", "ok", "-"])
def test_a_counter_without_statuses_does_not_say_what_failed(status: str) -> None:
    assert (
        request_counters.read_failed(trial([(0.0, "n", status, 5.0), (9.0, "n", status, 9.0)]), "api", "n")
        is None
    )


def test_another_service_another_metric_and_a_missed_scrape_say_nothing() -> None:
    assert request_counters.read(trial([(0.0, "n", "200", 5.0)], service="other"), "api", "n") is None
    assert request_counters.read(trial([(0.0, "n", "200", 5.0)]), "api", "m") is None
    assert request_counters.read(trial([(0.0, "n", "200", None)]), "api", "n") is None


def test_a_last_scrape_that_was_not_answered_leaves_no_idle_read() -> None:
    answered: list[tuple[float, str, str, float | None]] = [
        (-1.0, "scrape_seconds", "", 0.01),
        (1.0, "scrape_seconds", "", 0.01),
    ]

    assert request_counters.is_bracketed(trial(answered), "api")
    assert not request_counters.is_bracketed(trial([*answered, (2.0, "scrape_seconds", "", None)]), "api")
    assert request_counters.is_bracketed(trial([*answered, (2.0, "scrape_seconds", "", None)]), "another")


def test_scrapes_of_all_replicas_add_up_as_their_counters_do() -> None:
    """Three of one and four of the other, each counted from one on."""
    rows: list[tuple[float, str, str, float | None]] = [(n, "scrapes", "one", n) for n in (1.0, 2.0, 3.0)]
    rows += [(n, "scrapes", "other", n) for n in (1.0, 2.0, 3.0, 4.0)]

    assert request_counters.scrapes(trial(rows), "api") == 7
    assert request_counters.scrapes(trial(rows), "web") == 0


def test_bodies_are_summed_by_interval_and_rows_that_stand_for_more_weigh_more() -> None:
    frame = pl.DataFrame(
        {
            "stream": [0, 0, 0, 0, 1],
            "step": [1, 1, 1, 0, 1],
            "done_ns": [int(t * 1e9) for t in (0.5, 1.5, 1.6, 1.5, 1.5)],
            "outcome": [int(o) for o in (Outcome.OK, Outcome.OK, Outcome.RESET, Outcome.OK, Outcome.OK)],
            "body_bytes": [10, 40, 0, 7, 7],
            "thinned": [0, 2, 0, 0, 0],  # the second stands for 2^2
        }
    )

    bodies = sizes.read(
        SimpleNamespace(samples=frame.select),
        stream=0,
        step=1,
        edges=pytest.importorskip("numpy").arange(3.0),
    )

    # Weights 1 and 4 are as good as (1 + 4)^2 / (1^2 + 4^2) = 25 / 17 equal rows (Kish 1965).
    assert bodies.counts.tolist() == pytest.approx([5 / 17, 20 / 17])
    assert bodies.sums.tolist() == pytest.approx([10 * 5 / 17, 40 * 20 / 17])
    assert bodies.squares.tolist() == pytest.approx([100 * 5 / 17, 1600 * 20 / 17])
    assert (bodies.largest, bodies.thinned) == (40, 2)
