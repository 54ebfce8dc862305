"""Metrics of a JVM: what it exports, by the names that libraries give it, and what the monitor `jvm` reads.

Micrometer's names (Spring Boot, Quarkus, Micronaut) and those of Prometheus' own client for Java, before and
since its version 1. Pools of request threads are Tomcat's, of database connections Hikari's: Spring's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from loadlens.model.readings import JvmMetrics, Labels, Metric
from loadlens.signals.read.trial_series import Readings, Series, total

SOURCE: Final = JvmMetrics.collections.monitor
NAMES: Final[Mapping[str, str]] = {  # as exported -> what it is
    "jvm_memory_used_bytes": "memory_bytes",
    "jvm_memory_bytes_used": "memory_bytes",
    "jvm_memory_max_bytes": "memory_most_bytes",
    "jvm_memory_bytes_max": "memory_most_bytes",
    "jvm_memory_pool_used_bytes": "memory_pool_bytes",
    "jvm_memory_pool_bytes_used": "memory_pool_bytes",
    "jvm_gc_pause_seconds_sum": "gc_pause_s",
    "jvm_gc_pause_seconds_count": "gc_pauses",
    "jvm_gc_collection_seconds_sum": "gc_pause_s",
    "jvm_gc_collection_seconds_count": "gc_pauses",
    "jvm_gc_memory_allocated_bytes_total": "allocated_bytes",
    "jvm_memory_pool_allocated_bytes_total": "allocated_bytes",
    "jvm_compilation_time_ms_total": "compile_ms",
    "jvm_compilation_time_seconds_total": "compile_s",
    "jvm_threads_live_threads": "threads",
    "jvm_threads_current": "threads",
    "jvm_threads_states_threads": "threads_in_state",
    "jvm_threads_state": "threads_in_state",
    "tomcat_threads_busy_threads": "request_threads_busy",
    "tomcat_threads_config_max_threads": "request_threads_bound",
    "hikaricp_connections_active": "pool_active",
    "hikaricp_connections_pending": "pool_pending",
    "hikaricp_connections_max": "pool_bound",
    "hikaricp_connections_acquire_seconds_sum": "pool_acquire_s",
    "hikaricp_connections_acquire_seconds_count": "pool_acquired",
    "hikaricp_connections_timeout_total": "pool_timeouts",
}
MONITORED: Final[Mapping[Metric, str]] = {
    JvmMetrics.heap_bytes: "memory_bytes",
    JvmMetrics.heap_most_bytes: "memory_most_bytes",
    JvmMetrics.old_generation_most_bytes: "old_most_bytes",
    JvmMetrics.collection_s: "gc_pause_s",
    JvmMetrics.collections: "gc_pauses",
    JvmMetrics.at_safepoint_s: "safepoint_s",
    JvmMetrics.compiling_s: "compile_s",
    JvmMetrics.live_threads: "threads",
}
_OF_STOPS: Final = ("gc_pause_s", "gc_pauses")
_PLACE: Final = ("service", "replica", "pid", "process")  # labels that name no collector and no pool
_OLD: Final = ("old", "tenured")  # in the name of a pool


def series_of(readings: Readings, service: str | None = None) -> Iterator[tuple[str, Series]]:
    """Yield the series of JVMs with what they are, of one service or of all.

    The time of collections comes from the monitor where it reads the JVM: a page that is asked for during a
    stop arrives after it. Else what a replica exports comes first, and the monitor fills in the rest. Of
    several JVMs that a replica started, the monitor's are those of the one that collected longest.
    """
    chosen = _busiest(readings)
    exported: set[tuple[str, str, str]] = set()
    for name, what in NAMES.items():
        for series in readings.exported(name, service):
            own = (series.labels.service, series.labels.replica)
            if what in _OF_STOPS and own in chosen:
                continue
            exported.add((what, *own))
            yield what, series
    for metric, what in MONITORED.items():
        for series in readings.of(metric):
            own = (series.labels.service, series.labels.replica)
            is_wanted = service is None or own[0] == service
            if is_wanted and chosen.get(own) == series.labels.pid and (what, *own) not in exported:
                yield what, series


def _busiest(readings: Readings) -> Mapping[tuple[str, str], str]:
    """Return the pid of each replica's JVM that grew most in time of collections."""
    took: dict[tuple[str, str], dict[str, float]] = {}
    for series in readings.of(JvmMetrics.collection_s):
        by_pid = took.setdefault((series.labels.service, series.labels.replica), {})
        by_pid[series.labels.pid] = by_pid.get(series.labels.pid, 0.0) + float(
            series.values[-1] - series.values[0]
        )
    return {own: max(by_pid, key=lambda pid: by_pid[pid]) for own, by_pid in took.items()}


def is_alongside(labels: Labels) -> bool:
    """Return true for a collector that works alongside the service, such as `ZGC Cycles`: that is no stop."""
    words = _collector(labels)
    return ("cycle" in words or "concurrent" in words) and "pause" not in words


