"""From parameters, a structure and a case to the model that the simulator takes (crates/queues)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from loadlens.estimate.interval import Floats
from loadlens.model.plain import read
from loadlens.model.workload import Closed, Open, Scenario, Think, workload_of
from loadlens.whatif.held_out.parameters import Fit, Parameter
from loadlens.whatif.held_out.site import Json, NoModel, Site

LOAD: Final = "load"
MACHINE, CPU, HELD, MEMBERS, THREADS = "machine", "cpu", "held", "members", "threads"
MOST_EVENTS: Final = 3_000_000
BALANCERS: Final = {
    "round-robin": "round_robin",
    "least-connections": "least_connections",
    "random-two": "random_two",
    "ip-hash": "first",  # all requests come from one address
}

Kind = Literal["cores", "loop", "pool", "section"]


@dataclass(frozen=True, slots=True)
class Structure:
    """What requests wait for, beside the cores."""

    kind: Kind
    passes: int = 1  # loop: how often a request queues for it
    width: int = 1  # pool, section: how many are in it at once, at each member
    policy: str = "least_connections"  # who of several workers gets a request

    @property
    def words(self) -> str:
        """For people."""
        match self.kind:
            case "loop":
                again = "" if self.passes == 1 else f", which a request crosses {self.passes} times"
                return f"one event loop a process{again}: who computes holds up everyone"
            case "pool":
                return f"{self.width} at once in a process, from beginning to end; the others wait"
            case "section":
                return f"{self.width} of these requests at once in a process; cheap ones pass"
            case _:
                return "requests share the cores and wait for nothing else"


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The parameters as one simulation takes them."""

    fit: Fit
    works: Mapping[str, float]
    alone: Mapping[str, float]
    aside: float

    @classmethod
    def typical(cls, fit: Fit) -> Values:
        """The fitted ones."""
        return cls.of(fit, lambda parameter: parameter.point)

    @classmethod
    def drawn(cls, fit: Fit, random: np.random.Generator) -> Values:
        """One of those that fit as well, within their errors."""
        return cls.of(fit, lambda parameter: parameter.drawn(float(random.standard_normal())))

    @classmethod
    def of(cls, fit: Fit, value: Any) -> Values:
        """With a value for each parameter."""

        def one(parameter: Parameter) -> float:
            return float(value(parameter))

        return cls(
            fit,
            {c.name: one(c.work) for c in fit.classes},
            {c.name: one(c.alone) for c in fit.classes},
            0.0 if fit.aside is None else one(fit.aside),
        )


@dataclass(frozen=True, slots=True)
class Span:
    """How long is simulated, seconds."""

    warmup: float
    counted: float


def model_of(
    case: Json, site: Site, structure: Structure, values: Values, cores: float, span: Span, seed: int
) -> dict[str, Any]:
    """The model of a case as plain values.

    Args:
        case: As planned.
        site: Of the case.
        structure: What requests wait for.
        values: Of the parameters.
        cores: Of the machine.
        span: How long is simulated.
        seed: Of every draw.

    Raises:
        NoModel: The load is one that a model does not know.
    """
    share = values.fit.share
    stations, group = _stations(site, structure, cores * share, share)
    names = [station["name"] for station in stations]
    classes = []
    for one in values.fit.classes:
        works, rests = one.split(values.works[one.name], values.alone[one.name])
        rests = np.maximum(0.0, rests - values.aside)  # which is a part of the time alone as well
        route = _route(site, structure, names, works, rests, values.aside)
        classes.append({"name": one.name, "route": route})
    scenarios = [_scenario(read(Scenario, scenario)) for scenario in case["scenarios"]]
    streams = [{"name": LOAD, "load": _load(workload_of(case["workload"])), "scenarios": scenarios}]
    for probe in values.fit.probes:
        plan = next(p for p in case["probes"] if p["name"] == probe.name)
        speed = min(site.speed, share)
        work = min(probe.work, probe.idle * speed)
        rest = np.array([max(0.0, probe.idle - work / speed)])
        route = _route(site, structure, names, np.array([work]), rest, 0.0, is_probe=True)
        classes.append({"name": f"probe {probe.name}", "route": route})
        visit = {"weight": 1.0, "steps": [{"class": f"probe {probe.name}"}]}
        load = _load(workload_of(plan["workload"]))
        streams.append({"name": f"probe {probe.name}", "load": load, "scenarios": [visit]})
    return {
        "schema_version": 1,
        "seed": seed,
        "warmup_s": span.warmup,
        "duration_s": span.counted,
        "most_events": MOST_EVENTS,
        "groups": group,
        "stations": stations,
        "classes": classes,
        "streams": streams,
    }


