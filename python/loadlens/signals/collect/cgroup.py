"""What the limits of a service did to it: throttled periods, pressure, memory at its bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from loadlens.machine.cgroups import cpu_quota, memory_bound
from loadlens.signals.collect.monitor import Metric, Row, labels
from loadlens.signals.collect.scene import Scene

METRICS: Final = (
    Metric("cpu_periods", "", "counter", "quota periods in which the replica wanted to run"),
    Metric(
        "cpu_throttled_periods",
        "",
        "counter",
        "of these, those in which it used its quota up and had to wait",
    ),
    Metric("cpu_throttled_s", "s", "counter", "time that its CPUs were held back, summed over CPUs"),
    Metric("cpu_quota_cores", "", "gauge", "cores that it may use: its quota over the period"),
    Metric("cpu_period_s", "s", "gauge", "the period of the quota"),
    Metric(
        "cpu_pressure_some_s",
        "s",
        "counter",
        "time in which at least one of its threads wanted a CPU and had none; version 2 only",
    ),
    Metric("memory_bytes", "bytes", "gauge", "memory charged to the replica"),
    Metric("memory_limit_bytes", "bytes", "gauge", "memory that it may have, pages of files included"),
    Metric(
        "memory_pressure_some_s",
        "s",
        "counter",
        "time in which at least one of its threads waited for memory; version 2 only",
    ),
    Metric("memory_at_limit", "", "counter", "how often it met its bound"),
    Metric("oom_kills", "", "counter", "processes that the kernel killed for it"),
)


@dataclass(frozen=True, slots=True)
class Group:
    """A control group of one replica, of version 1 or 2."""

    service: str
    replica: int
    folder: str


@dataclass(frozen=True, slots=True)
class Groups:
    """What the cgroup monitor is asked for."""

    monitor: ClassVar[str] = "cgroup"
    groups: tuple[Group, ...]


def wanted(scene: Scene) -> Groups | None:
    """The control groups of the replicas that have limits, each once: some stand around several."""
    found = {folder: Group(p.service, p.replica, folder) for p in scene.replicas[::-1] for folder in p.groups}
    return Groups(tuple(found.values())[::-1]) if found else None


class CgroupMonitor:
    """The monitor. A file that a group does not have yields no row: each controller has files of its own."""

    name = "cgroup"

    def __init__(self) -> None:
        self._groups: tuple[tuple[Path, str], ...] = ()

    def open(self, spec: Mapping[str, Any]) -> None:
        """Take the groups of the spec."""
        groups = (Group(**group) for group in spec["groups"])
        self._groups = tuple(
            (Path(group.folder), labels(service=group.service, replica=group.replica)) for group in groups
        )

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Every metric of every group once."""
        for folder, text in self._groups:
            yield from _cpu(folder, text)
            yield from _memory(folder, text)

    def close(self) -> None:
        """Nothing is kept open."""


def _cpu(folder: Path, text: str) -> Iterator[Row]:
    counts = _counts(folder / "cpu.stat")
    if "nr_periods" not in counts:
        return
    throttled_s = (
        counts["throttled_usec"] / 1e6 if "throttled_usec" in counts else counts["throttled_time"] / 1e9
    )
    yield Row("cpu_periods", text, "", counts["nr_periods"])
    yield Row("cpu_throttled_periods", text, "", counts["nr_throttled"])
    yield Row("cpu_throttled_s", text, "s", throttled_s)
    quota, period = cpu_quota(folder)
    if quota:
        yield Row("cpu_quota_cores", text, "", quota / period)
        yield Row("cpu_period_s", text, "s", period / 1e6)
    pressure = _some_s(folder / "cpu.pressure")
    if pressure is not None:
        yield Row("cpu_pressure_some_s", text, "s", pressure)


def _memory(folder: Path, text: str) -> Iterator[Row]:
    events, control = _counts(folder / "memory.events"), _counts(folder / "memory.oom_control")
    used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes")
    at_limit = events.get("max", _number(folder / "memory.failcnt"))
    kills = events.get("oom_kill", control.get("oom_kill"))
    for metric, unit, value in (
        ("memory_bytes", "bytes", used),
        ("memory_limit_bytes", "bytes", memory_bound(folder)),
        ("memory_pressure_some_s", "s", _some_s(folder / "memory.pressure")),
        ("memory_at_limit", "", at_limit),
        ("oom_kills", "", kills),
    ):
        if value is not None:
            yield Row(metric, text, unit, value)


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
