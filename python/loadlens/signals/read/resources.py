"""CPU time and memory of processes and of the machine in the measured part, from the monitors' readings.

Counters are cumulative: what counts is the difference between the readings at the edges.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from loadlens.estimate.interval import Insufficient, Interval, Measured
from loadlens.model.readings import METRICS, HostMetrics, Metric, MonitorMetrics, ProcMetrics
from loadlens.signals.collect.scene import DRIVER
from loadlens.signals.read.trial_series import Readings, Series, added

HOT: Final = 0.05  # of a core: a thread that uses more is hot
ALL: Final = "all"  # the label `cpu` of sums over all processors
UNREAD: Final = Insufficient("not read")


@dataclass(frozen=True, slots=True, eq=False)
class Process:
    """One process in the measured part."""

    service: str
    replica: str
    pid: str
    name: str
    cpu: Measured  # cores
    waiting: Measured  # cores wanted and not given
    hot_threads: int | None = None
    busiest_thread: float | None = None  # share of the CPU time that its busiest thread used
    busiest_occupied: float | None = None  # cores that this thread used or waited for
    series: Mapping[Metric, Series] = field(default_factory=dict)  # over the whole trial
    begin: float = 0.0  # measured part, seconds since t0
    end: float = 0.0

    @property
    def label(self) -> str:
        """`api uvicorn 4711`, with the replica where there are several."""
        replica = "" if self.replica in ("", "0", "1") else f".{self.replica}"
        return f"{self.service}{replica} {self.name} {self.pid}"

    @property
    def is_lab(self) -> bool:
        """True if it belongs to Loadlens and not to the service under test."""
        return self.service.startswith("(")

    @property
    def cpu_s(self) -> Series | None:
        """CPU time over the whole trial, that in the kernel included."""
        used = (ProcMetrics.cpu_user_s, ProcMetrics.cpu_system_s)
        return added([self.series[metric] for metric in used if metric in self.series])

    @property
    def system(self) -> float | None:
        """Cores that it used in the kernel; none if they were not read."""
        return _rate(self.series.get(ProcMetrics.cpu_system_s), self.begin, self.end)

    def highest(self, metric: Metric) -> float | None:
        """Return the largest reading of a gauge; none if it was not read."""
        if metric not in self.series:
            return None
        inside = self.series[metric].between(self.begin, self.end).values
        return float(inside.max()) if inside.size else None


@dataclass(frozen=True, slots=True, eq=False)
class Resources:
    """All that was watched."""

    processes: tuple[Process, ...] = ()
    host_busy: Measured | None = None  # cores
    steal: float | None = None  # share of the machine's time
    tick_late_s: float | None = None  # the monitor's own lateness, worst
    tick_s: float = 1.0  # between two readings
    is_driven: bool = False  # whether another program made the load
    busy_by_cpu: Mapping[int, float] = field(default_factory=dict)  # cores, 0 to 1, of each processor
    soft: float | None = None  # cores used by soft interrupts, of the network above all

    @property
    def others(self) -> float | None:
        """Cores used by programs that belong neither to the services nor to Loadlens."""
        if not isinstance(self.host_busy, Interval) or not self.services:
            return None
        if self.is_driven and not any(isinstance(p.cpu, Interval) for p in self.drivers):
            return None  # what it used would count as that of others
        used = sum(p.cpu.point for p in self.processes if isinstance(p.cpu, Interval))
        return max(0.0, self.host_busy.point - used)

    @property
    def drivers(self) -> tuple[Process, ...]:
        """Processes of a program that made the load in the generator's place."""
        return tuple(process for process in self.processes if process.service == DRIVER)

    @property
    def services(self) -> tuple[Process, ...]:
        """Processes of the services under test."""
        return tuple(process for process in self.processes if not process.is_lab)


def read_throughout(
    processes: Sequence[Process], called: Collection[str], begin: float, end: float
) -> tuple[Process, ...]:
    """Return processes without those of some services that were not there all the time, or may not be read.

    What is added up over processes is not known where one of them was not read. That one of a database ended,
    or belongs to another user, shall not hide what the service itself did.

    Args:
        processes: Of the services, and of what they call.
        called: Services of those that are left out.
        begin: Of the measured part, seconds since t0.
        end: Of it.
    """

    def is_read(process: Process) -> bool:
        written = process.series.get(ProcMetrics.write_bytes)
        return written is not None and bool(written.seconds[0] <= begin and written.seconds[-1] >= end)

    return tuple(each for each in processes if each.service not in called or is_read(each))


