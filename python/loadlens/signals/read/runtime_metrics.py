"""Metrics of runtimes, databases, balancers and the kernel in a trial, as lines of a table.

A line is one series of one part: its mean over the measured part, its highest reading, and its course for the
chart. Counters become rates or shares of their growth; nothing is averaged that is a percentile already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from loadlens.estimate.interval import Interval, Measured
from loadlens.model.readings import (
    BackendsMetrics,
    BalancerMetrics,
    BeamMetrics,
    CgroupMetrics,
    Labels,
    Metric,
    MonitorMetrics,
    NodeMetrics,
    PostgresMetrics,
    TcpMetrics,
)
from loadlens.signals.read import jvm_metrics
from loadlens.signals.read.trial_series import (
    NOT_READ,
    Readings,
    Series,
    counted_at,
    level,
    mean_or_point,
    total,
)

SOURCES = ("node", "beam", "jvm", "tcp", "cgroup", "postgres", "backends", "balancer", "monitor", "scrape")
MIB = 1024.0**2
PERCENT = 100.0
MS = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One series of one part in the measured part of a trial."""

    part: str  # "app.1", "app.1 #2" for its second process
    what: str
    unit: str
    mean: Measured | None = None  # none: only the highest is known
    highest: float | None = None  # of the readings, or of the stretches between two of them
    panel: str = ""  # title of the chart's panel; empty: not drawn
    source: str = ""  # the monitor
    course: tuple[tuple[float, float], ...] = ()  # (second, value in the panel's unit)

    @property
    def key(self) -> tuple[str, str]:
        """Part and name, in which the lines of a trial differ."""
        return (self.part, self.what)


@dataclass(frozen=True, slots=True)
class Backend:
    """Requests of one replica behind a balancer, over the whole trial."""

    balancer: str
    name: str
    requests: int
    refused: int  # of these, answered with a status from 500 on
    seconds: float  # that the backend took, added up
    connect_seconds: float


@dataclass(frozen=True, slots=True)
class RuntimeMetrics:
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
    series: dict[str, list[Series]] = field(default_factory=dict)

    def one(self, metric: Metric, **wanted: str) -> Series | None:
        """Return the series with these labels; none if it was not read."""
        every = self.series.get(metric.name, ())
        return next((series for series in every if wanted.items() <= series.labels.items()), None)

    def each(self, metric: Metric) -> Sequence[Series]:
        """Return all series of a metric."""
        return self.series.get(metric.name, ())


def read(readings: Readings, begin: float, end: float) -> RuntimeMetrics:
    """Return the metrics over the measured part [begin, end], seconds since t0."""
    parts = _parts(readings)
    cost = readings.one(MonitorMetrics.cost_cpu_s)
    cores = None if cost is None else cost.rate(begin, end)
    lines: list[Line] = []
    for source, make in _MAKERS.items():
        for part in parts.get(source, ()):
            lines += [replace(line, source=source) for line in make(part, begin, end)]
    return RuntimeMetrics(
        tuple(lines),
        tuple(_backends(parts.get(BalancerMetrics.requests.monitor, ()))),
        (*_unread(readings), *readings.left_out()),
        cores.point if isinstance(cores, Interval) else None,
    )


# --- from rows to parts -----------------------------------------------------------------------------------

_OF_A_PART: Mapping[str, tuple[str, ...]] = {  # labels in which the parts of a source differ
    "node": ("service", "replica", "pid", "thread"),
    "beam": ("service", "replica", "pid"),
    jvm_metrics.SOURCE: ("service", "replica"),
    "tcp": ("service", "replica", "port"),
    "cgroup": ("service", "replica"),
    "postgres": ("service",),
    "backends": ("service", "process"),
    "balancer": ("service",),
}
_ACTIVITY: Mapping[str, Metric] = {
    "node": NodeMetrics.loop_active_s,
    "beam": BeamMetrics.schedulers_busy_s,
}


def _parts(readings: Readings) -> dict[str, list[_Part]]:
    by_source: dict[str, dict[tuple[str, ...], _Part]] = {}
    for source, names in _OF_A_PART.items():
        for metric, series in _series_of(source, readings):
            own = tuple(series.labels.get(name, "") for name in names)
            part = by_source.setdefault(source, {}).setdefault(
                own, _Part("", Labels(zip(names, own, strict=True)))
            )
            part.series.setdefault(metric, []).append(series)
            part.series[metric].sort(key=lambda series: sorted(series.labels.items()))
    return {source: _named(source, list(parts.values())) for source, parts in by_source.items()}


