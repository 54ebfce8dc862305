"""Memory in the measured part, from readings that are counted by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from loadlens.model.facts import MemoryWatch
from loadlens.model.readings import ProcMetrics
from loadlens.model.shapes import MemoryBound
from loadlens.signals.read import memory
from loadlens.signals.read.resources import UNREAD, Process
from loadlens.signals.read.trial_series import Readings, Series
from tests.unit.signals.read.declared import point, unread, values

COLUMNS = ("source", "metric", "labels", "time_ns", "value")


def readings(*metrics: tuple[str, str, str, float, float]) -> Readings:
    """Source, metric, replica, what it is at first, and by how much it rises a second, for 10 s."""
    rows = []
    for source, metric, replica, first, per_s in metrics:
        labels = json.dumps({"service": "api", "replica": replica} if source == "cgroup" else {})
        rows += [(source, metric, labels, int(at * 1e9), first + per_s * at) for at in range(11)]
    return Readings(pl.DataFrame([dict(zip(COLUMNS, row, strict=True)) for row in rows]))


def process(*faults: float, **peaks: float) -> Process:
    """Faults so far at each second."""
    series = {ProcMetrics.major_faults: Series(np.arange(float(len(faults))), np.array(faults))}
    for metric in (ProcMetrics.pss_bytes, ProcMetrics.rss_bytes):
        if metric.name in peaks:
            series[metric] = Series(np.array([5.0]), np.array([peaks[metric.name]]))
    return Process("api", "1", "7", "x", UNREAD, UNREAD, 1, series=series, begin=0.0, end=10.0)


HOST = (
    ("host", "memory_refaults", "", 900.0, 30.0),
    ("host", "memory_swapped_in", "", 5.0, 0.0),
    ("host", "pressure_memory_some_s", "", 1.0, 0.125),
    ("host", "memory_total_bytes", "", 1000.0, 0.0),
)
STEADY = [7.0 * at for at in range(11)]


def test_counters_of_the_machine_become_rates() -> None:
    figures = values(MemoryWatch, readings(*HOST), 2.0, 10.0, [process(*STEADY)])

    assert point(figures["again"]) == pytest.approx(30.0)
    assert point(figures["swapped_in"]) == 0.0
    assert point(figures["waiting"]) == pytest.approx(0.125)
    assert unread(figures["own_waiting"])  # not read, and so not zero


def test_faults_of_all_processes_are_given_for_both_halves() -> None:
    # from 2 to 10 s: 40 in the first four seconds, 4 in the others; the second process adds 8 to each
    fading = process(0, 0, 100, 110, 120, 130, 140, 141, 142, 143, 144)
    even = process(*(2.0 * at for at in range(11)))

    watch = memory.read(readings(*HOST), 2.0, 10.0, [fading, even])

    assert watch is not None
    assert watch.halves == pytest.approx((48.0, 12.0))
    assert watch.faults == pytest.approx(60 / 8)


def test_a_process_whose_faults_are_unknown_leaves_the_sum_unknown() -> None:
    blind = replace(process(), series={})

    watch = memory.read(readings(*HOST), 2.0, 10.0, [process(*STEADY), blind])

    assert watch is not None
    assert (watch.faults, watch.halves) == (None, None)


def test_the_group_that_is_worst_off_stands_for_all_and_the_least_bound_is_kept() -> None:
    groups = (
        ("cgroup", "memory_at_limit", "1", 3.0, 0.5),
        ("cgroup", "memory_at_limit", "2", 8.0, 4.0),
        ("cgroup", "memory_pressure_some_s", "1", 0.0, 0.25),
        ("cgroup", "memory_limit_bytes", "1", 300.0, 0.0),
        ("cgroup", "memory_limit_bytes", "2", 200.0, 0.0),
    )

    figures = values(MemoryWatch, readings(*HOST, *groups), 0.0, 10.0, [process(*STEADY)])

    assert point(figures["at_bound"]) == pytest.approx(4.0)
    assert point(figures["own_waiting"]) == pytest.approx(0.25)
    assert figures["bound_bytes"] == 200.0


def test_what_services_hold_is_a_share_of_the_machine() -> None:
    shared = process(*STEADY, pss_bytes=200.0, rss_bytes=900.0)  # most of which others use as well
    alone = process(*STEADY, rss_bytes=300.0)

    watch = memory.read(readings(*HOST), 0.0, 10.0, [shared, alone])

    assert watch is not None
    assert watch.held == pytest.approx(0.5)  # 200 and 300 of 1000


def test_where_no_service_is_watched_there_is_nothing() -> None:
    assert memory.read(readings(*HOST), 0.0, 10.0, []) is None


Row = tuple[str, str, dict[str, str], list[float]]  # source, metric, labels, a value at each second


def exported(*rows: Row) -> Readings:
    return Readings(
        pl.DataFrame(
            [
                dict(zip(COLUMNS, (source, name, labels, at * 10**9, value), strict=True))
                for source, name, more, course in rows
                for labels in [json.dumps({"service": "api", **more})]
                for at, value in enumerate(course)
            ]
        )
    )


MACHINE: tuple[Row, ...] = (
    ("host", "memory_total_bytes", {}, [4000.0, 4000.0]),
    ("host", "memory_available_bytes", {}, [1500.0, 1400.0]),
)


@pytest.mark.parametrize(
    ("more", "bound"),
    [
        ((), MemoryBound("machine", 4000.0, 1400.0)),
        (  # two groups of 600 bytes, whose process holds 900
            tuple(("cgroup", "memory_limit_bytes", {"replica": r}, [600.0, 600.0]) for r in "12"),
            MemoryBound("control group", 1200.0, 300.0),
        ),
        (  # Eden has no bound of its own, the old generation that of the heap
            (
                ("scrape", "jvm_memory_max_bytes", {"area": "heap", "id": "Eden"}, [-1.0, -1.0]),
                ("scrape", "jvm_memory_max_bytes", {"area": "heap", "id": "Old"}, [500.0, 500.0]),
                ("scrape", "jvm_memory_max_bytes", {"area": "nonheap", "id": "Code"}, [90.0, 90.0]),
                ("scrape", "jvm_memory_used_bytes", {"area": "heap", "id": "Eden"}, [50.0, 60.0]),
                ("scrape", "jvm_memory_used_bytes", {"area": "heap", "id": "Old"}, [100.0, 120.0]),
            ),
            MemoryBound("heap", 500.0, 320.0),
        ),
        (
            (
                ("node", "heap_limit_bytes", {"pid": "7"}, [800.0, 800.0]),
                ("node", "heap_used_bytes", {"pid": "7"}, [100.0, 250.0]),
            ),
            MemoryBound("heap", 800.0, 550.0),
        ),
    ],
    ids=["machine", "groups", "jvm", "node"],
)
def test_the_nearest_limit_of_memory_is_kept_with_what_was_left_at_the_end(
    more: tuple[Row, ...], bound: MemoryBound
) -> None:
    watch = memory.read(exported(*MACHINE, *more), 0.0, 1.0, [process(0, 0, rss_bytes=900.0)])

    assert watch is not None
    assert watch.bounds == {"api": bound}
