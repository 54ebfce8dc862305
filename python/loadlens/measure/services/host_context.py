"""Surroundings of a case's services over its trials: quotas, balance, storage, memory, sockets, bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadlens.estimate.interval import Interval
from loadlens.measure import figures
from loadlens.measure.case import CaseMeasures
from loadlens.measure.services.filled import filled
from loadlens.measure.trial import TrialMeasures
from loadlens.model.facts import (
    BalanceWatch,
    CallsWatch,
    CollectorWatch,
    Gauge,
    KernelWatch,
    LabelPart,
    LabelSplit,
    MemoryWatch,
    QuotaWatch,
    ReceivedWatch,
    ReplicaWatch,
    StorageWatch,
)
from loadlens.model.finding import Z_95, Estimate, Figure
from loadlens.model.readings import TcpMetrics
from loadlens.signals.read import collectors, sockets
from loadlens.signals.read.balancer_log import Spread
from loadlens.signals.read.quotas import Quota
from loadlens.signals.read.storage import asleep_over

FEWEST_FAULTS = 20.0  # of both halves together: below, halves differ by chance


def quotas_of(case: CaseMeasures) -> tuple[QuotaWatch, ...]:
    """The groups that bound CPU time."""
    by_key: dict[tuple[str, str], list[Quota]] = {}
    for trial in case.usable:
        for quota in trial.quotas:
            by_key.setdefault(quota.key, []).append(quota)
    return tuple(
        QuotaWatch(
            label=f"{service}.{replica}",
            cores=own[0].cores,
            period_s=own[0].period_s,
            used=case.level_figure("cpu", "cores", [quota.used for quota in own]),
            throttled=case.level_figure("cpu.throttled", "share", [quota.throttled for quota in own]),
            held_back=case.level_figure("cpu.held_back", "cores", [quota.held_back for quota in own]),
            service=service,
        )
        for (service, replica), own in sorted(by_key.items())
    )


def balances_of(case: CaseMeasures) -> tuple[BalanceWatch, ...]:
    """Return the spread of requests over the replicas that were there in every trial."""
    by_name: dict[str, list[tuple[TrialMeasures, Spread]]] = {}
    for trial in case.usable:
        for spread in trial.spreads:
            by_name.setdefault(spread.name, []).append((trial, spread))
    return tuple(_balance(case, name, own) for name, own in sorted(by_name.items()))


def _balance(case: CaseMeasures, name: str, own: Sequence[tuple[TrialMeasures, Spread]]) -> BalanceWatch:
    spreads = [spread for _, spread in own]
    names = [r.name for r in spreads[0].replicas if all(r.name in _names(spread) for spread in spreads)]
    covered = [share for trial, spread in own if (share := _covered(trial, spread)) is not None]
    return BalanceWatch(
        label=name,
        source=spreads[0].source,
        replicas=tuple(_replica(case, replica, spreads) for replica in names),
        covered=sum(covered) / len(covered) if covered else None,
    )


def _names(spread: Spread) -> set[str]:
    return {replica.name for replica in spread.replicas}


def _replica(case: CaseMeasures, name: str, spreads: Sequence[Spread]) -> ReplicaWatch:
    own = [next(r for r in spread.replicas if r.name == name) for spread in spreads]
    counts = [round(replica.requests) for replica in own]
    shares = [_share(r.requests, s.requests) for r, s in zip(own, spreads, strict=True) if s.requests > 0]
    return ReplicaWatch(
        label=name,
        requests=sum(counts),
        share=case.level_figure("backends.share", "share", shares),
        time=case.figure("backends.time", "s", [replica.time for replica in own], counts),
        waiting=case.level_figure("runq_wait", "cores", [replica.waiting for replica in own]),
    )


def _share(part: float, whole: float) -> Interval:
    """A share of requests that were handed out one by one."""
    point = part / whole
    half = Z_95 * math.sqrt(point * (1 - point) / whole) + 1 / whole
    return Interval(point, max(0.0, point - half), min(1.0, point + half), whole, "share of counted requests")


def _covered(trial: TrialMeasures, spread: Spread) -> float | None:
    """Requests that replicas got for each one that ended at the generator, over the same time."""
    per_s = _answered_per_s(trial)
    return spread.requests / spread.seconds / per_s if per_s and spread.seconds > 0 else None


def storage_of(case: CaseMeasures) -> StorageWatch | None:
    """Return reads and writes; none where storage was not watched."""
    watched = [(t.signals, t.storage) for t in case.usable if t.storage is not None]
    if not watched:
        return None
    trials = [storage for _, storage in watched]
    asleep = asleep_over(trials)
    looks = [storage.stored for storage in trials if storage.stored is not None]
    return filled(
        StorageWatch,
        [signals for signals, _ in watched],
        case.level_figure,
        device=trials[0].device,
        device_busy=case.level_figure("storage.busy", "share", [each.device_busy for each in trials]),
        device_written=case.level_figure(
            "storage.device", "bytes/s", [each.device_written for each in trials]
        ),
        blocked=case.level_figure("threads.blocked", "share", [share for share, _ in asleep]),
        blocked_threads=case.level_figure("threads.blocked", "threads", [count for _, count in asleep]),
        stored=(sum(some for some, _ in looks), sum(of for _, of in looks))
        if len(looks) == len(trials)
        else None,
    )


def memory_of(case: CaseMeasures) -> MemoryWatch | None:
    """Return the shortage of memory; none where no service was watched."""
    watched = [(t.signals, t.memory, t.load) for t in case.usable if t.memory is not None]
    if not watched:
        return None
    halves = [memory.halves for _, memory, _ in watched if memory.halves is not None]
    first, second = sum(half for half, _ in halves), sum(half for _, half in halves)
    rates = [
        (memory.faults, float((load.ok + load.not_ok).sum()) / load.grid.seconds)
        for _, memory, load in watched
        if memory.faults is not None and load is not None
    ]
    return filled(
        MemoryWatch,
        [signals for signals, _, _ in watched],
        case.level_figure,
        faults=tuple(faults / completed for faults, completed in rates if completed > 0),
        later=second / first if first + second >= FEWEST_FAULTS and first > 0 else None,
        held=max((memory.held for _, memory, _ in watched if memory.held is not None), default=None),
    )


def collectors_of(case: CaseMeasures) -> tuple[CollectorWatch, ...]:
    """Return the garbage collectors whose time is known in every trial."""
    trials = case.usable
    grouped = collectors.by_replica([trial.collectors for trial in trials])
    every = {key: own for key, own in grouped.items() if len(own) == len(trials)}
    names = [service for service, _ in every]
    return tuple(
        CollectorWatch(
            label=f"{service}.{replica}" if names.count(service) > 1 else service,
            stopped=case.level_figure("collector.stopped", "share", [each.stopped for each in own]),
            full=case.level_figure(
                "collector.full", "share", [each.full for each in own if each.full is not None]
            ),
            pauses=case.level_figure(
                "collector.pauses", "1/s", [each.pauses for each in own if each.pauses is not None]
            ),
            kept_bytes=min((each.kept_bytes for each in own if each.kept_bytes is not None), default=None),
            most_bytes=max((each.most_bytes for each in own if each.most_bytes is not None), default=None),
        )
        for (service, replica), own in sorted(every.items())
    )


def kernel_of(case: CaseMeasures) -> KernelWatch | None:
    """Return the kernel's counts of TCP; none where sockets were not watched."""
    watched = [t for t in case.usable if TcpMetrics.ports_there.monitor in t.signals.monitors]
    if not watched:
        return None
    ports = sockets.scarcest([trial.ports for trial in watched if trial.ports is not None])
    return filled(KernelWatch, [trial.signals for trial in watched], case.level_figure, ports=ports)


