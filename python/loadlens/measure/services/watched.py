"""The services' processes, the machine, the generator and its connections over the trials of a case."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict

from loadlens.estimate.connection_use import Fairness, closings
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure.case import CaseMeasures
from loadlens.measure.requests import connections, refused
from loadlens.measure.trial import TrialMeasures
from loadlens.model.facts import (
    ClosedWatch,
    ConnectionWatch,
    GeneratorWatch,
    ProcessWatch,
    RefusalWatch,
)
from loadlens.model.finding import Figure, NotMeasured
from loadlens.model.readings import ProcMetrics
from loadlens.model.result import EngineResult
from loadlens.signals.read.resources import Process

WORST_FIRST = ("stood_still", "limit", "starved", "late", "unknown", "kept_up")


def generator_of(case: CaseMeasures) -> GeneratorWatch:
    """The generator's health: the worst of the trials."""
    health = [trial.generator for trial in case.usable if trial.generator is not None]

    def worst(values: Iterable[float | None]) -> float | None:
        return max((value for value in values if value is not None), default=None)

    verdicts = [each.verdict or "unknown" for each in health] or ["unknown"]
    results = [trial.source.result for trial in case.usable if trial.source.result is not None]
    cpu = [r.generator.cpu_s / ran_s for r in results if r.generator.cpu_s and (ran_s := _ran_s(r))]
    return GeneratorWatch(
        verdict=min(verdicts, key=lambda v: WORST_FIRST.index(v) if v in WORST_FIRST else 0),
        busy=worst(each.busy for each in health),
        lag_p99_s=worst(each.lag_p99_s for each in health),
        lag_limit_s=worst(each.lag_limit_s for each in health),
        cpu_cores=max(cpu, default=None),
        waiting=worst(each.runq_wait for each in health),
        stood_still=worst(
            r.generator.stood_still_s / r.measured_s
            for r in results
            if r.generator.stood_still_s is not None and r.measured_s
        ),
    )


def _ran_s(result: EngineResult) -> float:
    """Return for how long the generator's CPU time was counted: of another program its whole life."""
    return result.elapsed_s if result.driver is None else result.driver.ran_s


def processes_of(case: CaseMeasures) -> tuple[ProcessWatch, ...]:
    """Processes of the services, matched over trials by service, replica and rank of CPU use."""
    ranked = [_ranked(trial) for trial in case.usable]
    if not ranked or not any(ranked):
        return ()
    outside = case.plan.outside
    called = () if outside is None else [peer.name for peer in outside.peers]
    watches = []
    for key in ranked[0]:
        members = [trial[key] for trial in ranked if key in trial]
        threads = [most for p in members if (most := p.highest(ProcMetrics.threads)) is not None]
        memory = [most for p in members if (most := p.highest(ProcMetrics.rss_bytes)) is not None]
        hot = [p.hot_threads for p in members]
        opened = [most for p in members if (most := p.highest(ProcMetrics.descriptors)) is not None]
        allowed = [most for p in members if (most := p.highest(ProcMetrics.descriptor_limit)) is not None]
        busiest = [p.busiest_thread for p in members if p.busiest_thread is not None]
        occupied = [p.busiest_occupied for p in members if p.busiest_occupied is not None]
        watches.append(
            ProcessWatch(
                label=members[0].label if len(members) == 1 else f"{key[0]} {members[0].name} #{key[2] + 1}",
                cpu=case.level_figure("cpu", "cores", [p.cpu for p in members]),
                waiting=case.level_figure("runq_wait", "cores", [p.waiting for p in members]),
                occupied=case.level_figure("occupied", "cores", [_occupied(p) for p in members]),
                hot_threads=None if None in hot else max(h for h in hot if h is not None),
                threads=max(threads, default=None),
                memory_bytes=max(memory, default=None),
                busiest_thread=min(busiest, default=None) if len(busiest) == len(members) else None,
                busiest_occupied=min(occupied, default=None) if len(occupied) == len(members) else None,
                service=key[0],
                program=members[0].name,
                is_called=key[0] in called,
                descriptors=max(opened, default=None),
                descriptor_limit=max(allowed, default=None),
            )
        )
    return tuple(watches)


def _occupied(process: Process) -> Interval | Insufficient:
    """Computing and waiting for a core; without the waiting a lower bound."""
    cpu, waiting = process.cpu, process.waiting
    if not isinstance(cpu, Interval) or not isinstance(waiting, Interval):
        return cpu
    return Interval(
        cpu.point + waiting.point,
        None if cpu.low is None else cpu.low + waiting.point,
        None if cpu.high is None else cpu.high + waiting.point,
        cpu.independent,
        cpu.method,
    )


