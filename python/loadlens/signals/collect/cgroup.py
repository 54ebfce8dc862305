"""Effects of a service's limits: throttled periods, pressure, memory at its bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from loadlens.machine.cgroups import cpu_quota, memory_bound
from loadlens.model.readings import CgroupMetrics
from loadlens.signals.collect.monitor import Monitor, Row, labels, reading
from loadlens.signals.collect.scene import Scene

_CPU: Final = {"nr_periods": CgroupMetrics.cpu_periods, "nr_throttled": CgroupMetrics.cpu_throttled_periods}
_THROTTLED: Final = {"throttled_usec": 1e6, "throttled_time": 1e9}  # of version 2 and 1, per second
_AT_LIMIT: Final = "max"
_KILLS: Final = "oom_kill"


@dataclass(frozen=True, slots=True)
class Group:
    """A control group of one replica, of version 1 or 2."""

    service: str
    replica: int
    folder: str


@dataclass(frozen=True, slots=True)
class Groups:
    """Settings of the cgroup monitor."""

    monitor: ClassVar[str] = "cgroup"
    groups: tuple[Group, ...]


def wanted(scene: Scene) -> Groups | None:
    """The control groups of the replicas that have limits, each once: some stand around several."""
    by_folder = {
        folder: Group(p.service, p.replica, folder) for p in scene.replicas[::-1] for folder in p.groups
    }
    return Groups(tuple(by_folder.values())[::-1]) if by_folder else None


class CgroupMonitor(Monitor):
    """The monitor. A file that a group does not have yields no row: each controller has files of its own."""

    name = "cgroup"
    settings = Groups

    def __init__(self) -> None:
        self._groups: tuple[tuple[Path, str], ...] = ()

    def open(self, spec: Groups) -> None:
        """Take the groups of the spec."""
        self._groups = tuple(
            (Path(each.folder), labels(service=each.service, replica=each.replica)) for each in spec.groups
        )

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Every metric of every group once."""
        for folder, text in self._groups:
            yield from _cpu(folder, text)
            yield from _memory(folder, text)


def _cpu(folder: Path, text: str) -> Iterator[Row]:
    counts = _counts(folder / "cpu.stat")
    if not _CPU.keys() <= counts.keys():
        return
    for name, metric in _CPU.items():
        yield reading(metric, text, counts[name])
    throttled_s = [counts[name] / per_s for name, per_s in _THROTTLED.items() if name in counts]
    yield reading(CgroupMetrics.cpu_throttled_s, text, throttled_s[0])
    quota, period = cpu_quota(folder)
    if quota:
        yield reading(CgroupMetrics.cpu_quota_cores, text, quota / period)
        yield reading(CgroupMetrics.cpu_period_s, text, period / 1e6)
    pressure = _some_s(folder / "cpu.pressure")
    if pressure is not None:
        yield reading(CgroupMetrics.cpu_pressure_some_s, text, pressure)


def _memory(folder: Path, text: str) -> Iterator[Row]:
    events = _counts(folder / "memory.events")
    used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes")
    at_limit = events.get(_AT_LIMIT, _number(folder / "memory.failcnt"))
    kills = {**_counts(folder / "memory.oom_control"), **events}.get(_KILLS)
    for metric, value in (
        (CgroupMetrics.memory_bytes, used),
        (CgroupMetrics.memory_limit_bytes, memory_bound(folder)),
        (CgroupMetrics.memory_pressure_some_s, _some_s(folder / "memory.pressure")),
        (CgroupMetrics.memory_at_limit, at_limit),
        (CgroupMetrics.oom_kills, kills),
    ):
        if value is not None:
            yield reading(metric, text, value)


def _counts(path: Path) -> dict[str, int]:
    """A file of names and numbers, one a line; empty if the group does not have it."""
    try:
        pairs = (line.split() for line in path.read_text().splitlines())
        return {name: int(count) for name, count in pairs}
    except FileNotFoundError:
        return {}


def _some_s(path: Path) -> float | None:
    """Time in which some waited, of a pressure file; none where the kernel keeps none for groups."""
    try:
        lines = path.read_text().splitlines()
    except OSError:  # also where pressure is turned off
        return None
    totals = [line.rpartition("total=")[2] for line in lines if line.startswith("some ")]
    return int(totals[0]) / 1e6 if totals else None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except FileNotFoundError:
        return None
