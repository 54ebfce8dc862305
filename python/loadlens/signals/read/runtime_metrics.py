"""What runtimes, databases, balancers and the kernel told about the services in a trial, as lines of a table.

A line is one series of one part: its mean over the measured part, its highest reading, and its course for the
chart. Counters become rates or shares of their growth; nothing is averaged that is a percentile already.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.signals.read import jvm_metrics
from loadlens.signals.read.resources import Series

if TYPE_CHECKING:
    import polars as pl

SOURCES = ("node", "beam", "tcp", "cgroup", "postgres", "balancer", "monitor", "scrape")
MIB = 1024.0**2
PERCENT = 100.0
MS = 1000.0
_UNREAD = Insufficient("not read in the measured part")

Labels = Mapping[str, str]
Found = Interval | Insufficient


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One series of one part in the measured part of a trial."""

    part: str  # "app.1", "app.1 #2" for its second process
    what: str
    unit: str
    mean: Found | None = None  # none: only the highest is known
    highest: float | None = None  # of the readings, or of the stretches between two of them
    panel: str = ""  # title of the chart's panel; empty: not drawn
    source: str = ""  # the monitor
    course: tuple[tuple[float, float], ...] = ()  # (second, value in the panel's unit)

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from the other lines of a trial."""
        return (self.part, self.what)


@dataclass(frozen=True, slots=True)
class Backend:
    """What one replica got from a balancer, over the whole trial."""

    balancer: str
    name: str
    requests: int
    refused: int  # of these, answered with a status from 500 on
    seconds: float  # that the backend took, added up
    connect_seconds: float


@dataclass(frozen=True, slots=True)
class Told:
    """Everything of one trial."""

    lines: tuple[Line, ...] = ()
    backends: tuple[Backend, ...] = ()
    unread: tuple[str, ...] = ()  # what could not be read, and why
    cost: float | None = None  # cores that the monitors took


@dataclass(slots=True)
class _Part:
    """All series of one process, port, group or server, by metric and by the labels that are left."""

    name: str
    labels: Labels
    series: dict[str, dict[tuple[tuple[str, str], ...], Series]] = field(default_factory=dict)

    def one(self, metric: str, **wanted: str) -> Series | None:
        """The series with these labels; none if it was not read."""
        found = [
            series
            for rest, series in self.series.get(metric, {}).items()
            if wanted.items() <= dict(rest).items()
        ]
        return found[0] if found else None

    def each(self, metric: str) -> Iterator[tuple[dict[str, str], Series]]:
        """All series of a metric."""
        for rest, series in sorted(self.series.get(metric, {}).items()):
            yield dict(rest), series


def read(readings: pl.DataFrame, begin: float, end: float) -> Told:
    """Summarise what was told over the measured part [begin, end], seconds since t0."""
    if readings.is_empty():
        return Told()
    import polars as pl

    kept = readings.filter(pl.col("source").is_in(SOURCES))
    parts, cost = _parts(kept, begin, end)
    lines: list[Line] = []
    for source, make in _MAKERS.items():
        for part in parts.get(source, ()):
            lines += [replace(line, source=source) for line in make(part, begin, end)]
    return Told(tuple(lines), tuple(_backends(parts.get("balancer", ()))), tuple(_unread(kept)), cost)


# --- from rows to parts -----------------------------------------------------------------------------------

_OF_A_PART: Mapping[str, tuple[str, ...]] = {  # labels that tell one part of a source from another
    "node": ("service", "replica", "pid", "thread"),
    "beam": ("service", "replica", "pid"),
    jvm_metrics.SOURCE: ("service", "replica"),
    "tcp": ("service", "replica", "port"),
    "cgroup": ("service", "replica"),
    "postgres": ("service",),
    "balancer": ("service",),
}
_ACTIVITY: Mapping[str, str] = {"node": "loop_active_s", "beam": "schedulers_busy_s"}


def _parts(kept: pl.DataFrame, begin: float, end: float) -> tuple[dict[str, list[_Part]], float | None]:
    import polars as pl

    found: dict[str, dict[tuple[str, ...], _Part]] = {}
    cost: float | None = None
    is_told = (pl.col("source") != "scrape") | pl.col("metric").is_in(list(jvm_metrics.NAMES))
    known = kept.filter(pl.col("value").is_not_null() & is_told).sort("time_ns")
    for key, rows in known.group_by(["source", "metric", "labels"], maintain_order=True):
        source, metric, labels = str(key[0]), str(key[1]), json.loads(str(key[2]) or "{}")
        if source == "scrape":
            source, metric = jvm_metrics.SOURCE, jvm_metrics.NAMES[metric]
        series = Series(
            rows["time_ns"].to_numpy().astype(np.float64) / 1e9, rows["value"].to_numpy().astype(np.float64)
        )
        if source == "monitor":
            if metric == "cost_cpu_s":
                rate = series.rate(begin, end)
                cost = rate.point if isinstance(rate, Interval) else None
            continue
        names = _OF_A_PART[source]
        own = tuple(str(labels.get(name, "")) for name in names)
        part = found.setdefault(source, {}).setdefault(own, _Part("", dict(zip(names, own, strict=True))))
        rest = tuple(sorted((str(k), str(v)) for k, v in labels.items() if k not in names))
        part.series.setdefault(metric, {})[rest] = series
    return {source: _named(source, list(parts.values())) for source, parts in found.items()}, cost


def _named(source: str, parts: Sequence[_Part]) -> list[_Part]:
    """Parts with names that are the same in every trial: processes by how much they did, not by pid."""
    by_replica: dict[tuple[str, str], list[_Part]] = {}
    for part in parts:
        by_replica.setdefault((part.labels.get("service", ""), part.labels.get("replica", "")), []).append(
            part
        )
    replicas: dict[str, set[str]] = {}
    for service, replica in by_replica:
        replicas.setdefault(service, set()).add(replica)
    named = []
    for (service, replica), own in sorted(by_replica.items()):
        name = f"{service}.{replica}" if len(replicas[service]) > 1 else service
        for rank, part in enumerate(sorted(own, key=lambda p: (-_did(source, p), str(p.labels))), start=1):
            part.name = name if rank == 1 or source == "tcp" else f"{name} #{rank}"
            if source == "tcp" and service and len(own) > 1:
                part.name = f"{name} port {part.labels['port']}"
            named.append(part)
    return named


def _did(source: str, part: _Part) -> float:
    metric = _ACTIVITY.get(source)
    return sum(float(series.values[-1]) for _, series in part.each(metric)) if metric else 0.0


# --- series to lines --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Span:
    """The measured part."""

    begin: float
    end: float

    def level(
        self, part: _Part, what: str, unit: str, series: Series | None, panel: str = "", per: float = 1.0
    ) -> Iterator[Line]:
        """A gauge: the mean of its readings and the highest of them."""
        if series is None:
            return
        inside = series.between(self.begin, self.end)
        mean: Found = _UNREAD
        if inside.values.size:
            mean = _level(inside.values)
        highest = float(inside.values.max()) if inside.values.size else None
        course = tuple((float(t), float(v) / per) for t, v in zip(series.seconds, series.values, strict=True))
        yield Line(part.name, what, unit, mean, highest, panel, course=course)

    def highest(
        self, part: _Part, what: str, series: Series | None, panel: str = "", per: float = 1.0
    ) -> Iterator[Line]:
        """A gauge that holds the worst since the last reading: its mean would mean nothing."""
        if series is None:
            return
        inside = series.between(self.begin, self.end)
        highest = float(inside.values.max()) if inside.values.size else None
        course = tuple((float(t), float(v) / per) for t, v in zip(series.seconds, series.values, strict=True))
        yield Line(part.name, what, "s", None, highest, panel, course=course)

    def rate(
        self, part: _Part, what: str, unit: str, series: Series | None, panel: str = "", per: float = 1.0
    ) -> Iterator[Line]:
        """A counter: its growth per second, and the fastest between two readings."""
        if series is None:
            return
        yield self._grown(part, what, unit, series, _time_of(series), panel, per)

    def ratio(
        self,
        part: _Part,
        what: str,
        unit: str,
        above: Series | None,
        below: Series | None,
        panel: str = "",
        per: float = 1.0,
    ) -> Iterator[Line]:
        """A counter by another: the ratio of their growth."""
        if above is None or below is None:
            return
        seconds = np.intersect1d(above.seconds, below.seconds)
        line = self._grown(part, what, unit, _at(above, seconds), _at(below, seconds), panel, per)
        if unit == "share" and isinstance(line.mean, Interval):  # of a whole: not more than all of it
            high = None if line.mean.high is None else min(1.0, line.mean.high)
            line = replace(line, mean=replace(line.mean, high=high))
        yield line

    def _grown(
        self, part: _Part, what: str, unit: str, above: Series, below: Series, panel: str, per: float
    ) -> Line:
        up, down = np.diff(above.values), np.diff(below.values)
        known = (down > 0) & (up >= 0)
        inside = known & (above.seconds[:-1] >= self.begin) & (above.seconds[1:] <= self.end)
        values = np.divide(up, down, out=np.full(up.size, np.nan), where=known)
        course = tuple(
            (float(t), float(v) / per)
            for t, v in zip(above.seconds[1:], values, strict=True)
            if np.isfinite(v)
        )
        if not inside.any():
            return Line(part.name, what, unit, _UNREAD, None, panel, course=course)
        mean = within_trial.mean(up[inside], down[inside])
        point = float(up[inside].sum() / down[inside].sum())
        found = (
            mean if isinstance(mean, Interval) else Interval(point, None, None, 1.0, "difference of readings")
        )
        return Line(part.name, what, unit, found, float(values[inside].max()), panel, course=course)


def _level(values: Floats) -> Interval:
    """The mean of readings at equal distances."""
    found = within_trial.mean(values, np.ones(values.size))
    point = float(values.mean())
    return found if isinstance(found, Interval) else Interval(point, None, None, 1.0, "mean of readings")


def _time_of(series: Series) -> Series:
    return Series(series.seconds, series.seconds)


def _at(series: Series, seconds: Floats) -> Series:
    return Series(seconds, series.values[np.searchsorted(series.seconds, seconds)])


def _sum(parts: Sequence[Series]) -> Series | None:
    """Series added up; one that begins later counts as it began, and before that as zero."""
    if not parts:
        return None
    seconds = np.unique(np.concatenate([part.seconds for part in parts]))
    total = np.zeros(seconds.size)
    for part in parts:
        place = np.searchsorted(part.seconds, seconds, side="right") - 1
        total += np.where(place >= 0, part.values[np.maximum(place, 0)], 0.0)
    return Series(seconds, total)


# --- one maker a source -----------------------------------------------------------------------------------


def _node(part: _Part, begin: float, end: float) -> Iterator[Line]:
    span = _Span(begin, end)
    active, idle = part.one("loop_active_s"), part.one("loop_idle_s")
    whole = _sum([series for series in (active, idle) if series is not None])
    yield from span.ratio(part, "event loop busy", "share", active, whole, "event loop busy, %", 1 / PERCENT)
    counts = _sum([series for _, series in part.each("loop_lag_counts")])
    yield from span.ratio(part, "event-loop lag, mean", "s", part.one("loop_lag_sum_s"), counts)
    p99 = _lag_quantile(part, begin, end, 0.99)
    if p99 is not None:
        yield Line(part.name, "event-loop lag, p99", "s", p99)
    worst = part.one("loop_lag_max_s")
    yield from span.highest(part, "event-loop lag, worst", worst, "event-loop lag, worst in 1 s, ms", 1 / MS)
    pauses = _sum([series for _, series in part.each("gc_s")])
    yield from span.rate(
        part, "stopped by the collector", "share", pauses, "stopped by the collector, %", 1 / PERCENT
    )
    yield from span.highest(part, "longest collection", part.one("gc_longest_s"))
    yield from span.level(part, "heap in use", "bytes", part.one("heap_used_bytes"), "heap in use, MiB", MIB)
    yield from span.rate(part, "taken by the sampling", "share", part.one("sampling_s"))


def _lag_quantile(part: _Part, begin: float, end: float, p: float) -> Interval | None:
    """A quantile of the lag over time, between the bounds of the class that it falls into."""
    classes = []
    for labels, series in part.each("loop_lag_counts"):
        last, first = series.last_before(end), series.last_before(begin)
        grown = (last or 0.0) - (first or 0.0)
        if grown > 0:
            classes.append((float(labels["from_s"]), float(labels["to_s"]), grown))
    classes.sort()
    total = sum(count for _, _, count in classes)
    seen = 0.0
    for low, high, count in classes:
        seen += count
        if seen >= p * total:
            return Interval((low + high) / 2, low, high, total, "bounds of its class, exact over looks")
    return None


def _beam(part: _Part, begin: float, end: float) -> Iterator[Line]:
    span = _Span(begin, end)
    busy = part.one("schedulers_busy_s", kind="normal")
    yield from span.rate(part, "schedulers busy", "schedulers", busy, "schedulers busy")
    yield from span.rate(
        part, "dirty schedulers busy", "schedulers", part.one("schedulers_busy_s", kind="dirty_cpu")
    )
    queue, most = part.one("run_queue_mean"), part.one("run_queue_max")
    for line in span.level(part, "run queue", "", queue, "run queue"):
        inside = most.between(begin, end).values if most is not None else np.zeros(0)
        highest = float(inside.max()) if inside.size else line.highest
        yield replace(line, highest=highest)
    yield from span.highest(part, "a process woke late by", part.one("wake_late_max_s"))
    yield from span.level(part, "processes", "", part.one("processes"), "Erlang processes")
    yield from span.level(
        part, "longest message queue", "", part.one("longest_queue"), "longest message queue"
    )
    memory = part.one("memory_bytes", kind="total")
    yield from span.level(part, "memory of the emulator", "bytes", memory, "memory of the emulator, MiB", MIB)
    yield from span.rate(part, "collections", "1/s", part.one("gc_runs"), "collections/s")
    yield from span.rate(part, "reductions", "1/s", part.one("reductions"))
    yield from span.rate(part, "sampling under way", "share", part.one("sampling_s"))


def _tcp(part: _Part, begin: float, end: float) -> Iterator[Line]:
    span = _Span(begin, end)
    if not part.labels["service"]:  # the machine
        part.name = "machine"
        yield from span.rate(part, "segments sent again", "1/s", part.one("segments_retransmitted"))
        yield from span.rate(part, "resets sent", "1/s", part.one("resets_sent"))
        return
    yield from span.level(
        part, "waiting to be accepted", "", part.one("accept_queue"), "waiting to be accepted"
    )
    yield from span.level(part, "may wait to be accepted", "", part.one("accept_queue_bound"))
    yield from span.rate(
        part, "dropped before accepted", "1/s", part.one("listen_drops"), "dropped before accepted, 1/s"
    )
    moments = part.one("connections", state="established")  # each count has this row
    for labels, series in part.each("connections"):
        state = labels["state"]
        if series.values.any():
            panel = "TCP connections, established" if state == "established" else ""
            counts = _counted_at(moments, [series])
            yield from span.level(part, f"connections, {state.replace('_', ' ')}", "", counts, panel)


def _cgroup(part: _Part, begin: float, end: float) -> Iterator[Line]:
    span = _Span(begin, end)
    periods, held = part.one("cpu_periods"), part.one("cpu_throttled_periods")
    yield from span.ratio(
        part, "periods throttled", "share", held, periods, "periods throttled, %", 1 / PERCENT
    )
    yield from span.rate(part, "held back by its quota", "cores", part.one("cpu_throttled_s"))
    yield from span.rate(part, "waiting for a CPU (pressure)", "share", part.one("cpu_pressure_some_s"))
    yield from span.rate(part, "waiting for memory (pressure)", "share", part.one("memory_pressure_some_s"))
    for metric, what in (("memory_at_limit", "met its bound of memory"), ("oom_kills", "killed for memory")):
        series = part.one(metric)
        if series is not None and series.values.any():
            yield from span.rate(part, what, "1/s", series)


def _postgres(part: _Part, begin: float, end: float) -> Iterator[Line]:
    span = _Span(begin, end)
    by_state: dict[str, list[Series]] = {}
    waits: dict[str, list[Series]] = {}
    for labels, series in part.each("connections"):
        by_state.setdefault(labels.get("state", "unknown"), []).append(series)
        if labels.get("state") == "active" and labels.get("wait") != "none":
            waits.setdefault(labels.get("wait", ""), []).append(series)
    moments = part.one("max_connections")
    for state, found in sorted(by_state.items()):
        panel = "database connections, active" if state == "active" else ""
        yield from span.level(part, f"connections, {state}", "", _counted_at(moments, found), panel)
    for wait, found in sorted(waits.items()):
        yield from span.level(part, f"active, waiting for {wait}", "", _counted_at(moments, found))
    locks = part.one("locks_waited_for")
    yield from span.level(part, "locks waited for", "", locks, "locks waited for")
    yield from span.highest(part, "longest wait for a lock", part.one("longest_lock_wait_s"))
    yield from span.highest(part, "longest transaction", part.one("longest_transaction_s"))
    yield from span.rate(part, "commits", "1/s", part.one("commits"), "commits/s")
    yield from span.rate(part, "rollbacks", "1/s", part.one("rollbacks"))
    hit, missed = part.one("blocks_hit"), part.one("blocks_read")
    whole = _sum([series for series in (hit, missed) if series is not None])
    yield from span.ratio(part, "blocks found in its cache", "share", hit, whole)
    for metric, what in (("deadlocks", "deadlocks"), ("temporary_bytes", "written to temporary files")):
        counter = part.one(metric)
        if counter is not None and np.ptp(counter.values) > 0:
            yield from span.rate(part, what, "bytes/s" if metric.endswith("bytes") else "1/s", counter)
    yield from span.rate(part, "written to its log", "bytes/s", part.one("log_bytes"))
    yield from span.level(part, "size of the database", "bytes", part.one("database_bytes"))


def _counted_at(moments: Series | None, parts: Sequence[Series]) -> Series | None:
    """Counts by group added up; at a moment without a row there was none."""
    if moments is None:
        return None
    total = np.zeros(moments.seconds.size)
    for part in parts:
        place = np.searchsorted(moments.seconds, part.seconds)
        fits = (place < total.size) & (moments.seconds[np.minimum(place, total.size - 1)] == part.seconds)
        np.add.at(total, place[fits], part.values[fits])
    return Series(moments.seconds, total)


def _jvm(part: _Part, begin: float, end: float) -> Iterator[Line]:
    span = _Span(begin, end)
    jvm = jvm_metrics.Jvm({metric: list(part.each(metric)) for metric in part.series})
    yield from span.level(part, "heap in use", "bytes", jvm.heap(), "heap in use, MiB", MIB)
    for pool, used in jvm.heap_pools():
        yield from span.level(part, f"heap, {pool}", "bytes", used)
    yield from span.level(part, "memory outside the heap", "bytes", jvm.outside_the_heap())
    paused_s, pauses = jvm.total("gc_pause_s"), jvm.total("gc_pauses")
    panel = "stopped by the collector, %"
    yield from span.rate(part, "stopped by the collector", "share", paused_s, panel, 1 / PERCENT)
    yield from span.rate(part, "collections", "1/s", pauses)
    yield from span.ratio(part, "a collection, mean", "s", paused_s, pauses)
    yield from span.rate(part, "allocated", "bytes/s", jvm.total("allocated_bytes"))
    yield from span.rate(part, "compiling", "threads", jvm.compiling_s(), "compiling, threads")
    yield from span.level(part, "threads", "", jvm.total("threads"), "threads")
    for state, count in jvm.threads_by_state():
        yield from span.level(part, f"threads, {state}", "", count)
    busy = jvm.total("request_threads_busy")
    yield from span.level(part, "request threads busy", "", busy, "request threads busy")
    yield from span.level(part, "request threads at most", "", jvm.total("request_threads_bound"))
    held, wait = jvm.total("pool_active"), jvm.total("pool_pending")
    yield from span.level(part, "database connections in use", "", held, "database connections in use")
    yield from span.level(part, "database connections at most", "", jvm.total("pool_bound"))
    title = "threads that wait for a database connection"
    yield from span.level(part, title, "", wait, title)
    got, waited_s = jvm.total("pool_acquired"), jvm.total("pool_acquire_s")
    yield from span.ratio(part, "wait for a database connection, mean", "s", waited_s, got)
    late = jvm.total("pool_timeouts")
    if late is not None and np.ptp(late.values) > 0:
        yield from span.rate(part, "gave up waiting for a database connection", "1/s", late)


_MAKERS: Mapping[str, Callable[[_Part, float, float], Iterator[Line]]] = {
    "node": _node,
    "beam": _beam,
    jvm_metrics.SOURCE: _jvm,
    "cgroup": _cgroup,
    "postgres": _postgres,
    "tcp": _tcp,
}


# --- balancers, and what could not be read ----------------------------------------------------------------


def _backends(parts: Sequence[_Part]) -> Iterator[Backend]:
    for part in parts:
        sums: dict[str, list[float]] = {}
        for metric, column in (("requests", 0), ("backend_seconds", 2), ("connect_seconds", 3)):
            for labels, series in part.each(metric):
                own = sums.setdefault(labels["backend"], [0.0, 0.0, 0.0, 0.0])
                own[column] += float(series.values[-1])
                if metric == "requests" and labels["status"] >= "500":
                    own[1] += float(series.values[-1])
        for name, (requests, refused, seconds, connect) in sorted(sums.items()):
            yield Backend(part.labels["service"], name, int(requests), int(refused), seconds, connect)


def _unread(kept: pl.DataFrame) -> Iterator[str]:
    import polars as pl

    rows = kept.filter((pl.col("metric") == "missed") & pl.col("labels").str.contains('"why"'))
    for key, found in rows.group_by(["source", "labels"], maintain_order=True):
        labels = json.loads(str(key[1]))
        of = f" of {labels['service']}" if "service" in labels else ""
        times = f" ({found.height} times)" if found.height > 1 else ""
        yield f"{key[0]}{of}: {labels['why']}{times}"
