"""What rules about replicas share: which levels tell of them, and whether they do the same work at all."""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.measure import figures
from loadlens.model.facts import BalanceWatch, Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate
from loadlens.present import numbers

FEWEST_REQUESTS = 100  # counted at a level, of all replicas
COVERED = (0.85, 1.15)  # requests that replicas get for each one that was answered
KEPT_SHARE = 0.5  # of the share at the lightest level: below, a replica is not asked by the load
ASKED = 0.01  # of the requests: below, it is not asked at all


@dataclass(frozen=True, slots=True)
class Level:
    """One level of load and how it was spread."""

    step: Step
    balance: BalanceWatch

    @property
    def shares(self) -> list[float]:
        """Of each replica."""
        return [figures.point(replica.share) for replica in self.balance.replicas]

    @property
    def requests(self) -> int:
        """That all replicas were sent."""
        return sum(replica.requests for replica in self.balance.replicas)


def levels_of(curve: Curve) -> dict[str, list[Level]]:
    """The levels of a curve, ascending, by what stands before the replicas.

    Only those that tell of the same replicas as the highest: a log does not name who was never asked.
    """
    found: dict[str, list[Level]] = {}
    for step in curve.steps:
        for balance in step.balances:
            level = Level(step, balance)
            known = all(isinstance(replica.share, Estimate) for replica in balance.replicas)
            if len(balance.replicas) > 1 and level.requests >= FEWEST_REQUESTS and known:
                found.setdefault(balance.label, []).append(level)
    return {
        label: [level for level in levels if _names(level) == _names(levels[-1])]
        for label, levels in found.items()
    }


def _names(level: Level) -> list[str]:
    return [replica.label for replica in level.balance.replicas]


def why_none(facts: Facts) -> str:
    """Why nothing is known of replicas, and what would tell."""
    watched = any(step.processes for curve in facts.curves for step in curve.steps)
    if not watched:
        return "no process was watched: --pid of each replica, or a balancer of the testbed that keeps a log"
    return "no replicas behind a balancer were seen: --pid of each, or a balancer of the testbed"


def covered(level: Level) -> grading.Signal:
    """Each request must go to one of the replicas: else they do different work."""
    share = level.balance.covered
    if share is None:
        return grading.stated("backends.covered", None, text="how many requests came to them is not known")
    low, high = COVERED
    text = f"the replicas got {share:.2f} requests for each one that was answered (limits {low}, {high})"
    # More may be requests in several segments, retries, or services that are all asked for each request.
    return grading.stated("backends.covered", True if low <= share <= high else None, text=text)


def alike(level: Level) -> list[grading.Signal]:
    """Requests of one kind are the same work anywhere; of several kinds nobody says which went where."""
    kinds = len(level.step.classes)
    if kinds < 2:
        return []
    text = f"the load asks {kinds} kinds of requests, and which replica got which is not known"
    return [grading.stated("backends.alike", None, text=text)]


def asked_rival(levels: list[Level], place: int) -> Counter:
    """A server that only probes or others ask: ruled out when its share stays as the load grows."""
    name, first, last = "a server for something else", levels[0].shares[place], levels[-1].shares[place]
    if last < ASKED:
        return grading.rival(name, f"one of them gets {numbers.percent(last)} of the requests", False)
    if len(levels) < 2 or first <= 0:
        return grading.rival(name, "there is one level of load only", None)
    kept = last / first
    text = f"the least loaded has {numbers.percent(last)} of the requests, {numbers.percent(first)} at first"
    return grading.rival(name, text, kept >= KEPT_SHARE)


def seconds(value: float) -> str:
    """A time in words."""
    return numbers.with_unit(value, "s")
