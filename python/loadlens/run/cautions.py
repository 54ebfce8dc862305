"""Warnings before a load starts: busy CPUs, few cores, scarce file descriptors.

These warnings never stop a load: the engine refuses impossible plans, and the result reports faults.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable

from loadlens.machine import cpu_time, inventory
from loadlens.model.workload import Closed, Connection, Open, Plan

BUSY_SHARE = 0.25  # of all CPUs, used by other programs; large enough to stand out in a short reading
STEAL_SHARE = 0.05
NEAR = 0.8  # share of the descriptor limit
OWN_DESCRIPTORS = 64  # the lab's own files
FEWEST_CORES = 2
WATCH_S = 0.1


def before(plans: Iterable[Plan], *, watch_s: float = WATCH_S) -> tuple[str, ...]:
    """List conditions of this machine that may distort the results of some loads; takes `watch_s`.

    Args:
        plans: The loads, one after the other.
        watch_s: Seconds over which the CPU use of other programs is measured.
    """
    warnings = [*_cores(), *_others(watch_s)]
    connections = max(
        (sum(connections_of(s.workload, s.connection) for s in plan.streams) for plan in plans), default=0
    )
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
    use = cpu_time.use_within(seconds)
    if use is None:
        return []
    warnings = []
    if use.busy > BUSY_SHARE:
        warnings.append(
            f"other programs use {100 * use.busy:.0f} % of the CPUs: results may be distorted (see top)"
        )
    if use.stolen > STEAL_SHARE:
        warnings.append(f"the host takes {100 * use.stolen:.0f} % of the CPU time (steal)")
    return warnings


def _descriptors(connections: int) -> list[str]:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY or connections + OWN_DESCRIPTORS <= NEAR * most:
        return []
    return [f"{connections:,} connections, but the limit of open files is {most:,} (ulimit -Hn)"]


def connections_of(workload: Closed | Open, connection: Connection) -> int:
    """Return the largest number of concurrent connections of a load."""
    most = workload.users if isinstance(workload, Closed) else workload.max_in_flight
    return most if connection.pool is None else min(most, connection.pool)