def _ranked(trial: TrialMeasures) -> dict[tuple[str, str, int], Process]:
    """Processes of one trial by (service, replica, rank of CPU use)."""
    by_replica: dict[tuple[str, str], list[Process]] = {}
    for process in trial.resources.services:
        by_replica.setdefault((process.service, process.replica), []).append(process)
    ranked: dict[tuple[str, str, int], Process] = {}
    for (service, replica), members in by_replica.items():
        ordered = sorted(members, key=lambda p: -(p.cpu.point if isinstance(p.cpu, Interval) else 0.0))
        for rank, process in enumerate(ordered):
            ranked[(service, replica, rank)] = process
    return ranked


def server_cores(trial: TrialMeasures) -> Interval | None:
    """Cores used by all processes of the services in one trial."""
    used = [p.cpu for p in trial.resources.services if isinstance(p.cpu, Interval)]
    if not used:
        return None
    point = sum(p.point for p in used)
    down = math.sqrt(sum((p.point - p.low) ** 2 for p in used if p.low is not None))
    up = math.sqrt(sum((p.high - p.point) ** 2 for p in used if p.high is not None))
    is_open = any(p.low is None or p.high is None for p in used)
    low, high = (None, None) if is_open else (max(0.0, point - down), point + up)
    return Interval(point, low, high, used[0].independent, "sum over processes")


def own_cores(trial: TrialMeasures) -> float | None:
    """Cores that another program used which made the load, over its whole life; none: not read."""
    result = trial.source.result
    if result is None or result.driver is None or result.generator.cpu_s is None or result.driver.ran_s <= 0:
        return None
    return result.generator.cpu_s / result.driver.ran_s


def host_cpu(case: CaseMeasures) -> Figure:
    """Cores busy on the whole machine."""
    busy = [t.resources.host_busy for t in case.usable if t.resources.host_busy is not None]
    if not busy:
        return NotMeasured("cpu", "the machine was not watched")
    return case.level_figure("cpu", "cores", busy)


# --- connections ------------------------------------------------------------------------------------------


def connections_of(case: CaseMeasures) -> ConnectionWatch | None:
    """Connections of the load; none where the engine reported none."""
    results = [(trial, trial.load.result) for trial in case.usable if trial.load is not None]
    counted = [(trial, each, each.connections) for trial, each in results if each and each.connections]
    if not counted or case.reference is None:
        return None
    counts = [connections for _, _, connections in counted]
    read = [trial.connected for trial, _, _ in counted if trial.connected is not None]
    shared = [use.fairness for use in read]
    return ConnectionWatch(
        opened=sum(each.opened for each in counts),
        closed_by_server=sum(each.closed_by_server for each in counts),
        answered=sum(each.requests.answered for _, each, _ in counted),
        closed_by_client=sum(each.closed_by_client for each in counts),
        closed_by_error=sum(each.closed_by_error for each in counts),
        reuses=case.reference.plan.connection == "keep",
        closed=_closed(read),
        connect=_time(case, "connect", [use.connect_s for use in read]),
        first=_time(case, "first", [use.first_s for use in read]),
        other=_time(case, "other", [use.other_s for use in read]),
        connects=sum(use.connects for use in read) if read else None,
        resent=sum(use.resent for use in read) if read else None,
        lasting=min((use.lasting for use in read), default=0),
        served=min((use.served for use in read), default=0),
        best_over_worst=case.figure(
            "best_over_worst",
            "ratio",
            [use.best_over_worst for use in read],
            [use.lasting for use in read],
        ),
        evenness=min((each.jain for each in shared if isinstance(each, Fairness)), default=None),
    )


def _time(case: CaseMeasures, name: str, times: list[Interval | Insufficient]) -> Figure:
    samples = [int(time.independent) if isinstance(time, Interval) else 0 for time in times]
    return case.figure(f"{name}_time.mean", "s", times, samples)


def _closed(read: list[connections.Connected]) -> ClosedWatch | None:
    """Return what the connections that the service closed have in common, over all trials."""
    requests, ages = connections.closed(read)
    pattern = closings(requests, ages)
    return None if isinstance(pattern, Insufficient) else ClosedWatch(**asdict(pattern))


# --- refusals ---------------------------------------------------------------------------------------------


def refusals_of(case: CaseMeasures) -> tuple[RefusalWatch, ...]:
    """Return the requests that the service turned away in every trial, by status."""
    by_status = refused.by_status([trial.refused for trial in case.usable])
    return tuple(_refusal(case, status, parts) for status, parts in sorted(by_status.items()))


def _refusal(case: CaseMeasures, status: int, parts: list[refused.Refused]) -> RefusalWatch:
    samples = [int(part.rate.independent) for part in parts]
    return RefusalWatch(
        status=status,
        share=case.level_figure("refused.share", "share", [part.share for part in parts]),
        rate=case.figure("accepted.rate", "1/s", [part.rate for part in parts], samples),
        burst=case.level_figure("accepted.burst", "requests", [part.burst for part in parts]),
        dispersion=max(part.dispersion for part in parts),
        offered_per_s=sum(part.ended_per_s for part in parts) / len(parts),
    )
