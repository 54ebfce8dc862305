"""Warnings before a load starts: busy CPUs, few cores, scarce file descriptors.

These warnings never stop a load: the engine refuses impossible plans, and the result reports faults.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterable
from pathlib import Path

from loadlens.machine import inventory
from loadlens.model.workload import Closed, Plan, Stream

BUSY_SHARE = 0.25  # of all CPUs, used by other programs; large enough to stand out in a short reading
STEAL_SHARE = 0.05
NEAR = 0.8  # share of the descriptor limit
OWN_DESCRIPTORS = 64  # the lab's own files
FEWEST_CORES = 2
WATCH_S = 0.1
_STAT = Path("/proc/stat")
_IDLE, _IOWAIT, _STEAL = 3, 4, 7  # columns in the first line of /proc/stat


def before(plans: Iterable[Plan], *, watch_s: float = WATCH_S) -> tuple[str, ...]:
    """List conditions of this machine that may distort the results of some loads; takes `watch_s`.

    Args:
        plans: The loads, one after the other.
        watch_s: Seconds over which the CPU use of other programs is measured.
    """
    warnings = [*_cores(), *_others(watch_s)]
    connections = max((sum(map(_connections, plan.streams)) for plan in plans), default=0)
    return tuple(warnings + _descriptors(connections))


def _cores() -> list[str]:
    quota = inventory.limits()["cpu_cores"]
    allowed = len(os.sched_getaffinity(0))
    cores = allowed if quota is None else min(allowed, quota)
    if cores >= FEWEST_CORES:
        return []
    noun = "core" if cores == 1 else "cores"
    return [f"{cores:g} {noun}: the generator competes with every service on this machine for CPU time"]


def _others(seconds: float) -> list[str]:
    first = _ticks()
    time.sleep(seconds)
    spent = [now - was for was, now in zip(first, _ticks(), strict=False)]
    total = sum(spent)
    if len(spent) <= _STEAL or total <= 0:
        return []
    steal = spent[_STEAL] / total
    busy = 1 - (spent[_IDLE] + spent[_IOWAIT] + spent[_STEAL]) / total
    warnings = []
    if busy > BUSY_SHARE:
        warnings.append(
            f"other programs use {100 * busy:.0f} % of the CPUs: results may be distorted (see top)"
        )
    if steal > STEAL_SHARE:
        warnings.append(f"the host takes {100 * steal:.0f} % of the CPU time (steal)")
    return warnings


def _ticks() -> list[int]:
    """Read the CPU time of all CPUs by kind; empty if unreadable."""
    try:
        return [int(word) for word in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return []


def _descriptors(connections: int) -> list[str]:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY or connections + OWN_DESCRIPTORS <= NEAR * most:
        return []
    return [f"{connections:,} connections, but the limit of open files is {most:,} (ulimit -Hn)"]


def _connections(stream: Stream) -> int:
    workload, pool = stream.workload, stream.connection.pool
    most = workload.users if isinstance(workload, Closed) else workload.max_in_flight
    return most if pool is None else min(most, pool)
