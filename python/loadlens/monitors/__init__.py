"""What the services and the machine do while they are under load, read in a process of its own.

To add a monitor: one file with the monitor and its spec, one line in MONITORS, one fixture, one page in
docs/reference/monitors.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from loadlens.monitors.launch import MonitorProcess, MonitorSpec, Source, start

if TYPE_CHECKING:
    from loadlens.monitors.reading import Monitor

MONITORS = {  # names only: a monitor that is not asked for is not imported
    "proc": "loadlens.monitors.proc:ProcMonitor",
    "host": "loadlens.monitors.host:HostMonitor",
    "cgroup": "loadlens.monitors.cgroup:CgroupMonitor",
    "scrape": "loadlens.monitors.scrape:ScrapeMonitor",
    "server_times": "loadlens.monitors.server_times:ServerTimesMonitor",
}


def make(name: str) -> Monitor:
    """A new monitor of this name. Raises KeyError if there is none."""
    module, _, attribute = MONITORS[name].partition(":")
    monitor: Monitor = getattr(importlib.import_module(module), attribute)()
    return monitor


__all__ = ["MONITORS", "MonitorProcess", "MonitorSpec", "Source", "make", "start"]
