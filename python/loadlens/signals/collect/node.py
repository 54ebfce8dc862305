"""Node from inside: how late its event loop is, how busy, what its collector stops it for, its heap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from loadlens.signals.collect.monitor import Metric, Row, labels
from loadlens.signals.collect.runtime_samples import Folder, Sample, SampledMonitor, folders
from loadlens.signals.collect.scene import Scene

METRICS: Final = (
    Metric("loop_active_s", "s", "counter", "time in which the event loop did something"),
    Metric("loop_idle_s", "s", "counter", "time in which it waited for something to do"),
    Metric(
        "loop_lag_counts",
        "",
        "counter",
        "moments, one each 20 ms, at which a timer was late by at least `from_s` and less than `to_s`",
    ),
    Metric("loop_lag_sum_s", "s", "counter", "lateness of all these moments added up"),
    Metric("loop_lag_max_s", "s", "gauge", "the worst since the sample before"),
    Metric("gc_pauses", "", "counter", "runs of the collector, by `kind`"),
    Metric("gc_s", "s", "counter", "time in them"),
    Metric("gc_longest_s", "s", "gauge", "the longest since the sample before"),
    Metric("heap_used_bytes", "bytes", "gauge", "JavaScript heap in use"),
    Metric("heap_limit_bytes", "bytes", "gauge", "where the process would die"),
    Metric("external_bytes", "bytes", "gauge", "buffers outside the heap that the collector knows of"),
    Metric("held", "", "gauge", "what keeps the loop alive, by `kind`: sockets, timers, requests under way"),
    Metric("sampling_s", "s", "counter", "time that the sampling took on this loop"),
)
_MOST_CLASSES = 100  # ten a decade


@dataclass(frozen=True, slots=True)
class Nodes:
    """What the node monitor is asked for."""

    monitor: ClassVar[str] = "node"
    folders: tuple[Folder, ...]


def wanted(scene: Scene) -> Nodes | None:
    """The replicas of services with `runtime: node`."""
    found = folders(scene, "node")
    return Nodes(found) if found else None


class NodeMonitor(SampledMonitor):
    """The monitor: a series for each process, and for each worker thread in it."""

    name = "node"

    silent_because = "no process took NODE_OPTIONS from its environment, or none is Node"

    def rows(self, sample: Sample) -> Iterator[Row]:
        """All metrics of one sample."""
        return _rows(sample)


def _rows(sample: Sample) -> Iterator[Row]:
    content, at = sample.content, sample.time_ns
    pid, _, thread = sample.name.partition("-")
    own: dict[str, str | int] = {
        "service": sample.folder.service,
        "replica": sample.folder.replica,
        "pid": pid,
        "thread": thread,
    }
    text = labels(**own)
    yield Row("loop_active_s", text, "s", _seconds(content["active_ms"]), at)
    yield Row("loop_idle_s", text, "s", _seconds(content["idle_ms"]), at)
    for group, count in content["lag_counts"].items():
        low, high = _bounds(int(group), int(content["a_decade"]))
        yield Row("loop_lag_counts", labels(**own, from_s=f"{low:.3g}", to_s=f"{high:.3g}"), "", count, at)
    yield Row("loop_lag_sum_s", text, "s", _seconds(content["lag_sum_ms"]), at)
    yield Row("loop_lag_max_s", text, "s", _seconds(content["lag_max_ms"]), at)
    for kind, sums in content["gc"].items():
        yield Row("gc_pauses", labels(**own, kind=kind), "", sums["count"], at)
        yield Row("gc_s", labels(**own, kind=kind), "s", _seconds(sums["ms"]), at)
    yield Row("gc_longest_s", text, "s", _seconds(content["gc_longest_ms"]), at)
    yield Row("heap_used_bytes", text, "bytes", content["heap_used"], at)
    yield Row("heap_limit_bytes", text, "bytes", content["heap_limit"], at)
    yield Row("external_bytes", text, "bytes", content["external"], at)
    for kind, count in content["held"].items():
        yield Row("held", labels(**own, kind=kind), "", count, at)
    yield Row("sampling_s", text, "s", _seconds(content["cost_ms"]), at)


def _seconds(milliseconds: float) -> float:
    return round(milliseconds / 1e3, 9)


def _bounds(group: int, a_decade: int) -> tuple[float, float]:
    """The lags in seconds that a class holds: the first up to 1 ms, then so many a decade."""
    group = min(group, _MOST_CLASSES)
    if group == 0:
        return 0.0, 1e-3
    return 1e-3 * 10 ** ((group - 1) / a_decade), 1e-3 * 10 ** (group / a_decade)
