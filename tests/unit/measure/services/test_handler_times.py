"""Time inside the service by its own counters, from scrapes written by hand; means are quotients by hand."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from loadlens.measure.case import CaseMeasures
from loadlens.measure.services import handler_times
from loadlens.model.finding import Estimate, Figure
from tests.records import planned_case

SCHEMA = ["time_ns", "source", "metric", "labels", "unit", "value"]
WORK = {"uri": "/work"}


def case(*series: tuple[str, dict[str, str], list[float]], begin: float = 2.0, end: float = 5.0) -> Any:
    """One trial with a scrape each second from 0 on, measured from `begin` to `end`."""
    rows = [
        (int(t * 1e9), "scrape", metric, json.dumps({**labels, "service": "a"}), "", value)
        for metric, labels, values in series
        for t, value in enumerate(values)
    ]
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    grid = SimpleNamespace(edges_s=np.array([begin, end]))
    trial = SimpleNamespace(is_usable=True, grid=grid, source=SimpleNamespace(readings=lambda: frame))
    plan = planned_case(services=[{"name": "a", "scrape": {"path": "/metrics"}}])
    return CaseMeasures(plan, (trial,))  # type: ignore[arg-type]


def point(figure: Figure | None) -> float:
    assert isinstance(figure, Estimate)
    return figure.point


def test_the_mean_is_the_growth_of_the_sum_over_that_of_the_count_in_the_measured_part() -> None:
    mean = handler_times.mean_time(
        case(
            ("http_server_requests_seconds_sum", WORK, [0, 50, 60, 62, 65, 66, 99]),
            ("http_server_requests_seconds_count", WORK, [0, 10, 100, 200, 300, 400, 999]),
        ),
        "/work?id=7",
    )

    assert point(mean) == pytest.approx((66 - 60) / (400 - 100))
    assert isinstance(mean, Estimate)
    assert mean.metric == "http_server_requests_seconds"
    assert mean.samples == 300


def test_other_paths_do_not_count_and_templates_and_statuses_do() -> None:
    template = {"route": "/orders/{id}"}
    mean = handler_times.mean_time(
        case(
            ("request_duration_milliseconds_sum", {**template, "status": "200"}, [0, 0, 0, 100, 200, 300]),
            ("request_duration_milliseconds_sum", {**template, "status": "500"}, [0, 0, 0, 0, 0, 300]),
            ("request_duration_milliseconds_sum", {"route": "/orders"}, [0, 0, 0, 9e6, 9e6, 9e6]),
            ("request_duration_milliseconds_count", {**template, "status": "200"}, [0, 0, 0, 10, 20, 30]),
            ("request_duration_milliseconds_count", {**template, "status": "500"}, [0, 0, 0, 0, 0, 30]),
            ("request_duration_milliseconds_count", {"route": "/orders"}, [0, 0, 0, 1, 2, 3]),
        ),
        "/orders/17",
    )

    assert point(mean) == pytest.approx(0.010)  # 600 ms over 60


def test_of_several_counters_the_outermost_is_taken() -> None:
    mean = handler_times.mean_time(
        case(
            ("http_request_duration_seconds_sum", WORK, [0, 0, 0, 1, 2, 3]),
            ("http_request_duration_seconds_count", WORK, [0, 0, 0, 10, 20, 30]),
            ("handler_seconds_sum", WORK, [0, 0, 0, 0.5, 1, 1.5]),
            ("handler_seconds_count", WORK, [0, 0, 0, 10, 20, 30]),
        ),
        "/work",
    )

    assert point(mean) == pytest.approx(0.1)


def test_scrapes_around_a_part_that_holds_too_few_are_taken() -> None:
    mean = handler_times.mean_time(
        case(
            ("http_request_duration_seconds_sum", WORK, [0, 1, 2, 4]),
            ("http_request_duration_seconds_count", WORK, [0, 10, 20, 40]),
            begin=1.2,
            end=1.9,
        ),
        "/work",
    )

    assert point(mean) == pytest.approx(0.1)
    assert isinstance(mean, Estimate)
    assert mean.samples == 10


@pytest.mark.parametrize(
    "name",
    ["http_client_requests_seconds", "http_response_size_bytes", "gc_pause_seconds", "db_query_request_ms"],
)
def test_times_of_other_things_are_not_those_of_requests(name: str) -> None:
    made = case((f"{name}_sum", WORK, [0, 1, 2, 3, 4, 5]), (f"{name}_count", WORK, [0, 1, 2, 3, 4, 5]))

    assert handler_times.mean_time(made, "/work") is None


def test_a_service_without_labels_of_paths_tells_nothing_of_a_path() -> None:
    made = case(
        ("http_request_duration_seconds_sum", {}, [0, 1, 2, 3, 4, 5]),
        ("http_request_duration_seconds_count", {}, [0, 1, 2, 3, 4, 5]),
    )

    assert handler_times.mean_time(made, "/work") is None
