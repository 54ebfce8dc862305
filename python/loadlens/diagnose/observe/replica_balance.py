"""Observations of replicas: the levels that show them, and signs that they do the same work."""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.measure import figures
from loadlens.model.facts import BalanceWatch, Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate
from loadlens.present import numbers

FEWEST_REQUESTS = 100  # counted at a level, of all replicas
COVERED = (0.85, 1.15)  # requests that replicas get for each one that was answered
KEPT_SHARE = 0.5  # of the share at the lightest level: below, the load does not use a replica
ASKED = 0.01  # of the requests: below, the replica is not used at all


@dataclass(frozen=True, slots=True)
class Level:
    """One level of load and how it was spread."""

    step: Step
    balance: BalanceWatch

    @property
    def shares(self) -> list[float]:
        """Share of the requests of each replica."""
        return [figures.point(replica.share) for replica in self.balance.replicas]

    @property
    def requests(self) -> int:
        """Requests that all replicas were sent."""
        return sum(replica.requests for replica in self.balance.replicas)


def levels_of(curve: Curve) -> dict[str, list[Level]]:
    """Return the levels of a curve, ascending, by the balancer in front of the replicas.

    Only those that show the same replicas as the highest: a log does not name a replica without requests.
    """
    by_balancer: dict[str, list[Level]] = {}
    for step in curve.steps:
        for balance in step.balances:
            level = Level(step, balance)
            is_known = all(isinstance(replica.share, Estimate) for replica in balance.replicas)
            if len(balance.replicas) > 1 and level.requests >= FEWEST_REQUESTS and is_known:
                by_balancer.setdefault(balance.label, []).append(level)
    return {
        label: [level for level in levels if _names(level) == _names(levels[-1])]
        for label, levels in by_balancer.items()
    }


def _names(level: Level) -> list[str]:
    return [replica.label for replica in level.balance.replicas]


def why_none(facts: Facts) -> str:
    """Return why replicas are not known, and what would show them."""
    if any(step.processes for curve in facts.curves for step in curve.steps):
        return "no replicas behind a balancer were seen: --pid of each, or a balancer of the testbed"
    return "no process was watched: --pid of each replica, or a balancer of the testbed that keeps a log"


def covered(level: Level) -> grading.Signal:
    """Require that each request goes to one of the replicas: else they do different work."""
    share = level.balance.covered
    if share is None:
        return grading.stated("backends.covered", None, text="how many requests came to them is not known")
    low, high = COVERED
    text = f"the replicas got {share:.2f} requests for each one that was answered (limits {low}, {high})"
    # More may be requests in several segments, retries, or services that all take part in each request.
    return grading.stated("backends.covered", True if low <= share <= high else None, text=text)


def alike(level: Level) -> list[grading.Signal]:
    """Leave open whether the work is alike if the load has several kinds of requests."""
    kinds = len(level.step.classes)
    if kinds < 2:
        return []
    text = f"the load sends {kinds} kinds of requests, and which replica got which is not known"
    return [grading.stated("backends.alike", None, text=text)]


def asked_rival(levels: list[Level], place: int) -> Counter:
    """Weigh a server that the load does not use: ruled out when its share stays as the load grows."""
    name, first, last = "a server for something else", levels[0].shares[place], levels[-1].shares[place]
    if last < ASKED:
        return grading.rival(name, f"one of them gets {numbers.percent(last)} of the requests", False)
    if len(levels) < 2 or first <= 0:
        return grading.rival(name, "there is one level of load only", None)
    text = f"the least loaded has {numbers.percent(last)} of the requests, {numbers.percent(first)} at first"
    return grading.rival(name, text, last / first >= KEPT_SHARE)


def seconds(value: float) -> str:
    """Return a time in words."""
    return numbers.with_unit(value, "s")
