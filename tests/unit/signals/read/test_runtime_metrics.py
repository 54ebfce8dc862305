"""Metrics of runtimes, servers and the kernel as lines: readings and figures are written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable

import polars as pl
import pytest

from loadlens.estimate.interval import Interval
from loadlens.signals.read import runtime_metrics
from loadlens.signals.read.runtime_metrics import Line, RuntimeMetrics
from loadlens.signals.read.trial_series import Readings

BEGIN, END = 2.0, 6.0
Reading = tuple[float, str, str, dict[str, str], float | None]


def table(rows: Iterable[Reading]) -> Readings:
    frame = pl.DataFrame(
        [(int(t * 1e9), s, m, json.dumps(labels, sort_keys=True), "", v) for t, s, m, labels, v in rows],
        schema=["time_ns", "source", "metric", "labels", "unit", "value"],
        orient="row",
    )
    return Readings(frame)


def series(source: str, metric: str, labels: dict[str, str], values: Iterable[float]) -> list[Reading]:
    """A reading each second from 0 on."""
    return [(float(second), source, metric, labels, value) for second, value in enumerate(values)]


def line(metrics: RuntimeMetrics, part: str, what: str) -> Line:
    (row,) = [match for match in metrics.lines if match.key == (part, what)]
    return row


def mean(row: Line) -> float:
    assert isinstance(row.mean, Interval)
    return row.mean.point


NODE = {"service": "app", "replica": "1", "pid": "7", "thread": "0"}


def test_a_loops_share_is_growth_by_growth_within_the_measured_part() -> None:
    rows = series("node", "loop_active_s", NODE, [0.0, 1.0, 2.0, 2.5, 3.0, 3.9, 4.2, 9.0])
    rows += series("node", "loop_idle_s", NODE, [0.0, 0.0, 0.0, 0.5, 1.0, 1.1, 1.8, 9.0])

    busy = line(runtime_metrics.read(table(rows), BEGIN, END), "app", "event loop busy")

    assert mean(busy) == pytest.approx((4.2 - 2.0) / (4.2 - 2.0 + 1.8))
    assert busy.highest == pytest.approx(0.9)  # from second 4 to 5
    assert [t for t, _ in busy.course] == [1, 2, 3, 4, 5, 6, 7]  # the chart shows the whole trial
    assert list(busy.course[3]) == pytest.approx([4.0, 50.0])


def test_a_share_of_a_whole_is_never_said_to_be_more_than_all_of_it() -> None:
    rows = series("node", "loop_active_s", NODE, [0.0, 0.5, 1.5, 2.5, 3.5, 4.4, 5.4])
    rows += series("node", "loop_idle_s", NODE, [0.0, 0.5, 0.5, 0.5, 0.5, 0.6, 0.6])

    share = line(runtime_metrics.read(table(rows), 0.0, END), "app", "event loop busy").mean

    assert isinstance(share, Interval)
    assert share.high == 1.0


def test_the_quantile_of_the_lag_is_the_class_that_holds_it() -> None:
    def counts(low: str, high: str, values: list[float]) -> list[Reading]:
        return series("node", "loop_lag_counts", {**NODE, "from_s": low, "to_s": high}, values)

    rows = counts("0", "0.001", [50, 90, 100, 140, 180, 190, 196])  # 96 in the part
    rows += counts("0.1", "0.126", [0, 0, 5, 5, 5, 5, 8])  # 3
    rows += [
        (6.0, "node", "loop_lag_counts", {**NODE, "from_s": "0.2", "to_s": "0.251"}, 1.0)
    ]  # 1, new there

    lag = line(runtime_metrics.read(table(rows), BEGIN, END), "app", "event-loop lag, p99").mean

    assert isinstance(lag, Interval)
    assert (lag.low, lag.high) == (0.1, 0.126)  # the 99th of 100


def test_collections_of_all_kinds_add_up_and_one_that_comes_later_began_at_zero() -> None:
    rows = series("node", "gc_s", {**NODE, "kind": "minor"}, [0.0, 0.0, 0.1, 0.1, 0.2, 0.2, 0.3])
    rows += [(t, "node", "gc_s", {**NODE, "kind": "major"}, 0.4) for t in (5.0, 6.0)]

    stopped = line(runtime_metrics.read(table(rows), BEGIN, END), "app", "stopped by the collector")

    assert mean(stopped) == pytest.approx((0.2 + 0.4) / 4)


def test_processes_are_named_by_how_much_they_did_and_replicas_where_there_are_several() -> None:
    rows = []
    for replica, pid, total in (("1", "30", 1.0), ("1", "20", 5.0), ("2", "10", 2.0)):
        own = {**NODE, "replica": replica, "pid": pid}
        rows += series("node", "loop_active_s", own, [0, total])
        rows += series("node", "heap_used_bytes", own, [int(pid), int(pid)])

    metrics = runtime_metrics.read(table(rows), 0.0, 1.0)

    heaps = {row.part: row.highest for row in metrics.lines if row.what == "heap in use"}
    assert heaps == {"app.1": 20, "app.1 #2": 30, "app.2": 10}


def test_a_quotas_share_is_of_the_periods_that_wanted_to_run() -> None:
    own = {"service": "app", "replica": "1"}
    rows = series("cgroup", "cpu_periods", own, [0, 100, 200, 250, 300, 400, 500])
    rows += series("cgroup", "cpu_throttled_periods", own, [0, 0, 0, 25, 75, 75, 75])

    throttled = line(runtime_metrics.read(table(rows), BEGIN, END), "app", "periods throttled")

    assert mean(throttled) == pytest.approx(75 / 300)
    assert throttled.highest == 1.0  # from second 3 to 4


def test_a_state_without_a_row_has_no_connection_at_that_moment() -> None:
    own = {"service": "db"}
    rows = series("postgres", "max_connections", own, [9] * 7)
    rows += series("postgres", "connections", {**own, "state": "idle", "wait": "idle"}, [4] * 7)
    rows += [(3.0, "postgres", "connections", {**own, "state": "active", "wait": "none"}, 1.0)]
    rows += [(3.0, "postgres", "connections", {**own, "state": "active", "wait": "Lock"}, 2.0)]
    rows += [(5.0, "postgres", "connections", {**own, "state": "active", "wait": "Lock"}, 2.0)]

    metrics = runtime_metrics.read(table(rows), BEGIN, END)

    active = line(metrics, "db", "connections, active")
    assert [mean(active), active.highest] == pytest.approx([(3 + 2) / 5, 3])
    waiting = line(metrics, "db", "active, waiting for Lock")
    assert [mean(waiting), waiting.highest] == pytest.approx([4 / 5, 2])


def test_titles_show_how_many_wait_for_a_lock_by_command() -> None:
    own = {"service": "db", "process": "store"}
    rows = series("backends", "backends_in_all", own, [4] * 7)
    rows += series("backends", "backends", {**own, "state": "idle", "kind": ""}, [3, 3, 3, 1, 1, 3, 3])
    rows += [(3.0, "backends", "backends", {**own, "state": "waiting", "kind": "UPDATE"}, 2.0)]
    rows += [(4.0, "backends", "backends", {**own, "state": "waiting", "kind": "UPDATE"}, 1.0)]

    metrics = runtime_metrics.read(table(rows), BEGIN, END)

    waiting = line(metrics, "db", "connections waiting for a lock, UPDATE")
    assert [mean(waiting), waiting.highest] == pytest.approx([(2 + 1) / 5, 2])
    assert mean(line(metrics, "db", "connections idle")) == pytest.approx((3 + 1 + 1 + 3 + 3) / 5)
    assert mean(line(metrics, "db", "connections")) == 4


def test_blocks_from_the_cache_are_a_share_of_all_that_were_asked_for() -> None:
    rows = series("postgres", "blocks_hit", {"service": "db"}, [0, 0, 1000, 1100, 1200, 1300, 1390])
    rows += series("postgres", "blocks_read", {"service": "db"}, [0, 0, 500, 500, 505, 510, 510])

    cached = line(runtime_metrics.read(table(rows), BEGIN, END), "db", "blocks found in its cache")

    assert mean(cached) == pytest.approx(390 / 400)


def test_schedulers_run_queues_and_the_longest_of_ten_looks() -> None:
    own = {"service": "api", "replica": "1", "pid": "5"}
    rows = series("beam", "schedulers_busy_s", {**own, "kind": "normal"}, [0, 1, 2, 4, 6, 8, 10])
    rows += series("beam", "run_queue_mean", own, [0, 0, 1, 2, 3, 4, 5])
    rows += series("beam", "run_queue_max", own, [99, 0, 4, 4, 17, 4, 5])

    metrics = runtime_metrics.read(table(rows), BEGIN, END)

    assert mean(line(metrics, "api", "schedulers busy")) == pytest.approx(2.0)
    queue = line(metrics, "api", "run queue")
    assert (mean(queue), queue.highest) == (3.0, 17)


def test_a_counter_that_went_back_gives_no_rate_there() -> None:
    rows = series("postgres", "commits", {"service": "db"}, [0, 100, 200, 300, 0, 100, 200])

    commits = line(runtime_metrics.read(table(rows), BEGIN, END), "db", "commits")

    assert mean(commits) == pytest.approx(100)


def test_ports_are_named_where_a_replica_has_several_and_drops_are_a_rate() -> None:
    def port(service: str, name: str) -> dict[str, str]:
        return {"service": service, "replica": "1", "port": name}

    rows = series("tcp", "listen_drops", port("api", "http"), [0, 0, 0, 2, 4, 6, 8])
    rows += series("tcp", "listen_drops", port("api", "metrics"), [0] * 7)
    rows += series("tcp", "accept_queue", port("lb", "http"), [0, 1, 2, 3, 4, 5, 6])
    rows += series("tcp", "resets_sent", {}, [5, 5, 5, 5, 5, 5, 9])

    metrics = runtime_metrics.read(table(rows), BEGIN, END)

    assert mean(line(metrics, "api port http", "dropped before accepted")) == 2
    assert mean(line(metrics, "api port metrics", "dropped before accepted")) == 0
    assert line(metrics, "lb", "waiting to be accepted").highest == 6
    assert mean(line(metrics, "machine", "resets sent")) == 1


def test_backends_are_counted_over_the_whole_trial_at_the_last_reading() -> None:
    rows: list[Reading] = []
    for backend, status, counts, seconds in (
        ("app.1", "200", [0, 10, 90], [0, 1.0, 9.0]),
        ("app.1", "502", [0, 0, 10], [0, 0, 1.0]),
        ("app.2", "200", [0, 5, 300], [0, 0.5, 3.0]),
    ):
        own = {"service": "lb", "backend": backend, "status": status}
        rows += series("balancer", "requests", own, counts)
        rows += series("balancer", "backend_seconds", own, seconds)

    first, second = runtime_metrics.read(table(rows), 0.0, 1.0).backends

    assert (first.name, first.requests, first.refused, first.seconds) == ("app.1", 100, 10, 10.0)
    assert (second.name, second.requests, second.refused, second.seconds) == ("app.2", 300, 0, 3.0)


def test_what_could_not_be_read_is_said_once_with_how_often() -> None:
    why = {"service": "api", "replica": "1", "why": "status 500"}
    rows: list[Reading] = [(t, "scrape", "missed", why, None) for t in (1.0, 2.0, 3.0)]
    rows += [(1.0, "node", "missed", {"service": "app", "why": "no sample came"}, None)]
    rows += [(1.0, "monitor", "missed", {}, None)]  # a tick, which stands elsewhere

    metrics = runtime_metrics.read(table(rows), BEGIN, END)

    assert metrics.unread == ("scrape of api: status 500 (3 times)", "node of app: no sample came")


def test_the_monitors_own_cost_is_their_cpu_in_the_measured_part() -> None:
    rows = series("monitor", "cost_cpu_s", {}, [0, 1, 1.5, 1.51, 1.52, 1.53, 1.54])

    assert runtime_metrics.read(table(rows), BEGIN, END).cost == pytest.approx(0.01)


def test_a_record_without_these_readings_has_no_lines() -> None:
    assert runtime_metrics.read(table([]), BEGIN, END) == RuntimeMetrics()
    assert runtime_metrics.read(table(series("host", "load1", {}, [1, 2])), BEGIN, END) == RuntimeMetrics()


JVM = {"service": "app", "replica": "1"}


def test_a_jvm_is_read_from_what_micrometer_exports() -> None:
    def pool(area: str, name: str, values: list[float]) -> list[Reading]:
        return series("scrape", "jvm_memory_used_bytes", {**JVM, "area": area, "id": name}, values)

    rows = pool("heap", "G1 Eden Space", [0, 0, 10, 20, 30, 0, 10])
    rows += pool("heap", "G1 Old Gen", [5, 5, 5, 5, 5, 6, 6])
    rows += pool("nonheap", "Metaspace", [70] * 7)
    rows += series("scrape", "jvm_threads_live_threads", JVM, [20, 20, 30, 30, 40, 40, 40])
    rows += series("scrape", "jvm_compilation_time_ms_total", JVM, [0, 0, 1000, 2000, 2500, 2500, 3000])

    metrics = runtime_metrics.read(table(rows), BEGIN, END)

    heap = line(metrics, "app", "heap in use")
    assert [mean(heap), heap.highest] == pytest.approx([(15 + 25 + 35 + 6 + 16) / 5, 35])
    assert line(metrics, "app", "heap, G1 Old Gen").highest == 6
    assert mean(line(metrics, "app", "memory outside the heap")) == 70
    assert line(metrics, "app", "threads").highest == 40
    assert mean(line(metrics, "app", "compiling")) == pytest.approx((3000 - 1000) / 1000 / 4)


def test_a_counter_that_begins_with_the_first_collection_was_zero_before() -> None:
    rows = series("scrape", "jvm_threads_live_threads", JVM, [20] * 7)
    for cause, first in (("G1 Evacuation Pause", 3), ("Metadata GC Threshold", 5)):
        own = {**JVM, "cause": cause, "action": "end of minor GC"}
        for second in range(first, 7):
            rows.append((float(second), "scrape", "jvm_gc_pause_seconds_sum", own, 0.1))
            rows.append((float(second), "scrape", "jvm_gc_pause_seconds_count", own, 4.0))

    metrics = runtime_metrics.read(table(rows), BEGIN, END)

    assert mean(line(metrics, "app", "stopped by the collector")) == pytest.approx(0.2 / 4)
    assert mean(line(metrics, "app", "collections")) == pytest.approx(8 / 4)
    assert mean(line(metrics, "app", "a collection, mean")) == pytest.approx(0.1 / 4)


@pytest.mark.parametrize(
    ("collections", "threads"),
    [
        ("jvm_gc_collection_seconds", "jvm_threads_current"),
        ("jvm_gc_pause_seconds", "jvm_threads_live_threads"),
    ],
)
def test_a_jvm_is_known_by_the_names_of_either_client(collections: str, threads: str) -> None:
    rows = series("scrape", f"{collections}_sum", {**JVM, "gc": "G1"}, [0, 0, 0, 0.4, 0.4, 0.8, 0.8])
    rows += series("scrape", threads, JVM, [9] * 7)

    metrics = runtime_metrics.read(table(rows), BEGIN, END)

    assert mean(line(metrics, "app", "stopped by the collector")) == pytest.approx(0.2)
    assert mean(line(metrics, "app", "threads")) == 9


def test_a_jvm_that_exports_nothing_is_read_from_the_monitor() -> None:
    own = {**JVM, "pid": "7"}
    full = {**own, "kind": "full", "name": "Serial full collection pauses"}
    rows = series("jvm", "collection_s", full, [0, 0, 1.0, 1.5, 2.0, 2.5, 3.0])
    rows += series("jvm", "collections", full, [0, 0, 4, 6, 8, 10, 12])
    rows += series("jvm", "heap_bytes", {**own, "area": "heap", "id": "eden"}, [1, 2, 3, 4, 5, 6, 7])
    rows += series("jvm", "heap_bytes", {**own, "area": "heap", "id": "old"}, [50] * 7)
    rows += series("jvm", "compiling_s", own, [0, 0, 0, 1, 2, 2, 2])
    rows += series("jvm", "live_threads", own, [20] * 7)

    metrics = runtime_metrics.read(table(rows), BEGIN, END)

    assert mean(line(metrics, "app", "stopped by the collector")) == pytest.approx(0.5)
    assert mean(line(metrics, "app", "a collection, mean")) == pytest.approx(0.25)
    assert line(metrics, "app", "heap in use").highest == 57
    assert line(metrics, "app", "heap, old").highest == 50
    assert mean(line(metrics, "app", "compiling")) == pytest.approx(0.5)
    assert mean(line(metrics, "app", "threads")) == 20


def test_the_pool_of_connections_shows_those_in_use_and_the_wait_of_others() -> None:
    pool = {**JVM, "pool": "HikariPool-1"}
    rows = series("scrape", "hikaricp_connections_active", pool, [0, 0, 10, 10, 10, 10, 0])
    rows += series("scrape", "hikaricp_connections_pending", pool, [0, 0, 190, 90, 90, 0, 0])
    rows += series("scrape", "hikaricp_connections_acquire_seconds_sum", pool, [0, 0, 1, 11, 16, 17, 17])
    rows += series(
        "scrape", "hikaricp_connections_acquire_seconds_count", pool, [0, 0, 100, 300, 400, 500, 500]
    )

    metrics = runtime_metrics.read(table(rows), BEGIN, END)

    assert mean(line(metrics, "app", "database connections in use")) == 8
    assert line(metrics, "app", "threads that wait for a database connection").highest == 190
    assert mean(line(metrics, "app", "wait for a database connection, mean")) == pytest.approx(16 / 400)


def test_what_a_service_exports_of_its_own_is_no_line() -> None:
    rows = series("scrape", "orders_total", JVM, [1] * 7)

    assert runtime_metrics.read(table(rows), BEGIN, END).lines == ()
