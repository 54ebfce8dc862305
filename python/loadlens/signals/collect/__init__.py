"""Monitors of the services and the machine, run in a process of their own while there is load.

To add a monitor: one file with the monitor, its spec and `wanted(scene)`, one line in MONITORS, one test, one
page in docs/reference/monitors. CONTRIBUTING.md walks through it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from loadlens.signals.collect.launch import MonitorProcess, MonitorSpec, Source, start
from loadlens.signals.collect.scene import Running, Scene

if TYPE_CHECKING:
    from loadlens.signals.collect.monitor import Monitor

STACKS = "loadlens.signals.collect.stacks:StacksMonitor"  # alone in trials of its own
MONITORS = {  # names only: a monitor that is not asked for is not imported
    "proc": "loadlens.signals.collect.proc:ProcMonitor",
    "host": "loadlens.signals.collect.host:HostMonitor",
    "cgroup": "loadlens.signals.collect.cgroup:CgroupMonitor",
    "scrape": "loadlens.signals.collect.scrape:ScrapeMonitor",
    "server_times": "loadlens.signals.collect.server_times:ServerTimesMonitor",
    "balancer": "loadlens.signals.collect.balancer:BalancerMonitor",
    "postgres": "loadlens.signals.collect.postgres:PostgresMonitor",
    "backends": "loadlens.signals.collect.backends:BackendsMonitor",
    "node": "loadlens.signals.collect.node:NodeMonitor",
    "beam": "loadlens.signals.collect.beam:BeamMonitor",
    "jvm": "loadlens.signals.collect.jvm:JvmMonitor",
    "tcp": "loadlens.signals.collect.tcp:TcpMonitor",
    "stacks": STACKS,
    "otlp": "loadlens.signals.collect.otlp:OtlpMonitor",  # last: it waits for what is on its way
}


def spec_of(scene: Scene, *, marker: str | None = None, every_s: float = 1.0) -> MonitorSpec:
    """Return the settings of every monitor for this testbed, without those that have nothing to watch.

    Stacks are sampled in trials of their own, where no other monitor runs.
    """
    places = [STACKS] if scene.samples_stacks else MONITORS.values()
    sources = [importlib.import_module(place.partition(":")[0]).wanted(scene) for place in places]
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
