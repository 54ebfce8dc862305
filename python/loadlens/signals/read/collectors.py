"""Garbage collectors of the services in a trial: for how much of the time each stops its process.

A JVM's from its metrics or the monitor `jvm`, else from the CPU time of its threads; Node's from the monitor
`node`; others' from a counter of time that they export under a name of a collector's pauses. Work alongside
the service is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loadlens.estimate.interval import Measured
from loadlens.model.readings import NodeMetrics, ProcMetrics
from loadlens.signals.read import jvm_metrics, metric_names
from loadlens.signals.read.resources import Process
from loadlens.signals.read.trial_series import SCRAPE, Readings, Series, of_time, total

NAMES: Final = frozenset({"gc", "garbage"})
STOPS: Final = frozenset({"pause", "pauses"})  # a name that says so is preferred
TIMES: Final = STOPS | {"duration", "collection", "collections", "time"}
NO_STOPS: Final = frozenset(
    {"concurrent", "cpu", "phase", "cycle", "cycles", "background", "interval", "last", "limit", "overhead"}
)
OF_JVM: Final = "VM Thread"
COLLECTS: Final = re.compile(rf"{OF_JVM}|GC Thread#\d+")
SUMS: Final = ("_sum", "_total")


@dataclass(frozen=True, slots=True, eq=False)
class Collector:
    """The collector of one process, or of the processes of one replica, in the measured part."""

    service: str
    replica: str
    part: str  # pid and thread, where a replica has several
    stopped: Measured  # share of the time in which it stops the service
    full: Measured | None  # of the time, in collections of the whole heap; none: not known apart
    pauses: Measured | None  # per second
    kept_bytes: float | None  # the least in use after collections: a JVM's old generation, else the heap
    most_bytes: float | None  # that this may have

    @property
    def key(self) -> tuple[str, str]:
        """Service and replica, which stay the same from trial to trial."""
        return (self.service, self.replica)


def read(readings: Readings, begin: float, end: float, processes: Sequence[Process]) -> tuple[Collector, ...]:
    """Return the collectors in the measured part [begin, end], seconds since t0, the longest stops first.

    Of several processes of a replica only the one that is stopped longest is returned.
    """
    services = sorted({process.service for process in processes})
    chosen: dict[tuple[str, str], Collector] = {}
    for collector in (*_of_jvms(readings, begin, end), *_of_nodes(readings, begin, end)):
        present = chosen.get(collector.key)
        if present is None or _share(collector) > _share(present):
            chosen[collector.key] = collector
    by_threads = sorted(_of_threads(readings, begin, end), key=_share, reverse=True)
    for collector in (*_of_others(readings, begin, end), *by_threads):
        chosen.setdefault(collector.key, collector)
    watched = [each for each in chosen.values() if not services or each.service in services]
    return tuple(sorted(watched, key=lambda each: (-_share(each), each.key)))


def _share(collector: Collector) -> float:
    return getattr(collector.stopped, "point", 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Counters:
    """Counters of a collector; those of time in seconds."""

    stopped: Series | None
    full: Series | None
    pauses: Series | None = None

    def collectors(
        self,
        place: tuple[str, str, str],
        begin: float,
        end: float,
        kept_bytes: float | None = None,
        most_bytes: float | None = None,
    ) -> Iterator[Collector]:
        """Yield the collector of a place (service, replica, part), if the time of its stops is known."""
        if self.stopped is None:
            return
        full = None if self.full is None else of_time(self.full.rate(begin, end))
        pauses = None if self.pauses is None else self.pauses.rate(begin, end)
        stopped = of_time(self.stopped.rate(begin, end))
        yield Collector(*place, stopped, full, pauses, kept_bytes, most_bytes)


def _of_jvms(readings: Readings, begin: float, end: float) -> Iterator[Collector]:
    own = {(s.labels.service, s.labels.replica): None for _, s in jvm_metrics.series_of(readings)}
    for service, replica in own:
        jvm = jvm_metrics.jvm_of(readings, service, replica)
        counters = _Counters(jvm.stopped_s(), jvm.stopped_s(jvm_metrics.is_full), jvm.pauses())
        yield from counters.collectors((service, replica, ""), begin, end, *(jvm.kept(begin, end) or ()))


def _of_threads(readings: Readings, begin: float, end: float) -> Iterator[Collector]:
    """Yield one for each JVM by the CPU time of its collector's threads: what they do, all others wait for.

    Some collectors work in the thread of the JVM itself, others in several of their own at a time.
    """
    by_process: dict[tuple[str, str, str], list[Series]] = {}
    for series in readings.of(ProcMetrics.thread_run_s):
        if COLLECTS.fullmatch(series.labels.thread):
            own = series.labels
            by_process.setdefault((own.service, own.replica, own.pid), []).append(series)
    for place, threads in by_process.items():
        if any(series.labels.thread == OF_JVM for series in threads):
            busiest = max(threads, key=lambda series: getattr(series.rate(begin, end), "point", 0.0))
            yield from _Counters(busiest, None).collectors(place, begin, end)


def _of_nodes(readings: Readings, begin: float, end: float) -> Iterator[Collector]:
    """Yield one for each loop: a collection stops the thread of its heap."""
    loops: dict[tuple[str, str, str, str], list[Series]] = {}
    for series in readings.of(NodeMetrics.gc_s):
        own = series.labels
        loops.setdefault((own.service, own.replica, own.pid, own.thread), []).append(series)
    for (service, replica, pid, thread), each in loops.items():
        labels = {"service": service, "replica": replica, "pid": pid, "thread": thread}
        used = readings.one(NodeMetrics.heap_used_bytes, **labels)
        limit = readings.one(NodeMetrics.heap_limit_bytes, **labels)
        inside = None if used is None else used.between(begin, end).values
        stopped, full = total(each), total([s for s in each if jvm_metrics.is_full(s.labels)])
        pauses = total(readings.of(NodeMetrics.gc_pauses, **labels))
        yield from _Counters(stopped, full, pauses).collectors(
            (service, replica, f"{pid} {thread}"),
            begin,
            end,
            None if inside is None or not inside.size else float(inside.min()),
            None if limit is None else float(limit.values[-1]),
        )


def _of_others(readings: Readings, begin: float, end: float) -> Iterator[Collector]:
    """Yield one for each replica that exports a counter of its collector's time."""
    by_replica: dict[tuple[str, str], dict[str, list[Series]]] = {}
    for metric, series in readings.monitored(SCRAPE):
        if metric not in jvm_metrics.NAMES and seconds_per_unit(metric) is not None:
            own = (series.labels.service, series.labels.replica)
            by_replica.setdefault(own, {}).setdefault(metric, []).append(series)
    for (service, replica), metrics in by_replica.items():
        metric = min(metrics, key=lambda name: (not STOPS & set(metric_names.words_of(name)), name))
        seconds = seconds_per_unit(metric) or 1.0
        every = [series for series in metrics[metric] if not jvm_metrics.is_alongside(series.labels)]
        stopped = _in_seconds(total(every), seconds)
        full = _in_seconds(total([s for s in every if jvm_metrics.is_full(s.labels)]), seconds)
        yield from _Counters(stopped, full).collectors((service, replica, ""), begin, end)


def seconds_per_unit(metric: str) -> float | None:
    """Return the seconds in the unit of a counter of time in which a collector stops its service.

    None for every other metric. `go_gc_duration_seconds_sum`, `nodejs_gc_duration_seconds_sum` and
    `dotnet_gc_pause_time_seconds_total` are such counters, `gc_cpu_seconds_total` is none.
    """
    words = set(metric_names.words_of(metric))
    if not metric.endswith(SUMS) or not NAMES & words or not TIMES & words or NO_STOPS & words:
        return None
    return metric_names.seconds_per_unit(metric)


def _in_seconds(series: Series | None, unit: float) -> Series | None:
    return None if series is None else Series(series.seconds, series.values * unit)


def by_replica(trials: Sequence[Sequence[Collector]]) -> Mapping[tuple[str, str], Sequence[Collector]]:
    """Return the collectors of several trials by service and replica."""
    grouped: dict[tuple[str, str], list[Collector]] = {}
    for collector in (each for trial in trials for each in trial):
        grouped.setdefault(collector.key, []).append(collector)
    return grouped
