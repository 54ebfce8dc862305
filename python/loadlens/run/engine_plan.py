"""Conversion of a planned trial to the engine's plan: streams, warm-up, threads, placement."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from loadlens.model.result import EngineResult
from loadlens.model.study import Case, PlannedTrial
from loadlens.model.topology import Limits
from loadlens.model.workload import Closed, Plan, Target
from loadlens.study import plan as design
from loadlens.study.plan.streams import streams_of

SHORTEST_AUTO_WARMUP_NS = 5_000_000_000
LONGEST_AUTO_WARMUP_NS = 60_000_000_000

# One engine thread carries tens of thousands of requests per second; more threads
# would take cores from services on the same machine.
CORES_PER_THREAD = 4


def plan_of(planned: PlannedTrial, target: Target, *, previous_cut_ns: int = 0) -> Plan:
    """Return the plan of one trial.

    Args:
        planned: The trial.
        target: Address of its entry, once the testbed is up.
        previous_cut_ns: Time that the previous trial of this case took to settle.
    """
    case = planned.case
    streams = streams_of(case, target)
    return Plan(
        seed=planned.seed,
        streams=streams,
        threads=_threads(case) if case.driver is None else None,  # an external tool chooses its own
        cpus=_generator_cpus(case),
        warmup_ns=warmup_ns(case, previous_cut_ns),
        duration_ns=case.duration_ns,
        feeds=case.feeds,
        drain_ns=max(stream.timeout_ns for stream in streams),
    )


def warmup_ns(case: Case, previous_cut_ns: int = 0) -> int:
    """Return the study's warm-up, or else the larger of 5 s and the settling time of the previous trial.

    A load with a fixed number of requests has no automatic warm-up: its first requests belong to that number.
    """
    if case.warmup_ns is not None:
        return case.warmup_ns
    if case.duration_ns is None:
        return 0
    return min(max(SHORTEST_AUTO_WARMUP_NS, previous_cut_ns), LONGEST_AUTO_WARMUP_NS)


def _threads(case: Case) -> int:
    cores = len(os.sched_getaffinity(0))
    workload = case.workload
    useful = workload.users if isinstance(workload, Closed) else workload.max_in_flight
    return max(1, min(cores // CORES_PER_THREAD, useful))


def _generator_cpus(case: Case) -> tuple[int, ...] | None:
    """Return the CPUs that no service is pinned to; None if the study pins no service."""
    taken = {cpu for service in case.services for cpu in service.limits.cpus or ()}
    free = sorted(os.sched_getaffinity(0) - taken)
    return tuple(free) if taken and free else None


def placement_of(
    plan: Plan | None,
    case: Case | None = None,
    *,
    held: Sequence[Mapping[str, Any]] = (),
    refused: str | None = None,
    result: EngineResult | None = None,
) -> dict[str, Any]:
    """Return the planned and the actual resource limits of every part, for the record.

    Args:
        plan: Of the generator; None if the trial ended before it was made.
        case: Its services carry the planned limits.
        held: Actual limits of each replica, read from the kernel while it ran.
        refused: Reason why the machine cannot enforce a limit.
        result: Of the load, which names the machines that made it; None: this one.
    """
    services = case.services if case is not None else ()
    placed = {service.name: _limits_of(service.limits, service.name, held) for service in services}
    if case is not None and case.outside is not None and case.outside.pids:
        placed.setdefault(case.outside.name, _limits_of(Limits(), case.outside.name, held))
    peers = () if case is None or case.outside is None else case.outside.peers
    placed |= {peer.name: {**_limits_of(Limits(), peer.name, held), "is_called": True} for peer in peers}
    nodes = () if result is None else result.nodes
    is_here = not nodes or any(node.host == socket.gethostname() for node in nodes)
    threads = sum(node.threads or 0 for node in nodes) or (None if plan is None else plan.threads)
    return {
        "cores_allowed": sorted(os.sched_getaffinity(0)) if is_here else [],
        "generator_threads": threads,
        "generator_cpus": None if plan is None or plan.cpus is None else list(plan.cpus),
        "services": placed,
        "refused": refused,
        "shared": False
        if not is_here
        else not any(service.limits.cpus for service in services)
        if services
        else _meet(None if plan is None else plan.cpus, held),
    }


def _limits_of(limits: Limits, name: str, held: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the planned limits of one service, and the actual ones of its replicas."""
    return {
        "cpus": None if limits.cpus is None else list(limits.cpus),
        "cpu": limits.cpu,
        "period_s": None if limits.cpu is None else limits.period_s,
        "memory_bytes": limits.memory_bytes,
        "held": [
            {key: value for key, value in replica.items() if key != "service"}
            for replica in held
            if replica["service"] == name
        ],
    }


def _meet(own: Sequence[int] | None, held: Sequence[Mapping[str, Any]]) -> bool | None:
    """True if the generator shares CPUs with processes that ran before; None if unknown."""
    cpu_sets = [replica["cpus"] for replica in held]
    if not cpu_sets or None in cpu_sets:
        return None
    taken = {cpu for cpus in cpu_sets for cpu in cpus}
    return not taken.isdisjoint(os.sched_getaffinity(0) if own is None else own)


def planned_s(case: Case, previous_cut_ns: int = 0) -> float:
    """Return the planned seconds of load; a guess for a load with a fixed number of requests."""
    automatic_ns = (
        0 if case.warmup_ns is not None else max(0, warmup_ns(case, previous_cut_ns) - warmup_ns(case))
    )
    return design.load_seconds(case) + automatic_ns / 1e9
