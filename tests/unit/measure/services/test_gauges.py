"""Gauges of held resources: names as libraries write them, their meaning as a person reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
import pytest

from loadlens.measure.services import gauges
from loadlens.measure.services.gauges import GaugePlace
from loadlens.signals.read.metric_names import meaning_of
from loadlens.signals.read.trial_series import Readings

BEGIN, END = 2.0, 6.0
NONE: Mapping[str, str] = {}


def scraped(*series: tuple[str, Mapping[str, str], Iterable[float]], source: str = "scrape") -> Readings:
    """A reading each second from 0 on."""
    rows: list[tuple[Any, ...]] = []
    for metric, labels, values in series:
        own = json.dumps({"service": "app", "replica": "1", **labels}, sort_keys=True)
        rows += [
            (int(second * 1e9), source, metric, own, "", float(value)) for second, value in enumerate(values)
        ]
    names = ["time_ns", "source", "metric", "labels", "unit", "value"]
    return Readings(pl.DataFrame(rows, schema=names, orient="row"))


def only(places: tuple[GaugePlace, ...]) -> GaugePlace:
    (place,) = places
    return place


def points(kept: GaugePlace) -> dict[str, float]:
    return {role: reading.mean.point for role, reading in kept.gauges.items()}


@pytest.mark.parametrize(
    ("metric", "labels", "role", "kind"),
    [
        ("hikaricp_connections_active", NONE, "held", "pool"),
        ("hikaricp_connections_pending", NONE, "waiting", "pool"),
        ("hikaricp_connections_max", NONE, "bound", "pool"),
        ("tomcat_threads_busy_threads", NONE, "held", "threads"),
        ("tomcat_threads_current_threads", NONE, "present", "threads"),
        ("tomcat_threads_config_max_threads", NONE, "bound", "threads"),
        ("jetty_threads_busy", NONE, "held", "threads"),
        ("jetty_threads_config_max", NONE, "bound", "threads"),
        ("jetty_threads_jobs", NONE, "waiting", "threads"),
        ("executor_queued_tasks", NONE, "waiting", "unknown"),
        ("puma_busy_threads", NONE, "held", "threads"),
        ("go_sql_in_use_connections", NONE, "held", "pool"),
        ("go_sql_max_open_connections", NONE, "bound", "pool"),
        ("db_client_connections_usage", {"state": "used"}, "held", "pool"),
        ("db_client_connections_pending_requests", NONE, "waiting", "pool"),
        ("pg_pool_waiting_count", NONE, "waiting", "pool"),
        ("apache_workers", {"state": "busy"}, "held", "threads"),
        ("worker_threads", NONE, "present", "threads"),
        ("lock_holders", NONE, "held", "lock"),
        ("lock_waiters", NONE, "waiting", "lock"),
        ("http_requests_in_flight", NONE, "held", "requests"),
        ("http_server_requests_active_seconds_active_count", NONE, "held", "requests"),
        ("dbPoolInUse", NONE, "held", "pool"),
    ],
)
def test_words_of_libraries_say_what_a_gauge_counts(
    metric: str, labels: Mapping[str, str], role: str, kind: str
) -> None:
    meaning = meaning_of(metric, labels)

    assert meaning is not None
    assert (meaning.role, meaning.kind) == (role, kind)


@pytest.mark.parametrize(
    "metric",
    [
        "hikaricp_connections_usage_seconds_sum",
        "hikaricp_connections_timeout_total",
        "hikaricp_connections_min",
        "jvm_threads_states_threads",
        "process_open_fds",
        "nodejs_active_handles",
        "nginx_connections_waiting",  # idle clients
        "jvm_memory_max_bytes",
        "executor_queue_remaining_tasks",
        "http_requests_total",
        "data_rows",
        "db_pool_wait_seconds",
    ],
)
def test_other_metrics_say_nothing_of_places(metric: str) -> None:
    meaning = meaning_of(metric, {"state": "waiting"} if metric.startswith("jvm_threads") else NONE)

    assert meaning is None


def test_gauges_of_one_stem_are_one_pool_and_only_the_measured_part_counts() -> None:
    rows = scraped(
        ("db_pool_in_use", {"pool": "a"}, [0, 0, 4, 4, 4, 3, 4, 9]),
        ("db_pool_waiting", {"pool": "a"}, [0, 0, 6, 8, 7, 7, 7, 50]),
        ("db_pool_max", {"pool": "a"}, [4] * 8),
        ("db_pool_in_use", {"pool": "b"}, [1] * 8),
    )

    first, second = gauges.read(rows, BEGIN, END)

    assert first.kind == "pool"
    assert points(first) == {"held": pytest.approx(3.8), "waiting": pytest.approx(7.0), "bound": 4.0}
    assert first.gauges["held"].name == 'db_pool_in_use{pool="a"}'
    assert first.gauges["waiting"].highest == 8.0
    assert points(second) == {"held": 1.0}


def test_a_lock_and_threads_without_labels_stay_apart() -> None:
    rows = scraped(
        ("lock_holders", NONE, [1] * 8),
        ("lock_waiters", NONE, [5] * 8),
        ("worker_threads_busy", NONE, [6] * 8),
        ("worker_threads", NONE, [8] * 8),
        ("worker_threads_max", NONE, [32] * 8),
    )

    by_kind = {kept.kind: points(kept) for kept in gauges.read(rows, BEGIN, END)}

    assert by_kind == {
        "lock": {"held": 1.0, "waiting": 5.0},
        "threads": {"held": 6.0, "present": 8.0, "bound": 32.0},
    }


def test_tasks_in_a_queue_wait_for_the_threads_of_the_same_executor() -> None:
    rows = scraped(
        ("executor_active_threads", {"name": "io"}, [8] * 8),
        ("executor_pool_max_threads", {"name": "io"}, [8] * 8),
        ("executor_queued_tasks", {"name": "io"}, [3] * 8),
    )

    kept = only(gauges.read(rows, BEGIN, END))

    assert (kept.kind, points(kept)) == ("threads", {"held": 8.0, "bound": 8.0, "waiting": 3.0})


def test_replicas_of_a_service_are_added_up() -> None:
    rows = scraped(
        ("db_pool_in_use", {"replica": "1"}, [4] * 8),
        ("db_pool_in_use", {"replica": "2"}, [2] * 8),
        ("db_pool_max", {"replica": "1"}, [4] * 8),
        ("db_pool_max", {"replica": "2"}, [4] * 8),
    )

    assert points(only(gauges.read(rows, BEGIN, END))) == {"held": 6.0, "bound": 8.0}


def test_who_holds_is_all_but_the_free_where_that_is_what_is_exported() -> None:
    rows = scraped(("pg_pool_total_count", NONE, [5] * 8), ("pg_pool_idle_count", NONE, [1] * 8))

    kept = only(gauges.read(rows, BEGIN, END))

    assert points(kept)["held"] == 4.0
    assert kept.gauges["held"].name == "pg_pool_total_count - pg_pool_idle_count"


def test_seconds_that_were_waited_grow_by_as_much_a_second_as_wait_on_average() -> None:
    rows = scraped(
        ("go_sql_in_use_connections", NONE, [4] * 8),
        ("go_sql_wait_duration_seconds_total", NONE, [0, 0, 0, 6, 12, 18, 24, 24]),
    )

    assert points(only(gauges.read(rows, BEGIN, END)))["waiting"] == pytest.approx(6.0)


def test_a_gauge_that_was_not_read_in_the_measured_part_is_left_out() -> None:
    rows = scraped(("db_pool_in_use", NONE, [4, 4]))

    assert gauges.read(rows, BEGIN, END) == ()


def test_a_database_tells_who_waits_for_locks_and_who_may_hold_them() -> None:
    active, idle = {"state": "active"}, {"state": "idle in transaction", "wait": "idle"}
    rows = scraped(
        ("connections", {**active, "wait": "Lock"}, [7] * 8),
        ("connections", {**active, "wait": "none"}, [1] * 8),
        ("connections", idle, [1] * 8),
        ("connections", {"state": "idle", "wait": "idle"}, [20] * 8),
        source="postgres",
    )

    kept = only(gauges.read(rows, BEGIN, END))

    assert (kept.kind, kept.held_is_at_most) == ("lock", True)
    assert points(kept) == {"held": 2.0, "waiting": 7.0}


def test_whole_numbers_are_read_whatever_they_are_called_and_counters_are_not() -> None:
    rows = scraped(
        ("desk_a", NONE, [0, 1, 4, 4, 4, 3, 4, 9]),
        ("visits", NONE, [0, 3, 6, 9, 12, 15, 18, 21]),  # a counter without a suffix
        ("served_total", NONE, [5] * 8),
        ("answer_seconds_count", NONE, [5] * 8),
        ("heap_bytes", NONE, [512] * 8),
        ("share_free", NONE, [0.5] * 8),
        ("degrees", NONE, [-1] * 8),
    )

    (number,) = gauges.read_numbers(rows, BEGIN, END)

    assert (number.name, number.mean.point, number.highest, number.before) == ("desk_a", 3.8, 4.0, 0.0)


def test_numbers_of_replicas_are_added_up() -> None:
    rows = scraped(
        ("desk_a", {"replica": "1"}, [0, 1, 4, 4, 4, 4, 4, 4]),
        ("desk_a", {"replica": "2"}, [1, 0, 2, 2, 2, 2, 2, 2]),
    )

    (number,) = gauges.read_numbers(rows, BEGIN, END)

    assert (number.mean.point, number.highest, number.before) == (6.0, 6.0, 1.0)


def test_a_service_with_a_number_for_each_of_something_is_not_read() -> None:
    many = [("desk_a", {"of": str(n)}, [0, 1] * 4) for n in range(gauges.MOST_NUMBERS + 1)]

    assert gauges.read_numbers(scraped(*many), BEGIN, END) == ()
