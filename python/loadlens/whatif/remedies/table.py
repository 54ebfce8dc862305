"""Which model a rule speaks of, and which remedies are tried on it: a line for each rule.

A rule that is not here predicts nothing. To add one, name the candidates of its cause and the changes that
its advice amounts to; sizes and times that it claims in its evidence are read by their signal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from loadlens.diagnose.rules.replicas.backend_slow_one import slowest_of
from loadlens.model.facts import ReplicaWatch, Step
from loadlens.model.finding import Estimate, Finding
from loadlens.whatif.remedies import changes, own_cores, pauses_gone, slow_path
from loadlens.whatif.remedies.curve_facts import Known, signal
from loadlens.whatif.remedies.fitting import Candidate, fullest, varied
from loadlens.whatif.remedies.service_model import POLICIES, Replica
from loadlens.whatif.remedies.treatment import Arithmetic, Treatment

PASSES: Final = (1, 2, 3)


def _loops(known: Known, finding: Finding) -> list[Candidate]:
    policies = POLICIES if known.members > 1 else POLICIES[:1]
    return [
        Candidate("loop", law=law, pause=pause, passes=passes, policy=policy)
        for policy in policies
        for passes in PASSES
        for law, pause in varied(known)
    ]


def _cores(known: Known, finding: Finding) -> list[Candidate]:
    return [Candidate("cores", law=law, pause=pause) for law, pause in varied(known, of_cores=True)]


def _share(known: Known, finding: Finding) -> list[Candidate]:
    told = signal(finding, "quota.cores")
    cores = known.curve.cores_allotted if told is None or told.value is None else told.value
    return [
        Candidate("cores", law=law, pause=pause, cores=cores) for law, pause in varied(known, of_cores=True)
    ]


def _pools(known: Known, finding: Finding) -> list[Candidate]:
    widths = _widths(known, finding, "pool.size")
    return [
        Candidate("pool", law=law, pause=pause, width=width)
        for width in widths
        for law, pause in varied(known)
    ]


def _connections(known: Known, finding: Finding) -> list[Candidate]:
    told = signal(finding, "pool.hold")
    hold = None if told is None else told.value
    widths = _widths(known, finding, "pool.size")
    return [
        Candidate("section", law=law, pause=pause, width=w, hold_s=hold)
        for w in widths
        for law, pause in varied(known)
    ]


def _lock(known: Known, finding: Finding) -> list[Candidate]:
    told = signal(finding, "lock.hold")
    hold = None if told is None else told.value
    return [Candidate("section", law=law, pause=pause, hold_s=hold) for law, pause in varied(known)]


def _behind(known: Known, finding: Finding) -> list[Candidate]:
    """Nobody said how many: from one to as many as are there at once by Little's law."""
    most = max(1, math.floor(known.most_per_s * known.alone.point + 0.1))
    widths = sorted({1, math.ceil(most / 2), most})
    return [
        Candidate("section", law=law, pause=pause, width=width)
        for width in widths
        for law, pause in varied(known)
    ]


def _uneven(known: Known, finding: Finding) -> list[Candidate]:
    return _replicas(known, tuple(Replica(share) for share in _shares(known.top)))


def _slow(known: Known, finding: Finding) -> list[Candidate]:
    told, shares = signal(finding, "backends.slowest-ratio"), _shares(known.top)
    if told is None or told.value is None:
        return []
    slowest = slowest_of(known.curve, len(shares))
    if slowest is None:
        return []
    slower = [told.value if place == slowest else 1.0 for place in range(len(shares))]
    return _replicas(known, tuple(Replica(*pair) for pair in zip(shares, slower, strict=True)))


def _replicas(known: Known, replicas: tuple[Replica, ...]) -> list[Candidate]:
    """Each works on as many at once as its throughput times the time alone has it (Little's law)."""
    if len(replicas) < 2:
        return []
    mean = sum(one.share * one.slower for one in replicas)
    at_once = known.most_per_s * known.alone.point / mean * fullest(replicas)
    widths = sorted({max(1, math.floor(at_once + 0.1)), max(1, math.ceil(at_once - 0.1))})
    return [
        Candidate("replicas", law=law, pause=pause, width=width, replicas=replicas)
        for width in widths
        for law, pause in varied(known)
    ]


def _balance(step: Step) -> tuple[ReplicaWatch, ...]:
    """The replicas of the most uneven of a step's balancers."""
    return max((balance.replicas for balance in step.balances), key=_most_share, default=())


def _most_share(replicas: Sequence[ReplicaWatch]) -> float:
    shares = [replica.share.point for replica in replicas if isinstance(replica.share, Estimate)]
    return max(shares, default=0.0) * len(replicas)


def _shares(step: Step) -> list[float]:
    found = [replica.share.point for replica in _balance(step) if isinstance(replica.share, Estimate)]
    return [share / sum(found) for share in found] if found and sum(found) > 0 else []


def _pace(known: Known, finding: Finding) -> list[Candidate]:
    return [Candidate("section", pause=pause) for _, pause in varied(known, of_cores=True)]


def _widths(known: Known, finding: Finding, name: str) -> list[int]:
    """How many at once: as the finding claims, else throughput times the time alone (Little's law)."""
    told = signal(finding, name)
    if told is not None and told.value is not None:
        return [max(1, round(told.value))]
    at_once = known.most_per_s * known.alone.point
    return sorted({max(1, math.floor(at_once + 0.1)), max(1, math.ceil(at_once - 0.1))})


TREATMENTS: Final[Mapping[str, Treatment]] = {
    "eventloop.blocked": Treatment(_loops, (changes.more_processes, changes.into_threads)),
    "loop.multipass": Treatment(_loops, (changes.one_pass, changes.into_threads)),
    "cpu.saturated": Treatment(_cores, (changes.twice_the_cores, changes.half_the_work)),
    "threads.pool-limit": Treatment(
        _pools, (changes.twice_as_many("threads", assumes="what they wait for takes as long as now"),)
    ),
    "db.pool": Treatment(
        _connections,
        (changes.twice_as_many("connections", assumes="the database serves twice as many as fast"),),
    ),
    "db.lock": Treatment(_lock, (changes.held_half_as_long, changes.shared)),
    "downstream.serialised": Treatment(_behind, (changes.let_through_twice,)),
    "cgroup.throttled": Treatment(_share, (changes.twice_the_share,)),
    "lb.imbalance": Treatment(_uneven, (changes.alike("equal turns over the replicas"),)),
    "backend.slow-one": Treatment(_slow, (changes.alike("the slow replica as fast as the others"),)),
    "network.bound": Treatment(_pace, (changes.half("the bytes of an answer"),)),
    "disk.bound": Treatment(_pace, (changes.half("what a request writes"),)),
    "ratelimit.active": Treatment(_pace, (changes.twice_the_pace,)),
}

ARITHMETIC: Final[Mapping[str, Arithmetic]] = {
    "pause.periodic": pauses_gone.predicted,
    "pause.aperiodic": pauses_gone.predicted,
    "mixture.slow-path": slow_path.predicted,
    "host.interference": own_cores.without_others,
    "colocation.contention": own_cores.without_generator,
}
