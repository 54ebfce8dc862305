"""The machine: CPU, load, memory, pressure, TCP, disks, network interfaces."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from loadlens.model.readings import HostMetrics
from loadlens.signals.collect import kernel_numbers
from loadlens.signals.collect.monitor import NO_LABELS, Monitor, Row, labels, reading
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


@dataclass(frozen=True, slots=True)
class Host:
    """Settings of the host monitor: none."""

    monitor: ClassVar[str] = "host"


def wanted(scene: Scene) -> Host:
    """The machine is always watched."""
    return Host()


class HostMonitor(Monitor):
    """The monitor. A file that the kernel does not offer yields rows without a value."""

    name = "host"
    settings = Host

    def __init__(self, proc: str = "/proc", sys: str = "/sys") -> None:
        self._root = proc
        self._devices = f"{sys}/block"

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Every metric once."""
        yield from self._cpu()
        yield from kernel_numbers.rows(self.name, self._root)
        yield from self._others()
        yield from self._disks()
        yield from self._interfaces()

    def _lines(self, name: str) -> list[str]:
        return kernel_numbers.lines_of(f"{self._root}/{name}")

    def _cpu(self) -> Iterator[Row]:
        for line in self._lines("stat"):
            fields = line.split()
            if not fields[0].startswith("cpu"):
                break  # the CPUs come first, then a long line of interrupts
            text = labels(cpu=fields[0][3:] or "all")
            for metric, column in _CPU_FIELDS.items():
                ticks = int(fields[column]) + (int(fields[_NICE]) if metric is HostMetrics.cpu_user_s else 0)
                yield reading(metric, text, round(ticks * _TICK_S, 6))

    def _others(self) -> Iterator[Row]:
        load = self._lines("loadavg")
        yield reading(HostMetrics.load1, NO_LABELS, float(load[0].split()[0]) if load else None)
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
