"""Memory in the measured part, from readings that are counted by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.signals.read import memory
from loadlens.signals.read.resources import Process, Series

COLUMNS = ("source", "metric", "labels", "time_ns", "value")


def readings(*metrics: tuple[str, str, str, float, float]) -> pl.DataFrame:
    """Source, metric, replica, what it is at first, and by how much it rises a second, for 10 s."""
    rows = []
    for source, metric, replica, first, per_s in metrics:
        labels = json.dumps({"service": "api", "replica": replica} if source == "cgroup" else {})
        rows += [(source, metric, labels, int(at * 1e9), first + per_s * at) for at in range(11)]
    return pl.DataFrame([dict(zip(COLUMNS, row, strict=True)) for row in rows])


def process(*faults: float, **peaks: float) -> Process:
    """Faults so far at each second."""
    unread = Insufficient("not read")
    series = Series(np.arange(float(len(faults))), np.array(faults))
    return Process("api", "1", "7", "x", unread, None, unread, 1, peaks, {}, {"major_faults": series})


HOST = (
    ("host", "memory_refaults", "", 900.0, 30.0),
    ("host", "memory_swapped_in", "", 5.0, 0.0),
    ("host", "pressure_memory_some_s", "", 1.0, 0.125),
    ("host", "memory_total_bytes", "", 1000.0, 0.0),
)
STEADY = [7.0 * at for at in range(11)]


def point(found: Interval | Insufficient) -> float:
    assert isinstance(found, Interval)
    return found.point


def test_counters_of_the_machine_become_rates() -> None:
    found = memory.read(readings(*HOST), 2.0, 10.0, [process(*STEADY)])

    assert found is not None
    assert point(found.again) == pytest.approx(30.0)
    assert point(found.swapped_in) == 0.0
    assert point(found.waiting) == pytest.approx(0.125)
    assert isinstance(found.own_waiting, Insufficient)  # nobody looked, and so not zero


def test_faults_of_all_processes_are_told_for_both_halves() -> None:
    # from 2 to 10 s: 40 in the first four seconds, 4 in the others; the second process adds 8 to each
    fading = process(0, 0, 100, 110, 120, 130, 140, 141, 142, 143, 144)
    even = process(*(2.0 * at for at in range(11)))

    found = memory.read(readings(*HOST), 2.0, 10.0, [fading, even])

    assert found is not None
    assert found.halves == pytest.approx((48.0, 12.0))
    assert found.faults == pytest.approx(60 / 8)


def test_a_process_whose_faults_are_unknown_leaves_the_sum_unknown() -> None:
    blind = replace(process(), series={})

    found = memory.read(readings(*HOST), 2.0, 10.0, [process(*STEADY), blind])

    assert found is not None
    assert (found.faults, found.halves) == (None, None)


def test_the_group_that_is_worst_off_stands_for_all_and_the_least_bound_is_kept() -> None:
    groups = (
        ("cgroup", "memory_at_limit", "1", 3.0, 0.5),
        ("cgroup", "memory_at_limit", "2", 8.0, 4.0),
        ("cgroup", "memory_pressure_some_s", "1", 0.0, 0.25),
        ("cgroup", "memory_limit_bytes", "1", 300.0, 0.0),
        ("cgroup", "memory_limit_bytes", "2", 200.0, 0.0),
    )

    found = memory.read(readings(*HOST, *groups), 0.0, 10.0, [process(*STEADY)])

    assert found is not None
    assert point(found.at_bound) == pytest.approx(4.0)
    assert point(found.own_waiting) == pytest.approx(0.25)
    assert found.bound_bytes == 200.0


def test_what_services_hold_is_a_share_of_the_machine() -> None:
    shared = process(*STEADY, pss_bytes=200.0, rss_bytes=900.0)  # most of which others use as well
    alone = process(*STEADY, rss_bytes=300.0)

    found = memory.read(readings(*HOST), 0.0, 10.0, [shared, alone])

    assert found is not None
    assert found.held == pytest.approx(0.5)  # 200 and 300 of 1000


def test_where_no_service_is_watched_there_is_nothing() -> None:
    assert memory.read(readings(*HOST), 0.0, 10.0, []) is None
