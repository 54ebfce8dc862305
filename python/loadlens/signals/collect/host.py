"""The machine: CPU, load, memory, pressure, TCP, disks, network interfaces."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from loadlens.signals.collect.monitor import NO_LABELS, Metric, Row, labels
from loadlens.signals.collect.scene import Scene

METRICS: Final = (
    Metric(
        "cpu_user_s", "s", "counter", "CPU time of programs by `cpu` (`all`, `0` …), nice included", "stat"
    ),
    Metric("cpu_system_s", "s", "counter", "CPU time of the kernel for them, by `cpu`", "stat"),
    Metric("cpu_idle_s", "s", "counter", "time without anything to do, by `cpu`", "stat"),
    Metric("cpu_iowait_s", "s", "counter", "idle while a request to storage was under way, by `cpu`", "stat"),
    Metric("cpu_softirq_s", "s", "counter", "soft interrupts, of the network above all, by `cpu`", "stat"),
    Metric("cpu_steal_s", "s", "counter", "what the hypervisor gave to others, by `cpu`", "stat"),
    Metric("load1", "", "gauge", "load average over a minute", "loadavg"),
    Metric("memory_total_bytes", "bytes", "gauge", "what the kernel may give", "meminfo"),
    Metric("memory_available_bytes", "bytes", "gauge", "what can be had without swapping", "meminfo"),
    Metric(
        "memory_refaults",
        "pages",
        "counter",
        "pages that were read again after they had been dropped for want of room",
        "vmstat",
    ),
    Metric("memory_swapped_in", "pages", "counter", "pages that came back from swap", "vmstat"),
    Metric("pressure_cpu_some_s", "s", "counter", "time in which some task waited for a CPU", "pressure/cpu"),
    Metric("pressure_io_some_s", "s", "counter", "time in which some task waited for storage", "pressure/io"),
    Metric("pressure_io_full_s", "s", "counter", "time in which all of them did", "pressure/io"),
    Metric(
        "pressure_memory_some_s",
        "s",
        "counter",
        "time in which some task waited for memory",
        "pressure/memory",
    ),
    Metric("tcp_listen_overflows", "", "counter", "connections that met a full accept queue", "net/netstat"),
    Metric("tcp_listen_drops", "", "counter", "all that were dropped at a listener", "net/netstat"),
    Metric("tcp_retransmits", "", "counter", "segments sent again", "net/snmp"),
    Metric("tcp_established", "", "gauge", "connections that stand", "net/snmp"),
    Metric("tcp_time_wait", "", "gauge", "connections in TIME_WAIT", "net/sockstat"),
    Metric(
        "disk_read_bytes",
        "bytes",
        "counter",
        "read, by whole `device`; no partitions, no loop devices",
        "diskstats",
    ),
    Metric("disk_write_bytes", "bytes", "counter", "written, by `device`", "diskstats"),
    Metric(
        "disk_busy_s", "s", "counter", "time with at least one request under way, by `device`", "diskstats"
    ),
    Metric(
        "net_received_bytes", "bytes", "counter", "received, by `interface`, loopback included", "net/dev"
    ),
    Metric("net_sent_bytes", "bytes", "counter", "sent, by `interface`", "net/dev"),
)
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_SECTOR_BYTES = 512  # in /proc/diskstats, whatever the device's own sector size
_CPU_FIELDS = {  # column of /proc/stat
    "cpu_user_s": 1,
    "cpu_system_s": 3,
    "cpu_idle_s": 4,
    "cpu_iowait_s": 5,
    "cpu_softirq_s": 7,
    "cpu_steal_s": 8,
}
_NICE = 2  # counts as user time
_REFAULTS = "workingset_refault"  # one count until 5.8, then one of files and one of the rest
_PRESSURE = {
    "pressure_cpu_some_s": ("cpu", "some"),
    "pressure_io_some_s": ("io", "some"),
    "pressure_io_full_s": ("io", "full"),
    "pressure_memory_some_s": ("memory", "some"),
}
_TCP = {  # group and name in /proc/net/netstat and /proc/net/snmp
    "tcp_listen_overflows": ("TcpExt", "ListenOverflows"),
    "tcp_listen_drops": ("TcpExt", "ListenDrops"),
    "tcp_retransmits": ("Tcp", "RetransSegs"),
    "tcp_established": ("Tcp", "CurrEstab"),
}


@dataclass(frozen=True, slots=True)
class Host:
    """What the host monitor is asked for: there is nothing to choose."""

    monitor: ClassVar[str] = "host"


def wanted(scene: Scene) -> Host:
    """The machine is always watched."""
    return Host()


class HostMonitor:
    """The monitor. A file that the kernel does not offer yields rows without a value."""

    name = "host"

    def __init__(self, proc: str = "/proc", sys: str = "/sys") -> None:
        self._root = proc
        self._devices = f"{sys}/block"

    def open(self, spec: Mapping[str, Any]) -> None:
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
                ticks = int(fields[column]) + (int(fields[_NICE]) if metric == "cpu_user_s" else 0)
                yield Row(metric, text, "s", round(ticks * _TICK_S, 6))

    def _memory(self) -> Iterator[Row]:
        load = self._lines("loadavg")
        yield Row("load1", NO_LABELS, "", float(load[0].split()[0]) if load else None)
        sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in self._lines("meminfo")}
        yield Row("memory_total_bytes", NO_LABELS, "bytes", sizes.get("MemTotal"))
        yield Row("memory_available_bytes", NO_LABELS, "bytes", sizes.get("MemAvailable"))
        pages = {name: int(count) for name, count in map(str.split, self._lines("vmstat"))}
        again = [count for name, count in pages.items() if name.startswith(_REFAULTS)]
        yield Row("memory_refaults", NO_LABELS, "pages", sum(again) if again else None)
        yield Row("memory_swapped_in", NO_LABELS, "pages", pages.get("pswpin"))

    def _pressures(self) -> Iterator[Row]:
        totals: dict[tuple[str, str], float] = {}
        for resource in ("cpu", "io", "memory"):
            for line in self._lines(f"pressure/{resource}"):
                kind, *_, total = line.split()
                totals[resource, kind] = int(total.removeprefix("total=")) / 1e6
        for metric, key in _PRESSURE.items():
            yield Row(metric, NO_LABELS, "s", totals.get(key))

    def _tcp(self) -> Iterator[Row]:
        counts = paired(self._lines("net/snmp")) | paired(self._lines("net/netstat"))
        for metric, key in _TCP.items():
            yield Row(metric, NO_LABELS, "", counts.get(key))
        waiting: int | None = None
        for line in self._lines("net/sockstat"):
            if line.startswith("TCP:"):
                fields = line.split()
                waiting = int(fields[fields.index("tw") + 1])
        yield Row("tcp_time_wait", NO_LABELS, "", waiting)

    def _disks(self) -> Iterator[Row]:
        for line in self._lines("diskstats"):
            fields = line.split()
            device = fields[2]
            if device.startswith(("loop", "ram")) or not os.path.exists(f"{self._devices}/{device}"):
                continue  # partitions would count everything twice
            text = labels(device=device)
            yield Row("disk_read_bytes", text, "bytes", int(fields[5]) * _SECTOR_BYTES)
            yield Row("disk_write_bytes", text, "bytes", int(fields[9]) * _SECTOR_BYTES)
            yield Row("disk_busy_s", text, "s", int(fields[12]) / 1e3)

    def _interfaces(self) -> Iterator[Row]:
        for line in self._lines("net/dev")[2:]:
            interface, _, rest = line.partition(":")
            fields = rest.split()
            text = labels(interface=interface.strip())
            yield Row("net_received_bytes", text, "bytes", int(fields[0]))
            yield Row("net_sent_bytes", text, "bytes", int(fields[8]))


def paired(lines: list[str]) -> dict[tuple[str, str], int]:
    """Counters of files in which a line of names is followed by a line of values."""
    counts: dict[tuple[str, str], int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        group, _, rest = names.partition(":")
        for name, value in zip(rest.split(), values.partition(":")[2].split(), strict=False):
            counts[group, name] = int(value)
    return counts
