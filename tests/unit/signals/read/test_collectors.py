"""Stops by garbage collectors: series are written by hand, shares are their growth over the measured part."""

from __future__ import annotations

import pytest

from loadlens.estimate.interval import Interval
from loadlens.model.readings import Labels
from loadlens.signals.read import collectors, jvm_metrics
from loadlens.signals.read.collectors import Collector, seconds_per_unit
from tests.unit.signals.read.test_runtime_metrics import BEGIN, END, Reading, series, table

APP = {"service": "app", "replica": "1"}
ONE = {**APP, "pid": "7"}


def share(measured: object) -> float:
    assert isinstance(measured, Interval)
    return measured.point


def read(*rows: list[Reading]) -> tuple[Collector, ...]:
    return collectors.read(table([row for each in rows for row in each]), BEGIN, END, ())


def monitored(
    pid: str, took: list[float], *, name: str = "Serial full collection pauses", kind: str = "full"
) -> list[Reading]:
    own = {**APP, "pid": pid}
    rows = series("jvm", "collection_s", {**own, "kind": kind, "name": name}, took)
    return rows + series("jvm", "collections", {**own, "kind": kind, "name": name}, [0, 0, 2, 4, 6, 8, 8])


def test_a_jvm_without_metrics_is_known_from_the_monitor() -> None:
    heap = {**ONE, "area": "heap"}
    (collector,) = read(
        monitored("7", [0.0, 0.1, 0.2, 0.6, 1.0, 1.4, 1.8]),
        monitored(
            "7", [0.0, 0.0, 0.0, 0.1, 0.2, 0.3, 0.4], name="Serial young collection pauses", kind="young"
        ),
        series("jvm", "at_safepoint_s", ONE, [0.0, 0.1, 0.2, 0.8, 1.3, 1.8, 2.3]),
        series("jvm", "heap_bytes", {**heap, "id": "eden"}, [9, 9, 9, 9, 9, 9, 9]),
        series("jvm", "heap_bytes", {**heap, "id": "old"}, [10, 90, 95, 60, 70, 80, 50]),
        series("jvm", "heap_most_bytes", heap, [150] * 7),
        series("jvm", "old_generation_most_bytes", ONE, [100] * 7),
    )

    assert collector.key == ("app", "1")
    assert share(collector.stopped) == pytest.approx((1.8 + 0.4 - 0.2) / 4)  # from second 2 to 6
    assert collector.full is not None
    assert share(collector.full) == pytest.approx((1.8 - 0.2) / 4)
    assert collector.pauses is not None
    assert share(collector.pauses) == pytest.approx(2 * (8 - 2) / 4)
    assert (collector.kept_bytes, collector.most_bytes) == (
        50,
        100,
    )  # of the old generation, in the measured part


def test_what_a_collector_does_beside_the_service_is_no_stop() -> None:
    (collector,) = read(
        monitored("7", [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], name="Shenandoah full"),
        series("jvm", "at_safepoint_s", ONE, [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06]),
    )

    assert share(collector.stopped) == pytest.approx(0.01)


def test_a_jvm_that_shows_no_counters_stops_while_its_collecting_threads_run() -> None:
    """Of several threads that collect at a time the one that runs longest; others of its process are none."""

    def thread(name: str, tid: str, ran: list[float]) -> list[Reading]:
        return series("proc", "thread_run_s", {**ONE, "tid": tid, "thread": name}, ran)

    own = thread("VM Thread", "8", [0.0, 0.1, 0.1, 0.2, 0.2, 0.3, 0.3])
    collecting = [
        thread(f"GC Thread#{n}", f"1{n}", [0, 1, 1 + n, 2 + n, 2 + n, 3 + n, 3 + n]) for n in (0, 1)
    ]
    others = thread("http-1", "20", [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])

    (collector,) = read(own, *collecting, others)

    assert share(collector.stopped) == pytest.approx((3 - 1) / 4)  # from second 2 to 6
    assert collector.full is None
    launcher = series(
        "proc", "thread_run_s", {**APP, "pid": "6", "tid": "6", "thread": "VM Thread"}, [0.0] * 7
    )
    (stopped,) = read(launcher, own, *collecting)
    assert share(stopped.stopped) == pytest.approx(0.5)  # the process that is stopped longest
    assert read(*collecting, others) == ()  # another program's threads of that name


