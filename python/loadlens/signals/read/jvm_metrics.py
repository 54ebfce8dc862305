"""Metrics of a JVM that were scraped, recognised by the names that libraries give them.

Micrometer's names (Spring Boot, Quarkus, Micronaut) and those of Prometheus' own client for Java, before and
since its version 1. Pools of request threads are Tomcat's, of database connections Hikari's: Spring's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from loadlens.signals.read.trial_series import Series, total

SOURCE: Final = "jvm"
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


@dataclass(frozen=True, slots=True, eq=False)
class Jvm:
    """All series of one replica, by what they are."""

    series: Mapping[str, Sequence[Series]]

    def total(self, what: str) -> Series | None:
        """Added up over labels; none of no series.

        A series that begins later, as counters do with what they first count, was zero before.
        """
        return self._added(self._each(what))

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
