"""The BEAM from inside: how busy its schedulers are, who waits for one, processes, memory, message queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from loadlens.model.plain import read
from loadlens.model.readings import BeamMetrics
from loadlens.signals.collect.monitor import Row, labels, reading
from loadlens.signals.collect.runtime_samples import Folder, Sample, SampledMonitor, folders
from loadlens.signals.collect.scene import Scene

_PLAIN: Final = {  # key of a sample -> metric
    "busiest": BeamMetrics.scheduler_busiest,
    "run_queue_mean": BeamMetrics.run_queue_mean,
    "run_queue_max": BeamMetrics.run_queue_max,
    "late_max_s": BeamMetrics.wake_late_max_s,
    "processes": BeamMetrics.processes,
    "process_limit": BeamMetrics.process_limit,
    "ports": BeamMetrics.ports,
    "gc_runs": BeamMetrics.gc_runs,
    "gc_reclaimed": BeamMetrics.gc_reclaimed_bytes,
    "reductions": BeamMetrics.reductions,
    "io_in": BeamMetrics.io_in_bytes,
    "io_out": BeamMetrics.io_out_bytes,
    "longest_queue": BeamMetrics.longest_queue,
    "cost_s": BeamMetrics.sampling_s,
}
_MEMORY: Final = ("total", "processes", "system", "atom", "binary", "code", "ets")


@dataclass(frozen=True, slots=True)
class Beams:
    """Settings of the beam monitor."""

    monitor: ClassVar[str] = "beam"
    folders: tuple[Folder, ...]


def wanted(scene: Scene) -> Beams | None:
    """The replicas of services with `runtime: beam`."""
    sampled = folders(scene, "beam")
    return Beams(sampled) if sampled else None


class BeamMonitor(SampledMonitor):
    """The monitor: a series for each emulator."""

    name = "beam"
    settings = Beams

    silent_because = "no emulator took ERL_AFLAGS from its environment, or its sampler could not be compiled"

    def rows(self, sample: Sample) -> Iterator[Row]:
        """All metrics of one sample."""
        return _rows(sample)


@dataclass(frozen=True, slots=True)
class _Content:
    """A line of `testbed/runtimes/loadlens_runtime.erl`."""

    schedulers: Mapping[str, int]  # by kind
    busy_s: Mapping[str, float]
    memory: Mapping[str, int]
    busiest: float
    run_queue_mean: float
    run_queue_max: int
    late_max_s: float
    processes: int
    process_limit: int
    ports: int
    gc_runs: int
    gc_reclaimed: int
    reductions: int
    io_in: int
    io_out: int
    longest_queue: int
    cost_s: float


def _rows(sample: Sample) -> Iterator[Row]:
    content, at = read(_Content, sample.content), sample.time_ns
    own: dict[str, str | int] = {
        "service": sample.folder.service,
        "replica": sample.folder.replica,
        "pid": sample.name,
    }
    text = labels(**own)
    for kind, count in content.schedulers.items():
        yield reading(BeamMetrics.schedulers, labels(**own, kind=kind), count, at)
    for kind, busy_s in content.busy_s.items():
        yield reading(BeamMetrics.schedulers_busy_s, labels(**own, kind=kind), busy_s, at)
    for kind in _MEMORY:
        yield reading(BeamMetrics.memory_bytes, labels(**own, kind=kind), content.memory[kind], at)
    for key, metric in _PLAIN.items():
        yield reading(metric, text, getattr(content, key), at)