def is_full(labels: Labels) -> bool:
    """Return true for collections of the whole heap, in the words of JVMs and of V8."""
    words = _collector(labels)
    return any(word in words for word in ("full", "major", "marksweep", "oldgeneration"))


def _collector(labels: Labels) -> str:
    return " ".join(value for name, value in labels.items() if name not in _PLACE).lower().replace(" ", "")


@dataclass(frozen=True, slots=True, eq=False)
class Jvm:
    """All series of one replica, by what they are."""

    series: Mapping[str, Sequence[Series]]

    def total(self, what: str) -> Series | None:
        """Added up over labels; none of no series.

        A series that begins later, as counters do with what they first count, was zero before.
        """
        return self._added(self._each(what))

    def stopped_s(self, is_wanted: Callable[[Labels], bool] = lambda _: True) -> Series | None:
        """Time for which collections stopped all threads, of all collectors or of some.

        Where a collector counts what it does alongside the service as well, it is no more than all stops.
        """
        parts = [s for s in self._each("gc_pause_s") if not is_alongside(s.labels) and is_wanted(s.labels)]
        added, stops = self._added(parts), self.total("safepoint_s")
        if added is None or stops is None:
            return added
        return Series(added.seconds, np.minimum(added.values, stops.at(added.seconds)))

    def pauses(self) -> Series | None:
        """Number of collections that stopped all threads."""
        return self._added([s for s in self._each("gc_pauses") if not is_alongside(s.labels)])

    def kept(self, begin: float, end: float) -> tuple[float, float] | None:
        """Return bytes that stay in use over the measured part, and how many there may be; none: not known.

        The lowest reading of the old generation, where that is known; else of the whole heap.
        """
        whole = self.heap_limit_bytes()
        for pool, used in self.heap_pools():
            if any(word in pool.lower() for word in _OLD):
                most = self._old_most_bytes(pool) or whole
                inside = used.between(begin, end).values
                return (float(inside.min()), most) if inside.size and most else None
        heap = self.heap()
        inside = np.array([]) if heap is None else heap.between(begin, end).values
        return (float(inside.min()), whole) if inside.size and whole else None

    def _old_most_bytes(self, pool: str) -> float | None:
        own = [s for s in self._each("memory_most_bytes") if s.labels.id == pool]
        bounds = [float(s.values[-1]) for s in (*self._each("old_most_bytes"), *own)]
        return max(bounds, default=0.0) if max(bounds, default=0.0) > 0 else None

    def heap(self) -> Series | None:
        """Bytes in use in all pools of the heap."""
        pools = [series for _, series in self.heap_pools()]
        if pools:
            return self._added(pools)
        return self._added([each for each in self._each("memory_bytes") if each.labels.area == "heap"])

    def heap_limit_bytes(self) -> float | None:
        """Bytes that the heap may have; pools without a bound of their own share that of the others."""
        bounds = [each for each in self._each("memory_most_bytes") if each.labels.area == "heap"]
        return sum(max(0.0, float(bound.values[-1])) for bound in bounds) or None

    def heap_pools(self) -> Iterator[tuple[str, Series]]:
        """Each pool of the heap by its name; none where the metrics do not say what belongs to the heap."""
        for series in self._each("memory_bytes"):
            if series.labels.area == "heap" and series.labels.id:
                yield series.labels.id, series

    def outside_the_heap(self) -> Series | None:
        """Bytes of classes, compiled code and the like."""
        return self._added([each for each in self._each("memory_bytes") if each.labels.area == "nonheap"])

    def threads_by_state(self) -> Iterator[tuple[str, Series]]:
        """Threads that were in each state at some time."""
        for series in self._each("threads_in_state"):
            if series.values.any():
                state = (series.labels.state or "unknown").lower()
                yield state.replace("-", " ").replace("_", " "), series

    def compiling_s(self) -> Series | None:
        """Time that compiler threads were at work or waited for a core: the JVM counts it by the clock."""
        in_ms = self.total("compile_ms")
        return self.total("compile_s") if in_ms is None else Series(in_ms.seconds, in_ms.values / 1000)

    def _each(self, what: str) -> Sequence[Series]:
        return self.series.get(what, ())

    def _added(self, parts: Sequence[Series]) -> Series | None:
        every = [series.seconds for group in self.series.values() for series in group]
        return total(parts, np.unique(np.concatenate(every))) if parts else None


def jvm_of(readings: Readings, service: str, replica: str | None = None) -> Jvm:
    """Return the series of a service, or of one of its replicas."""
    by_what: dict[str, list[Series]] = {}
    for what, series in series_of(readings, service):
        if replica is None or series.labels.replica == replica:
            by_what.setdefault(what, []).append(series)
    return Jvm(by_what)
