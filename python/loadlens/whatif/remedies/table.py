"""Model candidates and remedies of each rule: one line per rule.

A rule that is not here predicts nothing. To add one, name the candidates of its cause and the changes that
its advice amounts to; sizes and times that it claims in its evidence are read by their signal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from loadlens.diagnose.rules.replicas.backend_slow_one import slowest_of
from loadlens.model.facts import Facts, Step
from loadlens.model.finding import Estimate, Figure, Finding, Prediction
from loadlens.whatif.queueing import POLICIES
from loadlens.whatif.remedies import changes, own_cores, pauses_gone, slow_path
from loadlens.whatif.remedies.curve_facts import Ladder, value_of
from loadlens.whatif.remedies.fitting import Candidate, Cause, fullest, varied
from loadlens.whatif.remedies.predict import Treatment
from loadlens.whatif.remedies.service_model import Replica

PASSES: Final = (1, 2, 3)

# From the facts, the finding and all findings. It raises NoModel if nothing can be predicted.
Arithmetic = Callable[[Facts, Finding, Sequence[Finding]], tuple[Prediction, ...]]


def _loops(ladder: Ladder, finding: Finding) -> list[Candidate]:
    policies = POLICIES if ladder.members > 1 else POLICIES[:1]
    return [
        Candidate("loop", law=law, pause=pause, passes=passes, policy=policy)
        for policy in policies
        for passes in PASSES
        for law, pause in varied(ladder)
    ]


def _cores(ladder: Ladder, finding: Finding) -> list[Candidate]:
    return [Candidate("cores", law=law, pause=pause) for law, pause in varied(ladder, of_cores=True)]


def _share(ladder: Ladder, finding: Finding) -> list[Candidate]:
    quota = value_of(finding, "quota.cores")
    cores = ladder.curve.cores_allotted if quota is None else quota
    return [
        Candidate("cores", law=law, pause=pause, cores=cores) for law, pause in varied(ladder, of_cores=True)
    ]


def _pools(ladder: Ladder, finding: Finding) -> list[Candidate]:
    return _of_widths(ladder, "pool", _pool_widths(ladder, finding))


def _connections(ladder: Ladder, finding: Finding) -> list[Candidate]:
    hold_s = value_of(finding, "pool.hold")
    return _of_widths(ladder, "section", _pool_widths(ladder, finding), hold_s)


def _lock(ladder: Ladder, finding: Finding) -> list[Candidate]:
    return _of_widths(ladder, "section", [1], value_of(finding, "lock.hold"))


def _behind(ladder: Ladder, finding: Finding) -> list[Candidate]:
    """Return widths from one to the requests that are there at once by Little's law: none was reported."""
    most = max(1, math.floor(ladder.most_per_s * ladder.alone.point + 0.1))
    return _of_widths(ladder, "section", sorted({1, math.ceil(most / 2), most}))


def _pace(ladder: Ladder, finding: Finding) -> list[Candidate]:
    return [Candidate("section", pause=pause) for _, pause in varied(ladder, of_cores=True)]


def _of_widths(
    ladder: Ladder,
    cause: Cause,
    widths: Iterable[int],
    hold_s: float | None = None,
    replicas: tuple[Replica, ...] = (),
) -> list[Candidate]:
    return [
        Candidate(cause, law=law, pause=pause, width=width, hold_s=hold_s, replicas=replicas)
        for width in widths
        for law, pause in varied(ladder)
    ]


def _pool_widths(ladder: Ladder, finding: Finding) -> list[int]:
    """Return the size of the pool as the finding claims it, else by Little's law."""
    size = value_of(finding, "pool.size")
    return _around(ladder.most_per_s * ladder.alone.point) if size is None else [max(1, round(size))]


def _around(at_once: float) -> list[int]:
    """Return the whole numbers next to throughput times the time alone (Little's law)."""
    return sorted({max(1, math.floor(at_once + 0.1)), max(1, math.ceil(at_once - 0.1))})


def _uneven(ladder: Ladder, finding: Finding) -> list[Candidate]:
    return _replicas(ladder, tuple(Replica(share) for share in _shares(ladder.top)))


def _slow(ladder: Ladder, finding: Finding) -> list[Candidate]:
    ratio, shares = value_of(finding, "backends.slowest-ratio"), _shares(ladder.top)
    slowest = None if ratio is None else slowest_of(ladder.curve, len(shares))
    if ratio is None or slowest is None:
        return []
    pairs = [(share, ratio if place == slowest else 1.0) for place, share in enumerate(shares)]
    return _replicas(ladder, tuple(Replica(share, slower) for share, slower in pairs))


def _replicas(ladder: Ladder, replicas: tuple[Replica, ...]) -> list[Candidate]:
    if len(replicas) < 2:
        return []
    mean = sum(replica.share * replica.slower for replica in replicas)
    widths = _around(ladder.most_per_s * ladder.alone.point / mean * fullest(replicas))
    return _of_widths(ladder, "replicas", widths, replicas=replicas)


def _shares(step: Step) -> list[float]:
    """Return the shares of the replicas of a step's most uneven balancer; empty if not known."""

    def unevenness(shares: list[float | None]) -> float:
        return max((share for share in shares if share is not None), default=0.0) * len(shares)

    balances = [[_point(replica.share) for replica in balance.replicas] for balance in step.balances]
    shares = [share for share in max(balances, key=unevenness, default=[]) if share is not None]
    return [share / sum(shares) for share in shares] if sum(shares) > 0 else []


def _point(figure: Figure) -> float | None:
    return figure.point if isinstance(figure, Estimate) else None


TREATMENTS: Final[Mapping[str, Treatment]] = {
    "eventloop.blocked": Treatment(_loops, (changes.more_processes, changes.into_threads)),
    "loop.multipass": Treatment(_loops, (changes.one_pass, changes.into_threads)),
    "cpu.saturated": Treatment(_cores, (changes.twice_the_cores, changes.half_the_work)),
    "threads.pool-limit": Treatment(
        _pools, (changes.twice_as_many("threads", assumes="what they wait for takes as long as now"),)
    ),
    "db.pool": Treatment(
        _connections,
        (changes.twice_as_many("connections", assumes="what is behind serves twice as many as fast"),),
    ),
    "downstream.full": Treatment(
        _connections,
        (changes.twice_as_many("places there", assumes="what is behind serves twice as many as fast"),),
    ),
    "calls.at-once": Treatment(
        _connections,
        (changes.twice_as_many("calls at a time", assumes="what is behind serves twice as many as fast"),),
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