def read(readings: Readings, begin: float, end: float, *, is_driven: bool = False) -> Resources:
    """Return what was used in the measured part [begin, end], seconds since t0."""
    by_process: dict[tuple[str, str, str], dict[Metric, Series]] = {}
    for metric in METRICS[ProcMetrics.rss_bytes.monitor]:
        for series in readings.of(metric):
            labels = series.labels
            if not labels.tid:
                key = (labels.service, labels.replica, labels.pid)
                own = by_process.setdefault(key, {})
                own[metric] = _joined(own.get(metric), series)
    threads: dict[str, list[Series]] = {}
    for series in readings.of(ProcMetrics.thread_run_s):
        threads.setdefault(series.labels.pid, []).append(series)
    waits = {(s.labels.pid, s.labels.tid): s for s in readings.of(ProcMetrics.thread_runq_wait_s)}
    late = readings.one(MonitorMetrics.tick_late_s)
    used = _busy(readings, ALL)
    soft = _rate(readings.one(HostMetrics.cpu_softirq_s, cpu=ALL), begin, end)
    processors = [
        int(cpu) for each in readings.of(HostMetrics.cpu_user_s) if (cpu := each.labels.cpu).isdecimal()
    ]
    by_cpu = {cpu: _rate(_busy(readings, str(cpu)), begin, end) for cpu in processors}
    return Resources(
        processes=tuple(
            _process(key, series, threads.get(key[2]), waits, begin, end)
            for key, series in sorted(
                by_process.items(), key=lambda item: (*item[0][:2], len(item[0][2]), item[0][2])
            )
        ),
        host_busy=None if used is None else used.rate(begin, end),
        steal=_steal(readings, begin, end),
        tick_late_s=None if late is None else float(late.values.max()),
        tick_s=_tick(used),
        is_driven=is_driven,
        busy_by_cpu={cpu: busy for cpu, busy in by_cpu.items() if busy is not None},
        soft=soft,
    )


def _joined(first: Series | None, second: Series) -> Series:
    """Return the readings of one process under two names (it executed another program) in order of time."""
    if first is None:
        return second
    seconds = np.concatenate([first.seconds, second.seconds])
    order = np.argsort(seconds, kind="stable")
    return Series(seconds[order], np.concatenate([first.values, second.values])[order], second.labels)


def _process(
    key: tuple[str, str, str],
    series: Mapping[Metric, Series],
    threads: Sequence[Series] | None,
    waits: Mapping[tuple[str, str], Series],
    begin: float,
    end: float,
) -> Process:
    waiting = series.get(ProcMetrics.runq_wait_s)
    process = Process(
        *key,
        name=next(iter(series.values())).labels.process,
        cpu=UNREAD,
        waiting=UNREAD if waiting is None else waiting.rate(begin, end),
        series=series,
        begin=begin,
        end=end,
    )
    if (used := process.cpu_s) is not None:
        process = replace(process, cpu=used.rate(begin, end))
    if threads is None:
        return process
    by_thread = [_used(thread, begin, end) for thread in threads]
    whole = process.cpu.point * (end - begin) if isinstance(process.cpu, Interval) else 0.0
    most, busiest = max(zip(by_thread, threads, strict=True), key=lambda each: each[0])
    waited = waits.get((busiest.labels.pid, busiest.labels.tid))
    return replace(
        process,
        hot_threads=sum(each > HOT * (end - begin) for each in by_thread),
        busiest_thread=min(1.0, most / whole) if whole > 0 else None,
        busiest_occupied=None if waited is None else (most + _used(waited, begin, end)) / (end - begin),
    )


def _used(thread: Series, begin: float, end: float) -> float:
    """Return the seconds of a thread, on a core or before; one that did not run has none in between."""
    first = thread.last_before(begin)
    return (thread.last_before(end) or 0.0) - (first if first is not None else float(thread.values[0]))


def _rate(counter: Series | None, begin: float, end: float) -> float | None:
    rate = None if counter is None else counter.rate(begin, end)
    return rate.point if isinstance(rate, Interval) else None


def _busy(readings: Readings, cpu: str) -> Series | None:
    """Return the time in which a processor did something."""
    metrics = (HostMetrics.cpu_user_s, HostMetrics.cpu_system_s, HostMetrics.cpu_softirq_s)
    return added([series for metric in metrics if (series := readings.one(metric, cpu=cpu)) is not None])


def _steal(readings: Readings, begin: float, end: float) -> float | None:
    """Return the share of the machine's time that the hypervisor gave to others; none if it was not read."""
    metrics = (
        *(HostMetrics.cpu_user_s, HostMetrics.cpu_system_s, HostMetrics.cpu_idle_s),
        *(HostMetrics.cpu_iowait_s, HostMetrics.cpu_steal_s, HostMetrics.cpu_softirq_s),
    )
    parts = [series for metric in metrics if (series := readings.one(metric, cpu=ALL)) is not None]
    stolen = _rate(readings.one(HostMetrics.cpu_steal_s, cpu=ALL), begin, end)
    whole = _rate(added(parts), begin, end)
    return stolen / whole if stolen is not None and whole else None


def _tick(used: Series | None) -> float:
    """Return the median seconds between readings of the machine; 1 where there are too few."""
    return 1.0 if used is None or used.seconds.size <= 2 else float(np.median(np.diff(used.seconds)))
