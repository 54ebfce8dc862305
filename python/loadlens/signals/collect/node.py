"""Node from inside: how late its event loop is, how busy, what its collector stops it for, its heap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from loadlens.model.plain import read
from loadlens.model.readings import NodeMetrics
from loadlens.signals.collect.monitor import Row, labels, reading
from loadlens.signals.collect.runtime_samples import Folder, Sample, SampledMonitor, folders
from loadlens.signals.collect.scene import Scene

_MOST_CLASSES = 100  # ten a decade


@dataclass(frozen=True, slots=True)
class Nodes:
    """Settings of the node monitor."""

    monitor: ClassVar[str] = "node"
    folders: tuple[Folder, ...]


def wanted(scene: Scene) -> Nodes | None:
    """The replicas of services with `runtime: node`."""
    sampled = folders(scene, "node")
    return Nodes(sampled) if sampled else None


class NodeMonitor(SampledMonitor):
    """The monitor: a series for each process, and for each worker thread in it."""

    name = "node"
    settings = Nodes

    silent_because = "no process took NODE_OPTIONS from its environment, or none is Node"

    def rows(self, sample: Sample) -> Iterator[Row]:
        """All metrics of one sample."""
        return _rows(sample)


@dataclass(frozen=True, slots=True)
class _Collections:
    """Collections of one kind since the sampler began."""

    count: int
    ms: float


@dataclass(frozen=True, slots=True)
class _Content:
    """A line of `testbed/runtimes/node.cjs`."""

    active_ms: float
    idle_ms: float
    lag_counts: Mapping[str, int]  # by class
    a_decade: int  # classes
    lag_sum_ms: float
    lag_max_ms: float
    gc: Mapping[str, _Collections]
    gc_longest_ms: float
    heap_used: int
    heap_limit: int
    external: int
    held: Mapping[str, int]
    cost_ms: float


def _rows(sample: Sample) -> Iterator[Row]:
    content, at = read(_Content, sample.content), sample.time_ns
    pid, _, thread = sample.name.partition("-")
    own: dict[str, str | int] = {
        "service": sample.folder.service,
        "replica": sample.folder.replica,
        "pid": pid,
        "thread": thread,
    }
    text = labels(**own)
    yield reading(NodeMetrics.loop_active_s, text, _seconds(content.active_ms), at)
    yield reading(NodeMetrics.loop_idle_s, text, _seconds(content.idle_ms), at)
    for group, count in content.lag_counts.items():
        low, high = _bounds(int(group), content.a_decade)
        yield reading(
            NodeMetrics.loop_lag_counts, labels(**own, from_s=f"{low:.3g}", to_s=f"{high:.3g}"), count, at
        )
    yield reading(NodeMetrics.loop_lag_sum_s, text, _seconds(content.lag_sum_ms), at)
    yield reading(NodeMetrics.loop_lag_max_s, text, _seconds(content.lag_max_ms), at)
    for kind, sums in content.gc.items():
        yield reading(NodeMetrics.gc_pauses, labels(**own, kind=kind), sums.count, at)
        yield reading(NodeMetrics.gc_s, labels(**own, kind=kind), _seconds(sums.ms), at)
    yield reading(NodeMetrics.gc_longest_s, text, _seconds(content.gc_longest_ms), at)
    yield reading(NodeMetrics.heap_used_bytes, text, content.heap_used, at)
    yield reading(NodeMetrics.heap_limit_bytes, text, content.heap_limit, at)
    yield reading(NodeMetrics.external_bytes, text, content.external, at)
    for kind, count in content.held.items():
        yield reading(NodeMetrics.held, labels(**own, kind=kind), count, at)
    yield reading(NodeMetrics.sampling_s, text, _seconds(content.cost_ms), at)


def _seconds(milliseconds: float) -> float:
    return round(milliseconds / 1e3, 9)


def _bounds(group: int, a_decade: int) -> tuple[float, float]:
    """The lags in seconds that a class holds: the first up to 1 ms, then so many a decade."""
    group = min(group, _MOST_CLASSES)
    if group == 0:
        return 0.0, 1e-3
    return 1e-3 * 10 ** ((group - 1) / a_decade), 1e-3 * 10 ** (group / a_decade)