def calls_of(case: CaseMeasures) -> tuple[CallsWatch, ...]:
    """Return the calls to other programs, those with most under way first."""
    by_name: dict[str, list[tuple[TrialMeasures, sockets.Calls]]] = {}
    for trial in case.usable:
        for calls in trial.calls:
            if calls.rate <= 0:
                continue
            by_name.setdefault(calls.to, []).append((trial, calls))
    watches = [
        CallsWatch(
            name,
            Gauge(
                f"calls to {name}",
                case.level_figure("calls.under_way", "calls", [calls.under_way for _, calls in own]),
                max(calls.highest for _, calls in own),
                min(calls.before for _, calls in own),
            ),
            sum(calls.rate for _, calls in own) / answered,
            max((calls.connections for _, calls in own if calls.connections is not None), default=None),
            _held_back(case, [calls.held_back for _, calls in own]),
        )
        for name, own in by_name.items()
        if (answered := sum(_of_load_per_s(trial) for trial, _ in own)) > 0
    ]
    return tuple(sorted(watches, key=lambda watch: -figures.point(watch.under_way.mean)))


def _held_back(case: CaseMeasures, held: Sequence[Interval | None]) -> Figure | None:
    read = [each for each in held if each is not None]
    return case.level_figure("calls.held-back", "connections", read) if read else None


def split_of_calls(case: CaseMeasures, calls: Sequence[CallsWatch]) -> tuple[LabelSplit, ...]:
    """Return calls by the program and port they go to, as a metric with labels would count them; none: one.

    The time of each is what is under way over how many there are, by Little's law.
    """
    seconds = sum(trial.grid.seconds for trial in case.usable if trial.grid is not None)
    answered = sum(_of_load_per_s(trial) for trial in case.usable) / (len(case.usable) or 1)
    parts = []
    for each in calls:
        rate, trials = each.per_request * answered, len(case.usable)
        held = max(0.0, figures.point(each.under_way.mean) - (each.under_way.before or 0.0))
        if rate > 0 and isinstance(each.under_way.mean, Estimate):
            count = int(rate * seconds)
            per_s = Estimate("calls", "1/s", rate, None, None, trials, count, "segments with data")
            mean = Estimate("calls", "s", held / rate, None, None, trials, count, "Little's law")
            parts.append(LabelPart(each.to, per_s, mean))
    return (LabelSplit("calls", "to", tuple(parts), is_of_calls=True),) if len(parts) > 1 else ()


def _answered_per_s(trial: TrialMeasures) -> float:
    """Return all requests that ended, per second."""
    if trial.grid is None:
        return 0.0
    return sum(float((stream.ok + stream.not_ok).sum()) for stream in trial.streams) / trial.grid.seconds


def _of_load_per_s(trial: TrialMeasures) -> float:
    """Return the requests of the load that ended, per second: other requests call hardly anything."""
    if trial.grid is None or trial.load is None:
        return 0.0
    asked = {step.request for step in trial.load.plan.steps}
    same = (s for s in trial.streams if any(step.request in asked for step in s.plan.steps))
    return sum(float((stream.ok + stream.not_ok).sum()) for stream in same) / trial.grid.seconds


def received_of(case: CaseMeasures) -> ReceivedWatch | None:
    """Return bytes of answers and how they came; none where they were not counted."""
    trials = [trial.received for trial in case.usable if trial.received is not None]
    if not trials:
        return None
    counts = [round(load.successes) for load in case.loads]
    return ReceivedWatch(
        bytes_per_s=case.figure("received", "bytes/s", [trial.bytes_per_s for trial in trials], counts),
        waited=case.figure("first_byte.mean", "s", [trial.waited for trial in trials], counts),
        coming=case.level_figure("last_byte.mean", "s", [trial.coming for trial in trials]),
    )
