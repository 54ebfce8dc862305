"""Locks and connections from titles; means are counts by hand over the moments of the measured part."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest

from loadlens.measure.services import backend_places
from loadlens.measure.services.gauges import GaugePlace
from loadlens.signals.collect.monitor import labels
from loadlens.signals.read.trial_series import Readings

BEGIN, END = 1.0, 4.0
Row = tuple[int, str, str, str, str, float]


def row(second: float, source: str, metric: str, value: float, **of: str) -> Row:
    return round(second * 1e9), source, metric, labels(service="db", process="store", **of), "", value


def sampled(*moments: Mapping[tuple[str, str], int], more: tuple[Row, ...] = ()) -> Readings:
    """Titles at 0, 1, 2 ... s: how many are in a state and execute a command."""
    rows = list(more)
    for second, counts in enumerate(moments):
        rows += [
            row(second, "backends", "backends", count, state=state, kind=command)
            for (state, command), count in counts.items()
        ]
        rows.append(row(second, "backends", "backends_in_all", sum(counts.values())))
    names = ["time_ns", "source", "metric", "labels", "unit", "value"]
    return Readings(pl.DataFrame(rows, schema=names, orient="row"))


def points(place: GaugePlace) -> dict[str, float]:
    return {role: reading.mean.point for role, reading in place.gauges.items()}


IDLE, RESTING = ("idle", ""), ("idle in transaction", "")
UPDATE, DELETE, SELECT = ("waiting", "UPDATE"), ("waiting", "DELETE"), ("active", "SELECT")


def test_those_who_wait_for_a_lock_and_those_at_work_are_its_line_and_its_holders() -> None:
    readings = sampled(
        {IDLE: 9, DELETE: 9},  # before the measured part
        {RESTING: 1, UPDATE: 6, IDLE: 1},
        {RESTING: 1, UPDATE: 4, DELETE: 1, IDLE: 2},
        {SELECT: 1, UPDATE: 6, IDLE: 1},
        {RESTING: 1, UPDATE: 7},
    )

    lock, pool = backend_places.read(readings, BEGIN, END)

    assert (lock.kind, lock.seen_in, lock.command, lock.held_is_at_most) == ("lock", "titles", "UPDATE", True)
    assert points(lock) == pytest.approx({"held": 1.0, "waiting": 6.0})  # (6 + 5 + 6 + 7) / 4
    assert lock.gauges["waiting"].name == "db store: UPDATE waiting"
    assert (lock.service, lock.program) == ("db", "store")
    assert lock.resting is not None
    assert lock.resting.mean.point == pytest.approx(0.75)
    assert (pool.kind, pool.command) == ("pool", "SELECT")
    assert points(pool) == pytest.approx({"held": 7.0, "present": 8.0})
    assert pool.gauges["held"].highest == 8


def test_a_state_without_a_row_is_none_at_that_moment() -> None:
    lock, pool = backend_places.read(
        sampled({IDLE: 2}, {IDLE: 2}, {IDLE: 2}, {UPDATE: 2}, {IDLE: 2}), 1.0, 4.0
    )

    assert points(lock) == pytest.approx({"held": 0.0, "waiting": 0.5})
    assert points(pool) == pytest.approx({"held": 0.5, "present": 2.0})


def test_a_server_without_connections_of_the_services_has_no_places() -> None:
    assert list(backend_places.read(sampled({}, {}, {}), 0.0, 2.0)) == []


def test_the_locks_of_a_server_that_was_asked_by_sql_are_its_own_to_report() -> None:
    asked = tuple(row(n, "postgres", "connections", 2, state="active", wait="Lock") for n in range(3))

    (pool,) = backend_places.read(sampled({UPDATE: 2}, {UPDATE: 2}, {UPDATE: 2}, more=asked), 0.0, 2.0)

    assert pool.kind == "pool"