def _series_of(source: str, readings: Readings) -> Iterator[tuple[str, Series]]:
    if source != jvm_metrics.SOURCE:
        yield from readings.monitored(source)
        return
    yield from jvm_metrics.series_of(readings)


def _named(source: str, parts: Sequence[_Part]) -> list[_Part]:
    """Parts with names that are the same in every trial: processes by how much they did, not by pid."""
    by_replica: dict[tuple[str, str], list[_Part]] = {}
    for part in parts:
        by_replica.setdefault((part.labels.service, part.labels.replica), []).append(part)
    replicas: dict[str, set[str]] = {}
    for service, replica in by_replica:
        replicas.setdefault(service, set()).add(replica)
    named = []
    for (service, replica), own in sorted(by_replica.items()):
        name = f"{service}.{replica}" if len(replicas[service]) > 1 else service
        for rank, part in enumerate(sorted(own, key=lambda p: (-_did(source, p), str(p.labels))), start=1):
            part.name = name if rank == 1 or source == "tcp" else f"{name} #{rank}"
            if source == "tcp" and service and len(own) > 1:
                part.name = f"{name} port {part.labels.port}"
            named.append(part)
    return named


def _did(source: str, part: _Part) -> float:
    metric = _ACTIVITY.get(source)
    return sum(float(series.values[-1]) for series in part.each(metric)) if metric else 0.0


