"""What processes and the machine used in the measured part, from the monitors' readings.

Counters are cumulative: what counts is the difference between the readings at the edges.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.signals.collect.scene import DRIVER

if TYPE_CHECKING:
    import polars as pl

HOT = 0.05  # of a core: a thread that uses more is hot
CPU = ("cpu_user_s", "cpu_system_s")
CHARTED = ("rss_bytes", "pss_bytes", "threads", "descriptors")
COUNTED = (
    *("read_bytes", "write_bytes", "appended_bytes"),
    *("voluntary_switches", "involuntary_switches", "major_faults"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Readings of one metric with one set of labels, in order of time."""

    seconds: Floats
    values: Floats

    def between(self, begin: float, end: float) -> Series:
        """Readings within a part, both edges included."""
        inside = (self.seconds >= begin) & (self.seconds <= end)
        return Series(self.seconds[inside], self.values[inside])

    def rate(self, begin: float, end: float) -> Interval | Insufficient:
        """Growth per second of a counter over a part, from its growth between readings."""
        part = self.between(begin, end)
        if part.seconds.size < 2:
            return Insufficient(f"{part.seconds.size} readings in the measured part, needs 2")
        growth, lengths = np.diff(part.values), np.diff(part.seconds)
        if np.any(growth < 0):
            return Insufficient("the counter went back: the process was replaced")
        found = within_trial.mean(growth, lengths)
        if isinstance(found, Interval):
            return found
        point = float(growth.sum() / lengths.sum())
        return Interval(point, None, None, float(growth.size), "difference of two readings")

    def last_before(self, when: float) -> float | None:
        """The last reading up to a moment."""
        place = int(np.searchsorted(self.seconds, when, side="right"))
        return float(self.values[place - 1]) if place else None


@dataclass(frozen=True, slots=True, eq=False)
class Process:
    """One process in the measured part."""

    service: str
    replica: str
    pid: str
    name: str
    cpu: Interval | Insufficient  # cores
    system: float | None  # cores of it spent in the kernel
    waiting: Interval | Insufficient  # cores wanted and not given
    hot_threads: int | None
    peaks: Mapping[str, float]  # largest reading of rss_bytes, threads, descriptors
    rates: Mapping[str, float]  # per second: bytes read and written, switches, faults
    series: Mapping[str, Series]  # over the whole trial, for charts
    second_thread: float | None = None  # its CPU over that of the busiest thread

    @property
    def label(self) -> str:
        """`api uvicorn 4711`, with the replica where there are several."""
        replica = "" if self.replica in ("", "0", "1") else f".{self.replica}"
        return f"{self.service}{replica} {self.name} {self.pid}"

    @property
    def is_lab(self) -> bool:
        """Whether it belongs to Loadlens and not to the service under test."""
        return self.service.startswith("(")


@dataclass(frozen=True, slots=True, eq=False)
class Resources:
    """All that was watched."""

    processes: tuple[Process, ...]
    host_busy: Interval | Insufficient | None  # cores
    steal: float | None  # share of the machine's time
    tick_late_s: float | None  # the monitor's own lateness, worst
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
        known = sum(p.cpu.point for p in self.processes if isinstance(p.cpu, Interval))
        return max(0.0, self.host_busy.point - known)

    @property
    def drivers(self) -> tuple[Process, ...]:
        """Processes of a program that made the load in the generator's place."""
        return tuple(process for process in self.processes if process.service == DRIVER)

    @property
    def services(self) -> tuple[Process, ...]:
        """Processes of the services under test."""
        return tuple(process for process in self.processes if not process.is_lab)


def read(readings: pl.DataFrame, begin: float, end: float, *, is_driven: bool = False) -> Resources:
    """Summarise the readings of a trial over its measured part [begin, end], seconds since t0."""
    if readings.is_empty():
        return Resources((), None, None, None)
    table = series_by_labels(readings, ("proc", "host", "monitor"))
    proc: dict[tuple[str, str, str], dict[str, Series]] = {}
    names: dict[tuple[str, str, str], str] = {}
    threads: dict[str, list[Series]] = {}
    host: dict[str, Series] = {}
    single: dict[int, dict[str, Series]] = {}
    late: float | None = None
    for (source, metric, text), series in table.items():
        labels = json.loads(text) if text else {}
        if source == "proc" and "tid" in labels:
            if metric == "thread_run_s":
                threads.setdefault(str(labels["pid"]), []).append(series)
        elif source == "proc":
            key = (str(labels["service"]), str(labels["replica"]), str(labels["pid"]))
            known = proc.setdefault(key, {})
            known[metric] = _joined(known.get(metric), series)
            names[key] = str(labels["process"])
        elif source == "host" and labels.get("cpu") == "all":
            host[metric] = series
        elif source == "host" and str(labels.get("cpu", "")).isdecimal():
            single.setdefault(int(labels["cpu"]), {})[metric] = series
        elif source == "monitor" and metric == "tick_late_s":
            late = float(series.values.max())
    processes = [
        _process(key, names[key], metrics, threads.get(key[2]), begin, end) for key, metrics in proc.items()
    ]
    busy = _host_busy(host)
    return Resources(
        tuple(sorted(processes, key=lambda p: (p.service, p.replica, len(p.pid), p.pid))),
        None if busy is None else busy.rate(begin, end),
        _steal(host, begin, end),
        late,
        _tick(host),
        is_driven,
        _busy_by_cpu(single, begin, end),
        _soft(host, begin, end),
    )


