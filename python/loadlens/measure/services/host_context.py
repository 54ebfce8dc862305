"""What lies around a case's services, over its trials: quotas, the ways in, storage, memory, bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadlens.estimate.interval import Interval
from loadlens.measure.case import CaseMeasures
from loadlens.measure.trial import TrialMeasures
from loadlens.model.facts import (
    BalanceWatch,
    MemoryWatch,
    QuotaWatch,
    ReceivedWatch,
    ReplicaWatch,
    StorageWatch,
)
from loadlens.signals.read.balancer_log import Spread
from loadlens.signals.read.quotas import Quota
from loadlens.signals.read.storage import asleep_over

Z = 1.96  # of a normal, 95 %
FEWEST_FAULTS = 20.0  # of both halves together: below, halves differ by chance


def quotas_of(case: CaseMeasures) -> tuple[QuotaWatch, ...]:
    """The groups that bound CPU time."""
    by_key: dict[tuple[str, str], list[Quota]] = {}
    for trial in case.usable:
        for quota in trial.around.quotas:
            by_key.setdefault(quota.key, []).append(quota)
    return tuple(
        QuotaWatch(
            label=f"{service}.{replica}",
            cores=own[0].cores,
            period_s=own[0].period_s,
            used=case.level_figure("cpu", "cores", [quota.used for quota in own]),
            throttled=case.level_figure("cpu.throttled", "share", [quota.throttled for quota in own]),
            held_back=case.level_figure("cpu.held_back", "cores", [quota.held_back for quota in own]),
        )
        for (service, replica), own in sorted(by_key.items())
    )


def balances_of(case: CaseMeasures) -> tuple[BalanceWatch, ...]:
    """How requests were spread over replicas; only of those that were there in every trial."""
    by_name: dict[str, list[tuple[TrialMeasures, Spread]]] = {}
    for trial in case.usable:
        for spread in trial.around.spreads:
            by_name.setdefault(spread.name, []).append((trial, spread))
    return tuple(_balance(case, name, own) for name, own in sorted(by_name.items()))


def _balance(case: CaseMeasures, name: str, own: Sequence[tuple[TrialMeasures, Spread]]) -> BalanceWatch:
    spreads = [spread for _, spread in own]
    names = [r.name for r in spreads[0].replicas if all(r.name in _names(spread) for spread in spreads)]
    covered = [share for trial, spread in own if (share := _covered(trial, spread)) is not None]
    return BalanceWatch(
        label=name,
        told=spreads[0].told,
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
    half = Z * math.sqrt(point * (1 - point) / whole) + 1 / whole
    return Interval(point, max(0.0, point - half), min(1.0, point + half), whole, "share of counted requests")


def _covered(trial: TrialMeasures, spread: Spread) -> float | None:
    """Requests that replicas got for each one that ended at the generator, over the same time."""
    if trial.grid is None or spread.seconds <= 0:
        return None
    ended = sum(float((stream.ok + stream.not_ok).sum()) for stream in trial.streams)
    return spread.requests / spread.seconds / (ended / trial.grid.seconds) if ended else None


def storage_of(case: CaseMeasures) -> StorageWatch | None:
    """What was read and written; none where nobody looked."""
    known = [trial.around.storage for trial in case.usable if trial.around.storage is not None]
    if not known:
        return None
    asleep = asleep_over(known)
    return StorageWatch(
        written=case.level_figure("storage.written", "bytes/s", [one.written for one in known]),
        read=case.level_figure("storage.read", "bytes/s", [one.read for one in known]),
        appended=case.level_figure("storage.appended", "bytes/s", [one.appended for one in known]),
        major_faults=case.level_figure("faults.major", "1/s", [one.major_faults for one in known]),
        device=known[0].device,
        device_busy=case.level_figure("storage.busy", "share", [one.device_busy for one in known]),
        device_written=case.level_figure("storage.device", "bytes/s", [one.device_written for one in known]),
        waiting=case.level_figure("pressure.io", "share", [one.waiting for one in known]),
        stalled=case.level_figure("pressure.io", "share", [one.stalled for one in known]),
        blocked=case.level_figure("threads.blocked", "share", [share for share, _ in asleep]),
        blocked_threads=case.level_figure("threads.blocked", "threads", [count for _, count in asleep]),
        stored=_all_looks([one.stored for one in known]),
    )


def _all_looks(found: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    """Of all trials together; none where one of them was not looked at."""
    told = [looks for looks in found if looks is not None]
    return (sum(some for some, _ in told), sum(of for _, of in told)) if len(told) == len(found) else None


def memory_of(case: CaseMeasures) -> MemoryWatch | None:
    """How short of memory it was; none where no service was watched."""
    told = [(trial.around.memory, trial.load) for trial in case.usable if trial.around.memory is not None]
    known = [memory for memory, _ in told]
    if not known:
        return None
    halves = [memory.halves for memory in known if memory.halves is not None]
    first, second = sum(half for half, _ in halves), sum(half for _, half in halves)
    is_enough = first + second >= FEWEST_FAULTS
    rates = [
        (memory.faults, float((load.ok + load.not_ok).sum()) / load.grid.seconds)
        for memory, load in told
        if memory.faults is not None and load is not None
    ]
    held = [memory.held for memory in known if memory.held is not None]
    return MemoryWatch(
        faults=tuple(faults / completed for faults, completed in rates if completed > 0),
        later=second / first if is_enough and first > 0 else None,
        again=case.level_figure("memory.refaults", "pages/s", [one.again for one in known]),
        swapped_in=case.level_figure("memory.swapped_in", "pages/s", [one.swapped_in for one in known]),
        waiting=case.level_figure("pressure.memory", "share", [one.waiting for one in known]),
        own_waiting=case.level_figure("pressure.memory", "share", [one.own_waiting for one in known]),
        at_bound=case.level_figure("memory.at_bound", "1/s", [one.at_bound for one in known]),
        bound_bytes=min((one.bound_bytes for one in known if one.bound_bytes is not None), default=None),
        held=max(held, default=None),
    )


def received_of(case: CaseMeasures) -> ReceivedWatch | None:
    """Bytes of answers and how they came; none where nobody counted them."""
    known = [trial.received for trial in case.usable if trial.received is not None]
    if not known:
        return None
    counts = [round(load.successes) for load in case.loads]
    return ReceivedWatch(
        bytes_per_s=case.figure("received", "bytes/s", [one.bytes_per_s for one in known], counts),
        waited=case.figure("first_byte.mean", "s", [one.waited for one in known], counts),
        coming=case.level_figure("last_byte.mean", "s", [one.coming for one in known]),
    )