# --- series to lines --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Span:
    """One part over the measured part of the trial; a metric that was not read makes no line."""

    part: _Part
    begin: float
    end: float

    def _gauge(
        self, what: str, unit: str, of: Series | Metric | None, panel: str, per: float, *, has_mean: bool
    ) -> Iterator[Line]:
        series = self.part.one(of) if isinstance(of, Metric) else of
        if series is None:
            return
        inside = series.between(self.begin, self.end).values
        mean = None if not has_mean else level(inside) if inside.size else NOT_READ
        highest = float(inside.max()) if inside.size else None
        course = tuple((float(t), float(v) / per) for t, v in zip(series.seconds, series.values, strict=True))
        yield Line(self.part.name, what, unit, mean, highest, panel, course=course)

    def level(
        self, what: str, unit: str, of: Series | Metric | None, panel: str = "", per: float = 1.0
    ) -> Iterator[Line]:
        """A gauge: the mean of its readings and the highest of them."""
        return self._gauge(what, unit, of, panel, per, has_mean=True)

    def highest(
        self, what: str, of: Series | Metric | None, panel: str = "", per: float = 1.0
    ) -> Iterator[Line]:
        """A gauge that holds the worst since the last reading: its mean would mean nothing."""
        return self._gauge(what, "s", of, panel, per, has_mean=False)

    def rate(
        self, what: str, unit: str, of: Series | Metric | None, panel: str = "", per: float = 1.0
    ) -> Iterator[Line]:
        """A counter: its growth per second, and the fastest between two readings."""
        series = self.part.one(of) if isinstance(of, Metric) else of
        if series is not None:
            yield self._grown(what, unit, series, Series(series.seconds, series.seconds), panel, per)

    def ratio(
        self,
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
        line = self._grown(what, unit, above.read_at(seconds), below.read_at(seconds), panel, per)
        if unit == "share" and isinstance(line.mean, Interval):  # of a whole: not more than all of it
            high = None if line.mean.high is None else min(1.0, line.mean.high)
            line = replace(line, mean=replace(line.mean, high=high))
        yield line

    def _grown(self, what: str, unit: str, above: Series, below: Series, panel: str, per: float) -> Line:
        up, down = np.diff(above.values), np.diff(below.values)
        is_known = (down > 0) & (up >= 0)
        inside = is_known & (above.seconds[:-1] >= self.begin) & (above.seconds[1:] <= self.end)
        values = np.divide(up, down, out=np.full(up.size, np.nan), where=is_known)
        course = tuple(
            (float(t), float(v) / per)
            for t, v in zip(above.seconds[1:], values, strict=True)
            if np.isfinite(v)
        )
        if not inside.any():
            return Line(self.part.name, what, unit, NOT_READ, None, panel, course=course)
        mean = mean_or_point(up[inside], down[inside])
        return Line(self.part.name, what, unit, mean, float(values[inside].max()), panel, course=course)


# --- one maker a source -----------------------------------------------------------------------------------


def _node(part: _Part, begin: float, end: float) -> Iterator[Line]:
    span = _Span(part, begin, end)
    active, idle = part.one(NodeMetrics.loop_active_s), part.one(NodeMetrics.loop_idle_s)
    whole = total([series for series in (active, idle) if series is not None])
    yield from span.ratio("event loop busy", "share", active, whole, "event loop busy, %", 1 / PERCENT)
    counts = total(part.each(NodeMetrics.loop_lag_counts))
    yield from span.ratio("event-loop lag, mean", "s", part.one(NodeMetrics.loop_lag_sum_s), counts)
    p99 = _lag_quantile(part, begin, end, 0.99)
    if p99 is not None:
        yield Line(part.name, "event-loop lag, p99", "s", p99)
    worst = part.one(NodeMetrics.loop_lag_max_s)
    yield from span.highest("event-loop lag, worst", worst, "event-loop lag, worst in 1 s, ms", 1 / MS)
    pauses = total(part.each(NodeMetrics.gc_s))
    yield from span.rate(
        "stopped by the collector", "share", pauses, "stopped by the collector, %", 1 / PERCENT
    )
    yield from span.highest("longest collection", NodeMetrics.gc_longest_s)
    yield from span.level("heap in use", "bytes", NodeMetrics.heap_used_bytes, "heap in use, MiB", MIB)
    yield from span.rate("taken by the sampling", "share", NodeMetrics.sampling_s)


def _lag_quantile(part: _Part, begin: float, end: float, p: float) -> Interval | None:
    """A quantile of the lag over time, between the bounds of the class that it falls into."""
    classes = []
    for series in part.each(NodeMetrics.loop_lag_counts):
        last, first = series.last_before(end), series.last_before(begin)
        grown = (last or 0.0) - (first or 0.0)
        if grown > 0:
            classes.append((float(series.labels.from_s), float(series.labels.to_s), grown))
    classes.sort()
    total = sum(count for _, _, count in classes)
    seen = 0.0
    for low, high, count in classes:
        seen += count
        if seen >= p * total:
            return Interval((low + high) / 2, low, high, total, "bounds of its class, exact over looks")
    return None


def _beam(part: _Part, begin: float, end: float) -> Iterator[Line]:
    span = _Span(part, begin, end)
    busy = part.one(BeamMetrics.schedulers_busy_s, kind="normal")
    yield from span.rate("schedulers busy", "schedulers", busy, "schedulers busy")
    yield from span.rate(
        "dirty schedulers busy", "schedulers", part.one(BeamMetrics.schedulers_busy_s, kind="dirty_cpu")
    )
    queue, most = part.one(BeamMetrics.run_queue_mean), part.one(BeamMetrics.run_queue_max)
    for line in span.level("run queue", "", queue, "run queue"):
        inside = most.between(begin, end).values if most is not None else np.zeros(0)
        highest = float(inside.max()) if inside.size else line.highest
        yield replace(line, highest=highest)
    yield from span.highest("a process woke late by", BeamMetrics.wake_late_max_s)
    yield from span.level("processes", "", BeamMetrics.processes, "Erlang processes")
    yield from span.level("longest message queue", "", BeamMetrics.longest_queue, "longest message queue")
    memory = part.one(BeamMetrics.memory_bytes, kind="total")
    yield from span.level("memory of the emulator", "bytes", memory, "memory of the emulator, MiB", MIB)
    yield from span.rate("collections", "1/s", BeamMetrics.gc_runs, "collections/s")
    yield from span.rate("reductions", "1/s", BeamMetrics.reductions)
    yield from span.rate("sampling under way", "share", BeamMetrics.sampling_s)


def _tcp(part: _Part, begin: float, end: float) -> Iterator[Line]:
    span = _Span(part, begin, end)
    if not part.labels.service:  # the machine
        part.name = "machine"
        yield from span.rate("segments sent again", "1/s", TcpMetrics.segments_retransmitted)
        yield from span.rate("resets sent", "1/s", TcpMetrics.resets_sent)
        return
    yield from span.level("waiting to be accepted", "", TcpMetrics.accept_queue, "waiting to be accepted")
    yield from span.level("may wait to be accepted", "", TcpMetrics.accept_queue_bound)
    yield from span.rate(
        "dropped before accepted",
        "1/s",
        TcpMetrics.listen_drops,
        "dropped before accepted, 1/s",
    )
    moments = part.one(TcpMetrics.connections, state="established")  # each count has this row
    for series in part.each(TcpMetrics.connections):
        state = series.labels.state
        if series.values.any():
            panel = "TCP connections, established" if state == "established" else ""
            counts = _counted(moments, [series])
            yield from span.level(f"connections, {state.replace('_', ' ')}", "", counts, panel)


def _cgroup(part: _Part, begin: float, end: float) -> Iterator[Line]:
    span = _Span(part, begin, end)
    periods, held = part.one(CgroupMetrics.cpu_periods), part.one(CgroupMetrics.cpu_throttled_periods)
    yield from span.ratio("periods throttled", "share", held, periods, "periods throttled, %", 1 / PERCENT)
    yield from span.rate("held back by its quota", "cores", CgroupMetrics.cpu_throttled_s)
    yield from span.rate("waiting for a CPU (pressure)", "share", CgroupMetrics.cpu_pressure_some_s)
    yield from span.rate("waiting for memory (pressure)", "share", CgroupMetrics.memory_pressure_some_s)
    for metric, what in (
        (CgroupMetrics.memory_at_limit, "met its bound of memory"),
        (CgroupMetrics.oom_kills, "killed for memory"),
    ):
        series = part.one(metric)
        if series is not None and series.values.any():
            yield from span.rate(what, "1/s", series)


def _postgres(part: _Part, begin: float, end: float) -> Iterator[Line]:
    span = _Span(part, begin, end)
    by_state: dict[str, list[Series]] = {}
    waits: dict[str, list[Series]] = {}
    for series in part.each(PostgresMetrics.connections):
        state, wait = series.labels.state or "unknown", series.labels.wait
        by_state.setdefault(state, []).append(series)
        if state == "active" and wait != "none":
            waits.setdefault(wait, []).append(series)
    moments = part.one(PostgresMetrics.max_connections)
    for state, group in sorted(by_state.items()):
        panel = "database connections, active" if state == "active" else ""
        yield from span.level(f"connections, {state}", "", _counted(moments, group), panel)
    for wait, group in sorted(waits.items()):
        yield from span.level(f"active, waiting for {wait}", "", _counted(moments, group))
    locks = part.one(PostgresMetrics.locks_waited_for)
    yield from span.level("locks waited for", "", locks, "locks waited for")
    yield from span.highest("longest wait for a lock", PostgresMetrics.longest_lock_wait_s)
    yield from span.highest("longest transaction", PostgresMetrics.longest_transaction_s)
    yield from span.rate("commits", "1/s", PostgresMetrics.commits, "commits/s")
    yield from span.rate("rollbacks", "1/s", PostgresMetrics.rollbacks)
    hit, missed = part.one(PostgresMetrics.blocks_hit), part.one(PostgresMetrics.blocks_read)
    whole = total([series for series in (hit, missed) if series is not None])
    yield from span.ratio("blocks found in its cache", "share", hit, whole)
    for metric, what, unit in (
        (PostgresMetrics.deadlocks, "deadlocks", "1/s"),
        (PostgresMetrics.temporary_bytes, "written to temporary files", "bytes/s"),
    ):
        counter = part.one(metric)
        if counter is not None and np.ptp(counter.values) > 0:
            yield from span.rate(what, unit, counter)
    yield from span.rate("written to its log", "bytes/s", PostgresMetrics.log_bytes)
    yield from span.level("size of the database", "bytes", PostgresMetrics.database_bytes)


def _counted(moments: Series | None, parts: Sequence[Series]) -> Series | None:
    return None if moments is None else counted_at(moments, parts)


def _titles(part: _Part, begin: float, end: float) -> Iterator[Line]:
    span = _Span(part, begin, end)
    every = part.one(BackendsMetrics.backends_in_all)
    if every is None:
        return
    yield from span.level("connections", "", every)
    by_state: dict[str, list[Series]] = {}
    for series in part.each(BackendsMetrics.backends):
        state, command = series.labels.state, series.labels.kind
        named = {"waiting": f"waiting for a lock, {command}", "active": f"at work, {command}"}
        by_state.setdefault(named.get(state, state), []).append(series)
    for text, group in sorted(by_state.items()):
        yield from span.level(f"connections {text}", "", counted_at(every, group))


def _jvm(part: _Part, begin: float, end: float) -> Iterator[Line]:
    span = _Span(part, begin, end)
    jvm = jvm_metrics.Jvm(part.series)
    yield from span.level("heap in use", "bytes", jvm.heap(), "heap in use, MiB", MIB)
    for pool, used in jvm.heap_pools():
        yield from span.level(f"heap, {pool}", "bytes", used)
    yield from span.level("memory outside the heap", "bytes", jvm.outside_the_heap())
    paused_s, pauses = jvm.stopped_s(), jvm.pauses()
    panel = "stopped by the collector, %"
    yield from span.rate("stopped by the collector", "share", paused_s, panel, 1 / PERCENT)
    yield from span.rate("collections", "1/s", pauses)
    yield from span.ratio("a collection, mean", "s", paused_s, pauses)
    yield from span.rate("allocated", "bytes/s", jvm.total("allocated_bytes"))
    yield from span.rate("compiling", "threads", jvm.compiling_s(), "compiling, threads")
    yield from span.level("threads", "", jvm.total("threads"), "threads")
    for state, count in jvm.threads_by_state():
        yield from span.level(f"threads, {state}", "", count)
    busy = jvm.total("request_threads_busy")
    yield from span.level("request threads busy", "", busy, "request threads busy")
    yield from span.level("request threads at most", "", jvm.total("request_threads_bound"))
    held, wait = jvm.total("pool_active"), jvm.total("pool_pending")
    yield from span.level("database connections in use", "", held, "database connections in use")
    yield from span.level("database connections at most", "", jvm.total("pool_bound"))
    title = "threads that wait for a database connection"
    yield from span.level(title, "", wait, title)
    got, waited_s = jvm.total("pool_acquired"), jvm.total("pool_acquire_s")
    yield from span.ratio("wait for a database connection, mean", "s", waited_s, got)
    late = jvm.total("pool_timeouts")
    if late is not None and np.ptp(late.values) > 0:
        yield from span.rate("gave up waiting for a database connection", "1/s", late)


_MAKERS: Mapping[str, Callable[[_Part, float, float], Iterator[Line]]] = {
    "node": _node,
    "beam": _beam,
    jvm_metrics.SOURCE: _jvm,
    "cgroup": _cgroup,
    "postgres": _postgres,
    "backends": _titles,
    "tcp": _tcp,
}


# --- balancers, and what could not be read ----------------------------------------------------------------


def _backends(parts: Sequence[_Part]) -> Iterator[Backend]:
    for part in parts:
        sums: dict[str, list[float]] = {}
        for metric, column in (
            (BalancerMetrics.requests, 0),
            (BalancerMetrics.backend_seconds, 2),
            (BalancerMetrics.connect_seconds, 3),
        ):
            for series in part.each(metric):
                own = sums.setdefault(series.labels.backend, [0.0, 0.0, 0.0, 0.0])
                own[column] += float(series.values[-1])
                if metric is BalancerMetrics.requests and series.labels.status >= "500":
                    own[1] += float(series.values[-1])
        for name, (requests, refused, seconds, connect) in sorted(sums.items()):
            yield Backend(part.labels.service, name, int(requests), int(refused), seconds, connect)


def _unread(readings: Readings) -> Iterator[str]:
    import polars as pl

    if readings.table.is_empty():
        return
    kept = readings.table.filter(pl.col("source").is_in(SOURCES))
    is_missed = pl.col("metric") == MonitorMetrics.missed.name
    rows = kept.filter(is_missed & pl.col("labels").str.contains('"why"'))
    for key, group in rows.group_by(["source", "labels"], maintain_order=True):
        labels = Labels.of(str(key[1]))
        of = f" of {labels.service}" if labels.service else ""
        times = f" ({group.height} times)" if group.height > 1 else ""
        yield f"{key[0]}{of}: {labels.why}{times}"
