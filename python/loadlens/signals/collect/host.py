"""The machine: CPU, load, memory, pressure, TCP, disks, network interfaces."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from loadlens.model.readings import HostMetrics
from loadlens.signals.collect.monitor import NO_LABELS, Row, labels, reading
from loadlens.signals.collect.scene import Scene

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_SECTOR_BYTES = 512  # in /proc/diskstats, whatever the device's own sector size
_CPU_FIELDS = {  # column of /proc/stat
    HostMetrics.cpu_user_s: 1,
    HostMetrics.cpu_system_s: 3,
    HostMetrics.cpu_idle_s: 4,
    HostMetrics.cpu_iowait_s: 5,
    HostMetrics.cpu_softirq_s: 7,
    HostMetrics.cpu_steal_s: 8,
}
_NICE = 2  # counts as user time
_REFAULTS = "workingset_refault"  # one count until 5.8, then one of files and one of the rest
_SIZES = {  # names in /proc/meminfo
    "MemTotal": HostMetrics.memory_total_bytes,
    "MemAvailable": HostMetrics.memory_available_bytes,
}
_SWAPPED_IN = "pswpin"
_PRESSURE = {
    HostMetrics.pressure_cpu_some_s: ("cpu", "some"),
    HostMetrics.pressure_io_some_s: ("io", "some"),
    HostMetrics.pressure_io_full_s: ("io", "full"),
    HostMetrics.pressure_memory_some_s: ("memory", "some"),
}
_TCP = {  # group and name in /proc/net/netstat and /proc/net/snmp
    HostMetrics.tcp_listen_overflows: ("TcpExt", "ListenOverflows"),
    HostMetrics.tcp_listen_drops: ("TcpExt", "ListenDrops"),
    HostMetrics.tcp_retransmits: ("Tcp", "RetransSegs"),
    HostMetrics.tcp_established: ("Tcp", "CurrEstab"),
}


@dataclass(frozen=True, slots=True)
class Host:
    """Settings of the host monitor: none."""

    monitor: ClassVar[str] = "host"


def wanted(scene: Scene) -> Host:
    """The machine is always watched."""
    return Host()


class HostMonitor:
    """The monitor. A file that the kernel does not offer yields rows without a value."""

    name = "host"
    settings = Host

    def __init__(self, proc: str = "/proc", sys: str = "/sys") -> None:
        self._root = proc
        self._devices = f"{sys}/block"

    def open(self, spec: Host) -> None:
        """Nothing to take."""

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Every metric once."""
        yield from self._cpu()
        yield from self._memory()
        yield from self._pressures()
        yield from self._tcp()
        yield from self._disks()
        yield from self._interfaces()

    def close(self) -> None:
        """Nothing is kept open."""

    def _lines(self, name: str) -> list[str]:
        try:
            with open(f"{self._root}/{name}", encoding="utf-8") as file:
                return file.read().splitlines()
        except OSError:
            return []

    def _cpu(self) -> Iterator[Row]:
        for line in self._lines("stat"):
            fields = line.split()
            if not fields[0].startswith("cpu"):
                break  # the CPUs come first, then a long line of interrupts
            text = labels(cpu=fields[0][3:] or "all")
            for metric, column in _CPU_FIELDS.items():
                ticks = int(fields[column]) + (int(fields[_NICE]) if metric is HostMetrics.cpu_user_s else 0)
                yield reading(metric, text, round(ticks * _TICK_S, 6))

    def _memory(self) -> Iterator[Row]:
        load = self._lines("loadavg")
        yield reading(HostMetrics.load1, NO_LABELS, float(load[0].split()[0]) if load else None)
        sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in self._lines("meminfo")}
        for name, metric in _SIZES.items():
            yield reading(metric, NO_LABELS, sizes.get(name))
        pages = {name: int(count) for name, count in map(str.split, self._lines("vmstat"))}
        again = [count for name, count in pages.items() if name.startswith(_REFAULTS)]
        yield reading(HostMetrics.memory_refaults, NO_LABELS, sum(again) if again else None)
        yield reading(HostMetrics.memory_swapped_in, NO_LABELS, pages.get(_SWAPPED_IN))

    def _pressures(self) -> Iterator[Row]:
        totals: dict[tuple[str, str], float] = {}
        for resource in ("cpu", "io", "memory"):
            for line in self._lines(f"pressure/{resource}"):
                kind, *_, total = line.split()
                totals[resource, kind] = int(total.removeprefix("total=")) / 1e6
        for metric, key in _PRESSURE.items():
            yield reading(metric, NO_LABELS, totals.get(key))

    def _tcp(self) -> Iterator[Row]:
        counts = paired(self._lines("net/snmp")) | paired(self._lines("net/netstat"))
        for metric, key in _TCP.items():
            yield reading(metric, NO_LABELS, counts.get(key))
        waiting: int | None = None
        for line in self._lines("net/sockstat"):
            if line.startswith("TCP:"):
                fields = line.split()
                waiting = int(fields[fields.index("tw") + 1])
        yield reading(HostMetrics.tcp_time_wait, NO_LABELS, waiting)

    def _disks(self) -> Iterator[Row]:
        for line in self._lines("diskstats"):
            fields = line.split()
            device = fields[2]
            if device.startswith(("loop", "ram")) or not os.path.exists(f"{self._devices}/{device}"):
                continue  # partitions would count everything twice
            text = labels(device=device)
            yield reading(HostMetrics.disk_read_bytes, text, int(fields[5]) * _SECTOR_BYTES)
            yield reading(HostMetrics.disk_write_bytes, text, int(fields[9]) * _SECTOR_BYTES)
            yield reading(HostMetrics.disk_busy_s, text, int(fields[12]) / 1e3)

    def _interfaces(self) -> Iterator[Row]:
        for line in self._lines("net/dev")[2:]:
            interface, _, rest = line.partition(":")
            fields = rest.split()
            text = labels(interface=interface.strip())
            yield reading(HostMetrics.net_received_bytes, text, int(fields[0]))
            yield reading(HostMetrics.net_sent_bytes, text, int(fields[8]))


def paired(lines: list[str]) -> dict[tuple[str, str], int]:
    """Counters of files in which a line of names is followed by a line of values."""
    counts: dict[tuple[str, str], int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        group, _, rest = names.partition(":")
        for name, value in zip(rest.split(), values.partition(":")[2].split(), strict=False):
            counts[group, name] = int(value)
    return counts
