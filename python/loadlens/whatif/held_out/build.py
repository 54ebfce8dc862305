"""From parameters, a structure and a case to the queueing model of the case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from loadlens.estimate.interval import Floats
from loadlens.model.recorded import PlannedCase
from loadlens.model.workload import Closed, Open, Scenario, Think
from loadlens.whatif import queueing as net
from loadlens.whatif.held_out.parameters import Fit, Parameter
from loadlens.whatif.held_out.site import Site

MACHINE, CPU, HELD, THREADS = "machine", "cpu", "held", "threads"
MOST_EVENTS: Final = 3_000_000
THREADED_S: Final = 0.002  # of CPU: a request that computes no longer has nothing to move into a thread
POLICY_MODELS: Final = {
    "round-robin": "round_robin",
    "least-connections": "least_connections",
    "random-two": "random_two",
    "ip-hash": "first",  # all requests come from one address
}

Kind = Literal["cores", "loop", "pool", "section"]


@dataclass(frozen=True, slots=True)
class Structure:
    """Limiter that requests wait for, besides the cores."""

    kind: Kind
    passes: int = 1  # loop: how often a request queues for it
    width: int = 1  # pool, section: concurrent requests, at each member
    policy: str = "least_connections"  # which of several workers gets a request

    @property
    def words(self) -> str:
        """The structure in words for people."""
        match self.kind:
            case "loop":
                again = "" if self.passes == 1 else f", which a request crosses {self.passes} times"
                return f"one event loop per process{again}: a request that computes holds up all others"
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
    works: dict[str, float]
    alone: dict[str, float]
    other_cpu_s: float

    @classmethod
    def typical(cls, fit: Fit) -> Values:
        """Return the fitted values."""
        return cls._of(fit, lambda parameter: parameter.point)

    @classmethod
    def drawn(cls, fit: Fit, random: np.random.Generator) -> Values:
        """Return values that fit as well, within the errors of the parameters."""
        return cls._of(fit, lambda parameter: parameter.drawn(float(random.standard_normal())))

    @classmethod
    def _of(cls, fit: Fit, value: Callable[[Parameter], float]) -> Values:
        works = {c.name: value(c.work) for c in fit.classes}
        alone = {c.name: value(c.alone) for c in fit.classes}
        return cls(fit, works, alone, 0.0 if fit.other_cpu is None else value(fit.other_cpu))


@dataclass(frozen=True, slots=True)
class Span:
    """Simulated time, seconds."""

    warmup: float
    counted: float


def network_of(
    case: PlannedCase,
    site: Site,
    structure: Structure,
    values: Values,
    machine_cores: float,
    span: Span,
    seed: int,
) -> net.Network:
    """Return the model of a case.

    Args:
        case: As planned.
        site: Of the case.
        structure: What requests wait for.
        values: Of the parameters.
        machine_cores: Cores of the machine.
        span: Simulated time.
        seed: Of every draw.

    Raises:
        NoModel: The load is one that no model covers.
    """
    share = values.fit.share
    stations = _stations(site, structure, machine_cores * share, share)
    cpu = CPU if any(station.name == CPU for station in stations) else MACHINE
    classes = []
    for kind in values.fit.classes:
        works, rests = kind.split(values.works[kind.name], values.alone[kind.name])
        rests = np.maximum(0.0, rests - values.other_cpu_s)  # it is a part of the time alone as well
        work, rest = net.serve(cpu, _law(works)), net.delay(_law(rests))
        classes.append(net.RequestClass(kind.name, _route(site, structure, work, rest, values, kind.name)))
    streams = [
        net.Stream(net.LOAD, _load(case.workload), [_iteration(scenario) for scenario in case.scenarios])
    ]
    for probe in values.fit.probes:
        plan = next(p for p in case.probes if p.name == probe.name)
        speed = min(site.speed, share)
        work_s = min(probe.work, probe.idle * speed)
        work, rest = net.serve(cpu, net.fixed(work_s)), net.delay(net.fixed(probe.idle - work_s / speed))
        name = f"probe {probe.name}"
        classes.append(net.RequestClass(name, _probe_route(site, structure, work, rest)))
        streams.append(net.probe_stream(name, _load(plan.workload)))
    policy = POLICY_MODELS[site.policy] if site.policy is not None and site.replicas > 1 else structure.policy
    return net.Network(
        seed=seed,
        warmup_s=span.warmup,
        duration_s=span.counted,
        most_events=MOST_EVENTS,
        groups=[net.Group(net.MEMBERS, site.members, policy)] if site.members > 1 else [],
        stations=stations,
        classes=classes,
        streams=streams,
    )


def _stations(site: Site, structure: Structure, all_cores: float, alone: float) -> list[net.Station]:
    """Return cores and limiters; one per member where each has its own.

    `alone` is the part of a core that one request gets at most, next to other programs.
    """
    each = net.MEMBERS if site.members > 1 else None
    stations = [net.cores(MACHINE, all_cores, alone)]
    if site.cpus is not None and site.quota is None:
        stations.append(net.cores(CPU, min(site.cpus * alone, all_cores), alone))
    elif site.quota is not None and site.quota * site.replicas > all_cores:
        stations.append(net.cores(CPU, all_cores, min(site.speed, alone)))
    elif site.quota is not None:
        quota = site.quota / (site.workers if site.replicas > 1 else 1)
        per_member = each if site.replicas > 1 else None
        stations.append(net.Station(CPU, "ps", quota, min(quota, alone), each=per_member))
    if site.threads:
        stations.append(net.Station(THREADS, "semaphore", float(site.threads), each=each))
    elif structure.kind != "cores":
        width = 1 if structure.kind == "loop" else structure.width
        stations.append(net.Station(HELD, "semaphore", float(width), each=each))
    return stations


def _route(
    site: Site, structure: Structure, work: net.Step, rest: net.Step, values: Values, kind: str
) -> net.Route:
    """Return the way of a request: a member, work elsewhere, the limiter, other time."""
    route = [net.Step("choose", group=net.MEMBERS)] if site.members > 1 else []
    if values.other_cpu_s > 0:
        route.append(net.serve(MACHINE, net.fixed(values.other_cpu_s)))
    if site.threads:
        is_moved = values.works[kind] > THREADED_S
        return route + net.through("loop" if is_moved else None, THREADS, work, [rest])
    limiter = "pool" if structure.kind == "section" else structure.kind
    again = net.holding(HELD) * (structure.passes - 1) if limiter == "loop" else []
    return route + net.through(limiter, HELD, work, [rest]) + again


def _probe_route(site: Site, structure: Structure, work: net.Step, rest: net.Step) -> net.Route:
    """Return the way of a cheap request: it passes sections, and needs no thread for work."""
    route = [net.Step("choose", group=net.MEMBERS)] if site.members > 1 else []
    passes = site.threads or structure.kind == "section"
    return route + net.through(None if passes else structure.kind, HELD, work, [rest])


def _law(values: Floats) -> net.Law:
    """Return the law of equally likely values; fixed where they do not differ."""
    return (
        net.empirical(values) if len({net.rounded(value) for value in values}) > 1 else net.fixed(values[0])
    )


def _load(workload: Closed | Open) -> net.Load:
    if workload.profile is not None or (isinstance(workload, Open) and workload.replay is not None):
        raise net.NoModel("its load changes over time; a model knows a level")
    if isinstance(workload, Open):
        return net.Load("open", rate_per_s=workload.rate_per_s, arrivals=workload.arrivals)
    if workload.pace is not None:
        raise net.NoModel("its users keep a pace; a model knows users who think")
    return net.Load("closed", users=workload.users, think=_think(workload.think))


def _think(think: Think) -> net.Law:
    match think.kind:
        case "uniform":
            return net.Law("uniform", low_s=(think.low_ns or 0) / 1e9, high_s=(think.high_ns or 0) / 1e9)
        case "exponential":
            return net.Law("exponential", mean_s=think.mean_s)
        case _:
            return net.Law("fixed", s=think.mean_s)


def _iteration(scenario: Scenario) -> net.Iteration:
    """Return a scenario with its steps, repeated groups written out."""
    first, *others = scenario.visits
    if any(count != first for count in others) and max(first, *others) > 1:
        raise net.NoModel("groups of its steps repeat within an iteration; a model knows whole iterations")
    once: Sequence[net.Visit] = [net.Visit(step.name, _think(step.think)) for step in scenario.steps]
    return net.Iteration(scenario.weight, [*once] * first)
