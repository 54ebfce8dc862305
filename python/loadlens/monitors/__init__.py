"""What the services and the machine do while they are under load, read in a process of its own.

To add a monitor: one file with the monitor, its spec and `wanted(scene)`, one line in MONITORS, one test, one
page in docs/reference/monitors. CONTRIBUTING.md walks through it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from loadlens.monitors.launch import MonitorProcess, MonitorSpec, Source, start
from loadlens.monitors.scene import Running, Scene

if TYPE_CHECKING:
    from loadlens.monitors.reading import Monitor

MONITORS = {  # names only: a monitor that is not asked for is not imported
    "proc": "loadlens.monitors.proc:ProcMonitor",
    "host": "loadlens.monitors.host:HostMonitor",
    "cgroup": "loadlens.monitors.cgroup:CgroupMonitor",
    "scrape": "loadlens.monitors.scrape:ScrapeMonitor",
    "server_times": "loadlens.monitors.server_times:ServerTimesMonitor",
    "balancer": "loadlens.monitors.balancer:BalancerMonitor",
    "postgres": "loadlens.monitors.postgres:PostgresMonitor",
    "node": "loadlens.monitors.node:NodeMonitor",
    "beam": "loadlens.monitors.beam:BeamMonitor",
    "tcp": "loadlens.monitors.tcp:TcpMonitor",
}


def spec_of(scene: Scene, *, marker: str | None = None, every_s: float = 1.0) -> MonitorSpec:
    """What every monitor is asked for in this testbed; one that finds nothing to watch is left out."""
    sources = [importlib.import_module(place.partition(":")[0]).wanted(scene) for place in MONITORS.values()]
    wanted = tuple(source for source in sources if source is not None)
    return MonitorSpec(wanted, interval_s=every_s, marker=marker)


def make(name: str) -> Monitor:
    """A new monitor of this name. Raises KeyError if there is none."""
    module, _, attribute = MONITORS[name].partition(":")
    monitor: Monitor = getattr(importlib.import_module(module), attribute)()
    return monitor


__all__ = [
    "MONITORS",
    "MonitorProcess",
    "MonitorSpec",
    "Running",
    "Scene",
    "Source",
    "make",
    "spec_of",
    "start",
]
