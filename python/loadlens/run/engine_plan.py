"""From a planned trial to the engine's plan: streams, warm-up, threads, placement."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from loadlens.model.study import Case, PlannedTrial
from loadlens.model.topology import Limits
from loadlens.model.workload import Closed, Plan, Target
from loadlens.study import plan as design
from loadlens.study.plan.streams import streams_of

SHORTEST_AUTO_WARMUP_NS = 5_000_000_000
LONGEST_AUTO_WARMUP_NS = 60_000_000_000

# One engine thread carries tens of thousands of requests a second; more of them
# take cores from a service on the same machine.
CORES_PER_THREAD = 4


def plan_of(planned: PlannedTrial, target: Target, *, previous_cut_ns: int = 0) -> Plan:
    """The plan of one trial.

    Args:
        planned: The trial.
        target: Where its entry is, now that the testbed is up.
        previous_cut_ns: How long the last trial of this case took to settle.
    """
    case = planned.case
    streams = streams_of(case, target)
    return Plan(
        seed=planned.seed,
        streams=streams,
        threads=_threads(case) if case.driver is None else None,  # another program knows its own
        cpus=_generator_cpus(case),
        warmup_ns=warmup_ns(case, previous_cut_ns),
        duration_ns=case.duration_ns,
        feeds=case.feeds,
        drain_ns=max(stream.timeout_ns for stream in streams),
    )


def warmup_ns(case: Case, previous_cut_ns: int = 0) -> int:
    """The study's warm-up, or an automatic one: 5 s or what the last trial of the case needed, the larger.

    A load that ends after so many requests has no automatic warm-up: its first requests are part of what
    was asked for.
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
    """The CPUs that the study gives to no service, if it places services at all; none: not pinned."""
    taken = {cpu for service in case.services for cpu in service.limits.cpus or ()}
    free = sorted(os.sched_getaffinity(0) - taken)
    return tuple(free) if taken and free else None


def placement_of(
    plan: Plan | None,
    case: Case | None = None,
    *,
    held: Sequence[Mapping[str, Any]] = (),
    refused: str | None = None,
) -> dict[str, Any]:
    """Where every part was to run and how much it might take, and what came of it, for the record.

    Args:
        plan: Of the generator; none: the trial ended before there was one.
        case: What it asks of its services.
        held: What each replica was confined to, as read from the kernel while it ran.
        refused: Why the machine does not hold a limit.
    """
    services = case.services if case is not None else ()
    placed = {service.name: _asked(service.limits, service.name, held) for service in services}
    if case is not None and case.outside is not None and case.outside.pids:
        placed.setdefault(case.outside.name, _asked(Limits(), case.outside.name, held))
    return {
        "cores_allowed": sorted(os.sched_getaffinity(0)),
        "generator_threads": None if plan is None else plan.threads,
        "generator_cpus": None if plan is None or plan.cpus is None else list(plan.cpus),
        "services": placed,
        "refused": refused,
        "shared": not any(service.limits.cpus for service in services)
        if services
        else _meet(None if plan is None else plan.cpus, held),
    }


def _asked(limits: Limits, name: str, held: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The limits of one service, and what its replicas were held to."""
    return {
        "cpus": None if limits.cpus is None else list(limits.cpus),
        "cpu": limits.cpu,
        "period_s": None if limits.cpu is None else limits.period_s,
        "memory_bytes": limits.memory_bytes,
        "held": [
            {key: value for key, value in one.items() if key != "service"}
            for one in held
            if one["service"] == name
        ],
    }


def _meet(own: Sequence[int] | None, held: Sequence[Mapping[str, Any]]) -> bool | None:
    """Whether the generator may run where processes run that were there before; none: not known."""
    known = [one["cpus"] for one in held]
    if not known or None in known:
        return None
    taken = {cpu for cpus in known for cpu in cpus}
    return not taken.isdisjoint(os.sched_getaffinity(0) if own is None else own)


def planned_s(case: Case, previous_cut_ns: int = 0) -> float:
    """Seconds of load that a trial is planned to take; a guess for one that ends after so many requests."""
    automatic_ns = (
        0 if case.warmup_ns is not None else max(0, warmup_ns(case, previous_cut_ns) - warmup_ns(case))
    )
    return design.load_seconds(case) + automatic_ns / 1e9