def _stations(
    site: Site, structure: Structure, cores: float, alone: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Cores, and what is held; one for each member where each has its own.

    `alone` is the part of a core that one gets at most, beside programs that belong to nobody here.
    """
    each = {"each": MEMBERS} if site.members > 1 else {}
    stations = [_cpu(MACHINE, cores, alone)]
    if site.cpus is not None and site.quota is None:
        stations.append(_cpu(CPU, min(site.cpus * alone, cores), alone))
    elif site.quota is not None and site.quota * site.replicas > cores:
        stations.append(_cpu(CPU, cores, min(site.speed, alone)))
    elif site.quota is not None:
        quota = site.quota / (site.workers if site.replicas > 1 else 1)
        stations.append(_cpu(CPU, quota, min(quota, alone)) | (each if site.replicas > 1 else {}))
    if site.threads:
        stations.append({"name": THREADS, "discipline": "semaphore", "capacity": float(site.threads), **each})
    elif structure.kind != "cores":
        width = 1 if structure.kind == "loop" else structure.width
        stations.append({"name": HELD, "discipline": "semaphore", "capacity": float(width), **each})
    policy = BALANCERS[site.policy] if site.policy is not None and site.replicas > 1 else structure.policy
    return stations, ([{"name": MEMBERS, "size": site.members, "policy": policy}] if site.members > 1 else [])


def _cpu(name: str, capacity: float, per_job: float) -> dict[str, Any]:
    return {"name": name, "discipline": "ps", "capacity": capacity, "per_job": per_job}


def _route(
    site: Site,
    structure: Structure,
    stations: Sequence[str],
    works: Floats,
    rests: Floats,
    aside: float,
    *,
    is_probe: bool = False,
) -> list[dict[str, Any]]:
    """The way of a request: a member, work elsewhere, what it holds while it computes, other time."""
    cpu = CPU if CPU in stations else MACHINE
    work = {"do": "serve", "station": cpu, "work": _law(works)}
    rest = {"do": "delay", "time": _law(rests)}
    route: list[dict[str, Any]] = []
    if site.members > 1:
        route.append({"do": "choose", "group": MEMBERS})
    if aside > 0:
        route.append({"do": "serve", "station": MACHINE, "work": {"kind": "fixed", "s": _rounded(aside)}})
    if site.threads:
        # Cheap requests are answered by what takes requests in; only work goes to the threads.
        return [*route, work, rest] if is_probe else [*route, *_holding(THREADS, [work]), rest]
    match structure.kind:
        case "loop":
            again = [part for _ in range(structure.passes - 1) for part in _holding(HELD, [])]
            return [*route, *_holding(HELD, [work]), rest, *([] if is_probe else again)]
        case "pool":
            return [*route, *_holding(HELD, [work, rest])]
        case "section" if not is_probe:
            return [*route, *_holding(HELD, [work, rest])]
        case _:
            return [*route, work, rest]


def _holding(station: str, parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"do": "acquire", "station": station}, *parts, {"do": "release", "station": station}]


def _law(values: Floats) -> dict[str, Any]:
    """A law of equally likely values; fixed where they do not differ."""
    rounded = [_rounded(value) for value in values]
    if len(set(rounded)) == 1:
        return {"kind": "fixed", "s": rounded[0]}
    return {"kind": "empirical", "values_s": rounded}


def _rounded(value: float) -> float:
    """To six digits: more would only make the record longer."""
    return float(f"{max(0.0, float(value)):.6g}")


def _load(workload: Closed | Open) -> dict[str, Any]:
    if workload.profile is not None or (isinstance(workload, Open) and workload.replay is not None):
        raise NoModel("its load changes over time; a model knows a level")
    if isinstance(workload, Closed):
        if workload.pace is not None:
            raise NoModel("its users keep a pace; a model knows users who think")
        return {"kind": "closed", "users": workload.users, "think": _think(workload.think)}
    return {"kind": "open", "rate_per_s": workload.rate_per_s, "arrivals": workload.arrivals}


def _think(think: Think) -> dict[str, Any]:
    match think.kind:
        case "uniform":
            low_s, high_s = (think.low_ns or 0) / 1e9, (think.high_ns or 0) / 1e9
            return {"kind": "uniform", "low_s": low_s, "high_s": high_s}
        case "exponential":
            return {"kind": "exponential", "mean_s": think.mean_s}
        case _:
            return {"kind": "fixed", "s": think.mean_s}


def _scenario(scenario: Scenario) -> dict[str, Any]:
    """A scenario with its steps, repeated groups written out."""
    first, *others = scenario.visits
    if any(count != first for count in others) and max(first, *others) > 1:
        raise NoModel("groups of its steps repeat within an iteration; a model knows whole iterations")
    once = [{"class": step.name, "think": _think(step.think)} for step in scenario.steps]
    return {"weight": scenario.weight, "steps": once * first}
