"""A service as a small queueing model: what a request takes, what lets so many through, how many cores.

Plain values that a remedy changes one of; `model_of` writes them as the simulator takes them (crates/queues).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

MEMBERS, CORES, GATE = "members", "cores", "gate"
LOAD, PROBE = "load", "probe"
MOST_EVENTS: Final = 400_000  # of one simulation: 0.1 s

POLICIES: Final = ("least_connections", "sticky_random", "random")  # who of several processes gets a request

GateKind = Literal["loop", "pool", "section"]
LawKind = Literal["fixed", "exponential", "mixed"]
Pause = Literal["fixed", "exponential"]  # of users between two requests


class NoModel(Exception):
    """Why nothing is predicted, in words for people."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What lets so many requests through at once, and the others wait."""

    kind: GateKind  # loop: while they compute; pool: from beginning to end; section: for `hold_s`
    width: int = 1
    passes: int = 1  # how often a request queues for a loop
    hold_s: float = 0.0
    is_each: bool = False  # one in each process or replica


@dataclass(frozen=True, slots=True)
class Beside:
    """A thin stream of other requests."""

    per_s: float
    idle_s: float  # its time when nobody is there
    is_load: bool  # it asks what the load asks


@dataclass(frozen=True, slots=True)
class Replica:
    """One of several that do the same work and do not get it evenly, or not as fast."""

    share: float  # of the requests
    slower: float = 1.0  # times as long


@dataclass(frozen=True, slots=True)
class Slow:
    """A path that some requests take: they do what all do, and then wait for something else."""

    share: float  # of the requests
    longer_s: float


@dataclass(frozen=True, slots=True)
class Plant:
    """A service, and the machine as far as requests use it."""

    work_s: float  # CPU seconds of a request in the processes that answer
    rest_s: float  # seconds of a request without a core, what a section is held for left out
    cores: float  # that requests may use; infinite: nobody knows
    aside_s: float = 0.0  # CPU seconds of a request elsewhere on the same cores
    speed: float = 1.0  # cores that one request gets at most
    members: int = 1  # processes that take requests
    policy: str = "least_connections"  # who of several gets a request
    gate: Gate | None = None
    law: LawKind = "fixed"  # how the longest part varies
    shape: tuple[float, ...] = ()  # of a mixed law: equally likely values with mean 1
    beside: Beside | None = None
    replicas: tuple[Replica, ...] = ()  # each with a pool of its own; empty: one, or all alike
    slow: Slow | None = None

    @property
    def alone_s(self) -> float:
        """How long a request takes when nobody is there, on average."""
        hold = 0.0 if self.gate is None else self.gate.hold_s
        slower = sum(r.share * r.slower for r in self.replicas) if self.replicas else 1.0
        return self.aside_s + (self.work_s / self.speed + self.rest_s) * slower + self.longer_s + hold

    @property
    def longer_s(self) -> float:
        """What the slow path adds to the mean."""
        return 0.0 if self.slow is None else self.slow.share * self.slow.longer_s

    @property
    def ceiling(self) -> float:
        """Requests per second that cannot be passed; infinite where nothing is known to limit."""
        computing = self.work_s + self.aside_s
        limits = [self.cores / computing if computing > 0 else math.inf]
        gate = self.gate
        if gate is None:
            return limits[0]
        width = gate.width * (self.members if gate.is_each else 1)
        whole = self.work_s / self.speed + self.rest_s + self.longer_s
        if gate.kind == "loop" and self.work_s > 0:
            limits.append(width / self.work_s)
        elif gate.kind == "pool" and self.replicas:
            limits += [gate.width / (whole * r.slower * r.share) for r in self.replicas if r.share > 0]
        elif gate.kind == "pool":
            limits.append(width / whole)
        elif gate.kind == "section" and gate.hold_s > 0:
            limits.append(width / gate.hold_s)
        return min(limits)


def model_of(
    plant: Plant,
    users: int,
    think_s: float,
    *,
    pause: Pause = "fixed",
    requests: int,
    seed: int,
) -> dict[str, Any]:
    """Return a plant under users as plain values for the simulator.

    Args:
        plant: The service.
        users: Who ask again when they have thought.
        think_s: Mean pause of a user.
        pause: How it varies.
        requests: Counted ones, about; as many rounds of the users go before as fill every queue.
        seed: Of every draw.
    """
    rate = min(plant.ceiling, users / (plant.alone_s + think_s))
    warmup = max(2 * users, requests / 5) / rate
    ways = _ways(plant)
    classes: list[dict[str, Any]] = [{"name": way.name, "route": way.route} for way in ways]
    scenarios = [{"weight": way.share, "steps": [{"class": way.name}]} for way in ways]
    streams: list[dict[str, Any]] = [
        {
            "name": LOAD,
            "load": {"kind": "closed", "users": users, "think": _law(think_s, pause)},
            "scenarios": scenarios,
        }
    ]
    if plant.beside is not None and plant.beside.per_s > 0:
        if not plant.beside.is_load:
            classes.append({"name": PROBE, "route": _probe_route(plant, plant.beside)})
            scenarios = [{"weight": 1.0, "steps": [{"class": PROBE}]}]
        streams.append(
            {
                "name": PROBE,
                "load": {"kind": "open", "rate_per_s": plant.beside.per_s, "arrivals": "poisson"},
                "scenarios": scenarios,
            }
        )
    return {
        "schema_version": 1,
        "seed": seed,
        "warmup_s": warmup,
        "duration_s": requests / rate,
        "most_events": MOST_EVENTS,
        "groups": [{"name": MEMBERS, "size": plant.members, "policy": plant.policy}]
        if _has_members(plant)
        else [],
        "stations": _stations(plant),
        "classes": classes,
        "streams": streams,
    }