def _soft(host: Mapping[str, Series], begin: float, end: float) -> float | None:
    found = host["cpu_softirq_s"].rate(begin, end) if "cpu_softirq_s" in host else None
    return found.point if isinstance(found, Interval) else None


def _busy_by_cpu(single: Mapping[int, Mapping[str, Series]], begin: float, end: float) -> dict[int, float]:
    """Those that were read at both edges."""
    found = {}
    for cpu, metrics in single.items():
        busy = _host_busy(metrics)
        rate = None if busy is None else busy.rate(begin, end)
        if isinstance(rate, Interval):
            found[cpu] = rate.point
    return found


def _tick(host: Mapping[str, Series]) -> float:
    """Median seconds between readings; 1 where there are too few."""
    seconds = next((series.seconds for series in host.values()), np.zeros(0))
    return float(np.median(np.diff(seconds))) if seconds.size > 2 else 1.0


def series_by_labels(readings: pl.DataFrame, sources: Sequence[str]) -> dict[tuple[str, str, str], Series]:
    """Every series of some monitors, by source, metric and the text of its labels."""
    import polars as pl

    kept = readings.filter(pl.col("source").is_in(list(sources)) & pl.col("value").is_not_null())
    found: dict[tuple[str, str, str], Series] = {}
    for key, part in kept.sort("time_ns").group_by(["source", "metric", "labels"], maintain_order=True):
        source, metric, text = (str(field) for field in key)
        found[(source, metric, text)] = Series(
            part["time_ns"].to_numpy().astype(np.float64) / 1e9, part["value"].to_numpy().astype(np.float64)
        )
    return found


def _joined(first: Series | None, second: Series) -> Series:
    """Readings of one process under two names (it executed another program), in order of time."""
    if first is None:
        return second
    seconds = np.concatenate([first.seconds, second.seconds])
    order = np.argsort(seconds, kind="stable")
    return Series(seconds[order], np.concatenate([first.values, second.values])[order])


def _process(
    key: tuple[str, str, str],
    name: str,
    metrics: Mapping[str, Series],
    threads: Sequence[Series] | None,
    begin: float,
    end: float,
) -> Process:
    cpu = added([metrics[m] for m in CPU if m in metrics])
    unread = Insufficient("not read")
    system = metrics["cpu_system_s"].rate(begin, end) if "cpu_system_s" in metrics else unread
    peaks = {}
    for metric in CHARTED:
        part = metrics[metric].between(begin, end).values if metric in metrics else np.zeros(0)
        if part.size:
            peaks[metric] = float(part.max())
    rates = {}
    for metric in COUNTED:
        found = metrics[metric].rate(begin, end) if metric in metrics else unread
        if isinstance(found, Interval):
            rates[metric] = found.point
    used = None if threads is None else _used(threads, begin, end)
    return Process(
        service=key[0],
        replica=key[1],
        pid=key[2],
        name=name,
        cpu=unread if cpu is None else cpu.rate(begin, end),
        system=system.point if isinstance(system, Interval) else None,
        waiting=metrics["runq_wait_s"].rate(begin, end) if "runq_wait_s" in metrics else unread,
        hot_threads=None if used is None else sum(one > HOT * (end - begin) for one in used),
        peaks=peaks,
        rates=rates,
        series={
            **{m: s for m, s in metrics.items() if m not in CPU},
            **({} if cpu is None else {"cpu_s": cpu}),
        },
        second_thread=None if used is None else _second(used),
    )


def added(parts: Sequence[Series]) -> Series | None:
    """The sum of series over the moments at which all of them were read; none of none."""
    if not parts:
        return None
    seconds = parts[0].seconds
    for part in parts[1:]:
        seconds = np.intersect1d(seconds, part.seconds)
    values = [part.values[np.searchsorted(part.seconds, seconds)] for part in parts]
    return Series(seconds, np.sum(values, axis=0))


def _used(threads: Sequence[Series], begin: float, end: float) -> list[float]:
    """CPU seconds of each thread, the busiest first; one that did not run has no readings in between."""
    found = []
    for thread in threads:
        last = thread.last_before(end)
        first = thread.last_before(begin)
        found.append((last or 0.0) - (first if first is not None else float(thread.values[0])))
    return sorted(found, reverse=True)


def _second(used: Sequence[float]) -> float | None:
    """What the second busiest used, over what the busiest did; none where nothing ran."""
    if not used or used[0] <= 0:
        return None
    return max(0.0, used[1]) / used[0] if len(used) > 1 else 0.0


def _host_busy(host: Mapping[str, Series]) -> Series | None:
    return added([host[m] for m in ("cpu_user_s", "cpu_system_s", "cpu_softirq_s") if m in host])


def _steal(host: Mapping[str, Series], begin: float, end: float) -> float | None:
    wanted = ("cpu_user_s", "cpu_system_s", "cpu_idle_s", "cpu_iowait_s", "cpu_steal_s", "cpu_softirq_s")
    if "cpu_steal_s" not in host:
        return None
    stolen = host["cpu_steal_s"].rate(begin, end)
    total = added([host[m] for m in wanted if m in host])
    whole = None if total is None else total.rate(begin, end)
    if not isinstance(stolen, Interval) or not isinstance(whole, Interval) or whole.point <= 0:
        return None
    return stolen.point / whole.point
