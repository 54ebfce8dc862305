"""The BEAM from inside: how busy its schedulers are, who waits for one, processes, memory, message queues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from loadlens.signals.collect.monitor import Metric, Row, labels
from loadlens.signals.collect.runtime_samples import Folder, Sample, SampledMonitor, folders
from loadlens.signals.collect.scene import Scene

METRICS: Final = (
    Metric("schedulers", "", "gauge", "schedulers online, by `kind`: normal, dirty_cpu, dirty_io"),
    Metric(
        "schedulers_busy_s",
        "s",
        "counter",
        "time in which they ran something, added up; spinning is not busy",
    ),
    Metric(
        "scheduler_busiest", "share", "gauge", "of the time since the sample before: the busiest normal one"
    ),
    Metric(
        "run_queue_mean", "", "gauge", "processes and ports that were ready and waited: mean of ten looks"
    ),
    Metric("run_queue_max", "", "gauge", "the most of the ten"),
    Metric(
        "wake_late_max_s",
        "s",
        "gauge",
        "the worst of ten times that a process woke later than it had asked for",
    ),
    Metric("processes", "", "gauge", "Erlang processes"),
    Metric("process_limit", "", "gauge", "how many there may be"),
    Metric("ports", "", "gauge", "sockets, files and programs that it holds open through ports"),
    Metric(
        "memory_bytes",
        "bytes",
        "gauge",
        "by `kind`: total is processes and system; atom, binary, code and ets are parts of system",
    ),
    Metric("gc_runs", "", "counter", "collections of single processes' heaps"),
    Metric("gc_reclaimed_bytes", "bytes", "counter", "what they freed"),
    Metric("reductions", "", "counter", "work done, in the emulator's own unit"),
    Metric("io_in_bytes", "bytes", "counter", "received through ports"),
    Metric("io_out_bytes", "bytes", "counter", "sent through ports"),
    Metric("longest_queue", "", "gauge", "messages in the longest queue of a process"),
    Metric("sampling_s", "s", "counter", "time from the beginning to the end of each sampling, added up"),
)
_PLAIN: Final = {  # key of a sample -> metric and unit
    "busiest": ("scheduler_busiest", "share"),
    "run_queue_mean": ("run_queue_mean", ""),
    "run_queue_max": ("run_queue_max", ""),
    "late_max_s": ("wake_late_max_s", "s"),
    "processes": ("processes", ""),
    "process_limit": ("process_limit", ""),
    "ports": ("ports", ""),
    "gc_runs": ("gc_runs", ""),
    "gc_reclaimed": ("gc_reclaimed_bytes", "bytes"),
    "reductions": ("reductions", ""),
    "io_in": ("io_in_bytes", "bytes"),
    "io_out": ("io_out_bytes", "bytes"),
    "longest_queue": ("longest_queue", ""),
    "cost_s": ("sampling_s", "s"),
}
_MEMORY: Final = ("total", "processes", "system", "atom", "binary", "code", "ets")


@dataclass(frozen=True, slots=True)
class Beams:
    """What the beam monitor is asked for."""

    monitor: ClassVar[str] = "beam"
    folders: tuple[Folder, ...]


def wanted(scene: Scene) -> Beams | None:
    """The replicas of services with `runtime: beam`."""
    found = folders(scene, "beam")
    return Beams(found) if found else None


class BeamMonitor(SampledMonitor):
    """The monitor: a series for each emulator."""

    name = "beam"

    silent_because = "no emulator took ERL_AFLAGS from its environment, or its sampler could not be compiled"

    def rows(self, sample: Sample) -> Iterator[Row]:
        """All metrics of one sample."""
        return _rows(sample)


def _rows(sample: Sample) -> Iterator[Row]:
    content, at = sample.content, sample.time_ns
    own: dict[str, str | int] = {
        "service": sample.folder.service,
        "replica": sample.folder.replica,
        "pid": sample.name,
    }
    text = labels(**own)
    for kind, count in content["schedulers"].items():
        yield Row("schedulers", labels(**own, kind=kind), "", count, at)
    for kind, busy_s in content["busy_s"].items():
        yield Row("schedulers_busy_s", labels(**own, kind=kind), "s", busy_s, at)
    for kind in _MEMORY:
        yield Row("memory_bytes", labels(**own, kind=kind), "bytes", content["memory"][kind], at)
    for key, (metric, unit) in _PLAIN.items():
        yield Row(metric, text, unit, content[key], at)
