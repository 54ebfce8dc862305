"""Answer of `explain`: limit, capacity, cost to other requests, advice, and open questions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from loadlens.model.finding import Absent, Figure, Finding, NotAssessed
from loadlens.model.rates import RateAnswer
from loadlens.model.report import ObjectiveRow
from loadlens.model.stacks import CodeEvidence

Tier = Literal["A", "B", "C"]  # seen from outside; the processes watched; the service's own metrics read


@dataclass(frozen=True, slots=True)
class ProbePaid:
    """Response times of the probe, a thin stream of cheap requests, at one level of load."""

    request: str
    mean: Figure
    p99: Figure
    delayed: Figure  # share that was held up
    count: int


@dataclass(frozen=True, slots=True)
class Rung:
    """One level of load over its trials, or the reason why it has no valid trial."""

    curve: str
    users: float  # or offered requests per second
    trials: int
    throughput: Figure
    mean: Figure
    p50: Figure
    p99: Figure
    failed: Figure  # share of the requests that ended
    cpu_cores: float | None  # used by the service's processes
    probe: ProbePaid | None
    ended_early: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """An open question, and the measurement that would decide it."""

    what: str
    decided_by: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole answer."""

    target: str
    requests: tuple[str, ...]  # "GET /x": the load's
    tier: Tier
    sentence: str  # the limit, or why it is undecided
    limit: str | None  # rule
    grade: str | None  # word
    capacity: Figure
    at_least: float | None  # requests per second that were reached where the capacity is undecided
    knee_users: float | None
    others: str  # what the cheap endpoint pays
    time: str  # of a request in calls and its longest step; empty: hardly any, or not seen
    do: str
    brings: str
    ladder: tuple[Rung, ...]
    findings: tuple[Finding, ...]
    absent: tuple[Absent, ...]
    not_assessed: tuple[NotAssessed, ...]
    unknown: tuple[Unknown, ...]  # the first is the one to go for
    cautions: tuple[str, ...]
    found: tuple[str, ...]  # by the search itself, to watch or as the probe
    missing: tuple[str, ...]  # looked for and not found, with the reason
    stopped_because: str
    stopped_words: str
    budget_s: float | None
    used_s: float | None
    seed: int | None
    record: str | None  # none: it is not kept
    objectives: tuple[ObjectiveRow, ...] = ()
    quotes: tuple[str, ...] = ()  # by the service in failing answers: status, how many, a quote
    code: CodeEvidence = field(default_factory=CodeEvidence)
    rates: RateAnswer | None = None  # where a rate was searched that meets objectives

    @property
    def has_no_service(self) -> bool:
        """True if the service ended, or one user's requests do not succeed and nothing says why."""
        if self.stopped_because == "service_ended":
            return True
        if self.stopped_because == "fails_alone":
            return self.limit is None
        return not self.ladder and self.stopped_because in ("refused", "no_answer")