def test_stops_come_from_the_monitor_and_the_rest_from_the_metrics_of_the_service() -> None:
    exported = {**APP, "gc": "MarkSweepCompact", "action": "end of major GC"}
    old = {**APP, "area": "heap", "id": "Tenured Gen"}
    (collector,) = read(
        monitored("7", [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]),
        series("jvm", "heap_bytes", {**ONE, "area": "heap", "id": "old"}, [1] * 7),
        series("scrape", "jvm_gc_pause_seconds_sum", exported, [0.0, 0.0, 2.0, 2.0, 2.0, 4.0, 4.0]),
        series("scrape", "jvm_memory_used_bytes", old, [60, 70, 80, 60, 70, 80, 90]),
        series("scrape", "jvm_memory_max_bytes", old, [100] * 7),
    )

    assert share(collector.stopped) == pytest.approx(0.5)
    assert (collector.kept_bytes, collector.most_bytes) == (60, 100)


def test_without_the_monitor_stops_come_from_the_metrics() -> None:
    exported = {**APP, "gc": "MarkSweepCompact", "action": "end of major GC"}
    (collector,) = read(
        series("scrape", "jvm_gc_pause_seconds_sum", exported, [0.0, 0.4, 0.8, 1.2, 1.6, 2.0, 2.4])
    )

    assert share(collector.stopped) == pytest.approx(0.4)
    assert collector.full is not None
    assert share(collector.full) == pytest.approx(0.4)


def test_of_several_jvms_of_a_replica_the_one_that_collects_counts() -> None:
    (collector,) = read(
        monitored("7", [5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0]),  # a build tool that started the other
        monitored("8", [0.0, 0.3, 0.6, 0.9, 1.2, 1.5, 1.8]),
    )

    assert share(collector.stopped) == pytest.approx(0.3)


def test_a_node_process_is_known_from_its_loop() -> None:
    loop = {**ONE, "thread": "0"}
    (collector,) = read(
        series("node", "gc_s", {**loop, "kind": "minor"}, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
        series("node", "gc_s", {**loop, "kind": "major"}, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2]),
        series("node", "heap_used_bytes", loop, [10, 90, 80, 85, 70, 75, 80]),
        series("node", "heap_limit_bytes", loop, [100] * 7),
    )

    assert share(collector.stopped) == pytest.approx(0.3)
    assert collector.full is not None
    assert share(collector.full) == pytest.approx(0.2)
    assert (collector.kept_bytes, collector.most_bytes) == (70, 100)


@pytest.mark.parametrize(
    ("metric", "per_s"),
    [
        ("go_gc_duration_seconds_sum", 0.05),
        ("nodejs_gc_duration_seconds_sum", 0.05),
        ("dotnet_gc_pause_time_seconds_total", 0.05),
        ("ruby_gc_time_milliseconds_total", 0.00005),
    ],
)
def test_other_runtimes_are_known_by_a_counter_of_their_own(metric: str, per_s: float) -> None:
    (collector,) = read(series("scrape", metric, APP, [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]))

    assert share(collector.stopped) == pytest.approx(per_s)
    assert collector.kept_bytes is None


def test_of_two_counters_the_one_of_pauses_is_taken() -> None:
    (collector,) = read(
        series("scrape", "dotnet_gc_collection_seconds_sum", APP, [0, 1, 2, 3, 4, 5, 6]),
        series("scrape", "dotnet_gc_pause_seconds_sum", APP, [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
    )

    assert share(collector.stopped) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "metric",
    [
        "go_cpu_classes_gc_total_cpu_seconds_total",
        "jvm_gc_concurrent_phase_time_seconds_sum",
        "go_memstats_last_gc_time_seconds",
        "python_gc_collections_total",
        "jvm_gc_overhead_percent",
        "http_request_duration_seconds_sum",
    ],
)
def test_counters_of_anything_else_are_no_stops(metric: str) -> None:
    assert seconds_per_unit(metric) is None
    assert read(series("scrape", metric, APP, [0, 1, 2, 3, 4, 5, 6])) == ()


@pytest.mark.parametrize(
    ("collector", "alongside", "full"),
    [
        ("ZGC Cycles", True, False),
        ("ZGC Pauses", False, False),
        ("Z concurrent cycle pauses", False, False),
        ("Shenandoah Cycles", True, False),
        ("G1 Concurrent GC", True, False),
        ("G1 Young Generation", False, False),
        ("G1 Old Generation", False, True),
        ("PS MarkSweep", False, True),
        ("MarkSweepCompact", False, True),
        ("Copy", False, False),
    ],
)
def test_names_of_collectors_say_what_they_do(collector: str, alongside: bool, full: bool) -> None:
    labels = Labels({"service": "full-cycle", "gc": collector})

    assert jvm_metrics.is_alongside(labels) is alongside
    assert jvm_metrics.is_full(labels) is full
