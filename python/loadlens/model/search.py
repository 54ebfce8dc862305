"""The task of a search: the service, its requests, parts to find, and limits."""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.model.study import Case, Objective
from loadlens.model.topology import Outside, Service
from loadlens.model.workload import KEPT_ROWS, Step, Tls


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a search: its duration and the load on the service."""

    budget_s: float
    rate_cap_per_s: float
    most_users: int
    harm_share: float = 0.10  # of requests that fail, refusals with 429 and 503 left out
    rates_share: float = 0.0  # of the budget, that is kept for rates tried against the objectives


@dataclass(frozen=True, slots=True)
class Find:
    """Parts of a service that a search is to find by itself."""

    processes: bool = False
    metrics: bool = False
    probe: bool = False
    peers: bool = False  # other processes that it calls

    @property
    def anything(self) -> bool:
        """True if there is something to find."""
        return self.processes or self.metrics or self.probe or self.peers


@dataclass(frozen=True, slots=True)
class Aim:
    """Target, services and limits of one search, as requested."""

    origin: str  # http://127.0.0.1:8080
    tls: Tls | None
    steps: tuple[Step, ...]  # one for each URL, each with a name of its own
    probe: Step | None  # none: the cheapest of several URLs, or the only one
    outside: Outside
    services: tuple[Service, ...]  # what is started for it
    timeout_ns: int
    bounds: Bounds
    seed: int
    cautions: tuple[str, ...] = ()  # warnings from preparation that affect the answer
    find: Find = Find()
    stacks: bool = True  # sample the threads of the service, if it is here
    objectives: tuple[Objective, ...] = ()
    candidates: tuple[Step, ...] = ()  # requests that may serve as the probe; of those found
    hide: tuple[str, ...] = ()  # names whose values nothing keeps
    samples: int | None = KEPT_ROWS  # rows of each stream's requests that a record keeps; None: all
    pattern: Case | None = None  # of a study: its mix, services and entry; none: the steps at the origin