@dataclass(frozen=True, slots=True)
class _Way:
    """A way of requests of the load through the service."""

    name: str
    share: float
    route: list[dict[str, Any]]


def _ways(plant: Plant) -> list[_Way]:
    if plant.replicas:
        return [
            _Way(_of(LOAD, place), one.share, _route(plant, place, one.slower))
            for place, one in enumerate(plant.replicas)
        ]
    slow = plant.slow
    if slow is None or slow.share <= 0:
        return [_Way(LOAD, 1.0, _route(plant))]
    return [
        _Way(LOAD, 1 - slow.share, _route(plant)),
        _Way(f"{LOAD}-slow", slow.share, _route(plant, longer_s=slow.longer_s)),
    ]


def _has_members(plant: Plant) -> bool:
    return plant.members > 1 and plant.gate is not None and plant.gate.is_each


def _of(name: str, place: int | None) -> str:
    return name if place is None else f"{name}-{place}"


def _stations(plant: Plant) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if math.isfinite(plant.cores):
        found.append(
            {
                "name": CORES,
                "discipline": "ps",
                "capacity": plant.cores,
                "per_job": min(plant.speed, plant.cores),
            }
        )
    if plant.gate is not None:
        each = {"each": MEMBERS} if _has_members(plant) else {}
        gates = [_of(GATE, place) for place in range(len(plant.replicas))] or [GATE]
        width = float(plant.gate.width)
        found += [{"name": gate, "discipline": "semaphore", "capacity": width, **each} for gate in gates]
    return found


def _route(
    plant: Plant, place: int | None = None, slower: float = 1.0, *, longer_s: float = 0.0
) -> list[dict[str, Any]]:
    """The way of a request: a process, work elsewhere, what it holds, the rest."""
    gate, work_s, rest_s = plant.gate, plant.work_s * slower, plant.rest_s * slower
    in_section = gate is not None and gate.kind == "section"
    # The longest part varies: it is what others wait for.
    varies = CORES if not in_section and work_s >= rest_s else GATE if in_section else "rest"
    work = _computed(plant, _varied(plant, work_s) if varies == CORES else _law(work_s))
    rest = {"do": "delay", "time": _varied(plant, rest_s) if varies == "rest" else _law(rest_s)}
    route: list[dict[str, Any]] = [{"do": "choose", "group": MEMBERS}] if _has_members(plant) else []
    if plant.aside_s > 0:
        route.append(_computed(plant, _law(plant.aside_s)))
    rests = [rest, {"do": "delay", "time": _law(longer_s)}] if longer_s > 0 else [rest]
    if gate is None:
        return [*route, work, *rests]
    match gate.kind:
        case "loop":
            again = [step for _ in range(gate.passes - 1) for step in _holding([])]
            return [*route, *again, *_holding([work]), *rests]
        case "pool":
            return [*route, *_holding([work, *rests], _of(GATE, place))]
        case _:
            held = {"do": "delay", "time": _varied(plant, gate.hold_s)}
            return [*route, work, *rests, *_holding([held])]


def _probe_route(plant: Plant, beside: Beside) -> list[dict[str, Any]]:
    """A cheap request needs a process or a thread as any, and hardly any time of it."""
    work = _computed(plant, _law(beside.idle_s / 2))
    rest = {"do": "delay", "time": _law(beside.idle_s / 2)}
    route: list[dict[str, Any]] = [{"do": "choose", "group": MEMBERS}] if _has_members(plant) else []
    match None if plant.gate is None else plant.gate.kind:
        case "loop":
            return [*route, *_holding([work]), rest]
        case "pool":
            return [*route, *_holding([work, rest])]
        case _:
            return [*route, work, rest]


def _computed(plant: Plant, law: dict[str, Any]) -> dict[str, Any]:
    if math.isfinite(plant.cores):
        return {"do": "serve", "station": CORES, "work": law}
    return {"do": "delay", "time": law}


def _holding(parts: Sequence[dict[str, Any]], gate: str = GATE) -> list[dict[str, Any]]:
    return [{"do": "acquire", "station": gate}, *parts, {"do": "release", "station": gate}]


def _varied(plant: Plant, mean: float) -> dict[str, Any]:
    if plant.law == "mixed" and plant.shape:
        return {"kind": "empirical", "values_s": [_rounded(mean * part) for part in plant.shape]}
    return _law(mean, "exponential" if plant.law == "exponential" else "fixed")


def _law(mean: float, kind: Literal["fixed", "exponential"] = "fixed") -> dict[str, Any]:
    if kind == "exponential" and mean > 0:
        return {"kind": "exponential", "mean_s": _rounded(mean)}
    return {"kind": "fixed", "s": _rounded(mean)}


def _rounded(value: float) -> float:
    """To six digits: more would only make the model longer."""
    return float(f"{max(0.0, value):.6g}")
