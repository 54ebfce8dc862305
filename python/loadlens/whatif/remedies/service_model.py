"""A service as a small queueing model: time of a request, limiter of concurrent requests, cores.

Plain values that a remedy changes; `network_of` writes them as the simulator takes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from loadlens.whatif import queueing as net

CORES, LIMITER, PROBE = "cores", "gate", "probe"
MOST_EVENTS: Final = 400_000  # of one simulation: 0.1 s

LimiterKind = Literal["loop", "pool", "section"]
LawKind = Literal["fixed", "exponential", "mixed"]
Pause = Literal["fixed", "exponential"]  # of users between two requests


@dataclass(frozen=True, slots=True)
class Limiter:
    """A limit on concurrent requests; the others wait."""

    kind: LimiterKind  # loop: while they compute; pool: from beginning to end; section: for `hold_s`
    width: int = 1
    passes: int = 1  # how often a request queues for a loop
    hold_s: float = 0.0
    is_each: bool = False  # one in each process or replica


@dataclass(frozen=True, slots=True)
class ProbeLoad:
    """A thin stream of cheap requests."""

    per_s: float
    idle_s: float  # response time on an idle service
    is_load: bool  # its requests are those of the load


@dataclass(frozen=True, slots=True)
class Replica:
    """One of several that do the same work, with unequal shares or speeds."""

    share: float  # of the requests
    slower: float = 1.0  # times as long


@dataclass(frozen=True, slots=True)
class ExtraWait:
    """A slow path: some requests do what all do, and then wait for something else."""

    share: float  # of the requests
    longer_s: float


@dataclass(frozen=True, slots=True)
class ServiceModel:
    """A service, and the machine as far as requests use it."""

    work_s: float  # CPU seconds of a request in the processes that answer
    rest_s: float  # seconds of a request without a core, the time in a section left out
    cores: float  # that requests may use; infinite: not known
    other_cpu_s: float = 0.0  # CPU seconds of a request in other processes on the same cores
    speed: float = 1.0  # cores that one request gets at most
    members: int = 1  # processes that take requests
    policy: str = "least_connections"  # one of POLICIES
    limiter: Limiter | None = None
    law: LawKind = "fixed"  # of the longest part
    shape: tuple[float, ...] = ()  # of a mixed law: equally likely values with mean 1
    probe_load: ProbeLoad | None = None
    replicas: tuple[Replica, ...] = ()  # each with a pool of its own; empty: one, or all alike
    slow: ExtraWait | None = None

    @property
    def alone_s(self) -> float:
        """Mean response time of a request that meets no other."""
        hold = 0.0 if self.limiter is None else self.limiter.hold_s
        slower = sum(r.share * r.slower for r in self.replicas) if self.replicas else 1.0
        return self.other_cpu_s + (self.work_s / self.speed + self.rest_s) * slower + self.longer_s + hold

    @property
    def longer_s(self) -> float:
        """Seconds that the slow path adds to the mean."""
        return 0.0 if self.slow is None else self.slow.share * self.slow.longer_s

    @property
    def has_each(self) -> bool:
        """True if several processes have a limiter each."""
        return self.members > 1 and self.limiter is not None and self.limiter.is_each

    @property
    def ceiling(self) -> float:
        """Upper bound of requests per second; infinite if no limit is known."""
        computing = self.work_s + self.other_cpu_s
        limits = [self.cores / computing if computing > 0 else math.inf]
        limiter = self.limiter
        if limiter is None:
            return limits[0]
        width = limiter.width * (self.members if limiter.is_each else 1)
        whole = self.work_s / self.speed + self.rest_s + self.longer_s
        if limiter.kind == "loop" and self.work_s > 0:
            limits.append(width / self.work_s)
        elif limiter.kind == "pool" and self.replicas:
            limits += [limiter.width / (whole * r.slower * r.share) for r in self.replicas if r.share > 0]
        elif limiter.kind == "pool":
            limits.append(width / whole)
        elif limiter.kind == "section" and limiter.hold_s > 0:
            limits.append(width / limiter.hold_s)
        return min(limits)

    def law_of(self, mean: float) -> net.Law:
        """Return the law of the longest part."""
        if self.law == "mixed" and self.shape:
            return net.empirical(mean * part for part in self.shape)
        return net.exponential(mean) if self.law == "exponential" else net.fixed(mean)

    def computing(self, law: net.Law) -> net.Step:
        """Return work on the cores, or plain time where their number is not known."""
        return net.serve(CORES, law) if math.isfinite(self.cores) else net.delay(law)


def network_of(
    service: ServiceModel, users: int, think_s: float, *, pause: Pause = "fixed", requests: int, seed: int
) -> net.Network:
    """Return a service under users, for the simulator.

    Args:
        service: The service.
        users: Of a closed load.
        think_s: Mean pause of a user.
        pause: Law of the pause.
        requests: Counted ones, about; the warm-up has as many rounds of the users as fill every queue.
        seed: Of every draw.
    """
    rate = min(service.ceiling, users / (service.alone_s + think_s))
    slow, replicas = service.slow, service.replicas
    if replicas:
        places = [(f"{net.LOAD}-{place}", replica) for place, replica in enumerate(replicas)]
        ways = [
            (
                replica.share,
                net.RequestClass(name, _route(service, f"{LIMITER}-{place}", replica.slower)),
            )
            for place, (name, replica) in enumerate(places)
        ]
    elif slow is None or slow.share <= 0:
        ways = [(1.0, net.RequestClass(net.LOAD, _route(service)))]
    else:
        ways = [
            (1 - slow.share, net.RequestClass(net.LOAD, _route(service))),
            (slow.share, net.RequestClass(f"{net.LOAD}-slow", _route(service, longer_s=slow.longer_s))),
        ]
    classes = [way for _, way in ways]
    scenarios = [net.Iteration(share, [net.Visit(way.name)]) for share, way in ways]
    think = net.exponential(think_s) if pause == "exponential" else net.fixed(think_s)
    streams = [net.Stream(net.LOAD, net.Load("closed", users=users, think=think), scenarios)]
    probe = service.probe_load
    if probe is not None and probe.per_s > 0:
        load = net.Load("open", rate_per_s=probe.per_s, arrivals="poisson")
        if not probe.is_load:
            classes.append(net.RequestClass(PROBE, _probe_route(service, probe)))
        streams.append(net.probe_stream(PROBE, load, scenarios if probe.is_load else ()))
    return net.Network(
        seed=seed,
        warmup_s=max(2 * users, requests / 5) / rate,
        duration_s=requests / rate,
        most_events=MOST_EVENTS,
        groups=[net.Group(net.MEMBERS, service.members, service.policy)] if service.has_each else [],
        stations=_stations(service),
        classes=classes,
        streams=streams,
    )


def _stations(service: ServiceModel) -> list[net.Station]:
    stations: list[net.Station] = []
    if math.isfinite(service.cores):
        stations.append(net.cores(CORES, service.cores, min(service.speed, service.cores)))
    if service.limiter is not None:
        each = net.MEMBERS if service.has_each else None
        names = [f"{LIMITER}-{place}" for place in range(len(service.replicas))] or [LIMITER]
        width = float(service.limiter.width)
        stations += [net.Station(name, "semaphore", width, each=each) for name in names]
    return stations


def _route(
    service: ServiceModel, station: str = LIMITER, slower: float = 1.0, *, longer_s: float = 0.0
) -> net.Route:
    """Return the way of a request: a process, work elsewhere, the limiter, the rest."""
    limiter, work_s, rest_s = service.limiter, service.work_s * slower, service.rest_s * slower
    kind = None if limiter is None else limiter.kind
    # The longest part varies: it is what others wait for.
    longest = "hold" if kind == "section" else "work" if work_s >= rest_s else "rest"
    work = service.computing(service.law_of(work_s) if longest == "work" else net.fixed(work_s))
    rests = [net.delay(service.law_of(rest_s) if longest == "rest" else net.fixed(rest_s))]
    if longer_s > 0:
        rests.append(net.delay(net.fixed(longer_s)))
    route = [net.Step("choose", group=net.MEMBERS)] if service.has_each else []
    if service.other_cpu_s > 0:
        route.append(service.computing(net.fixed(service.other_cpu_s)))
    if limiter is not None and kind == "loop":
        route += net.holding(station) * (limiter.passes - 1)
    route += net.through(kind, station, work, rests)
    if limiter is not None and kind == "section":
        route += net.holding(station, [net.delay(service.law_of(limiter.hold_s))])
    return route


def _probe_route(service: ServiceModel, probe: ProbeLoad) -> net.Route:
    """Return the way of a cheap request: like any, with hardly any time in a process or thread."""
    half = net.fixed(probe.idle_s / 2)
    kind = None if service.limiter is None else service.limiter.kind
    route = [net.Step("choose", group=net.MEMBERS)] if service.has_each else []
    return route + net.through(kind, LIMITER, service.computing(half), [net.delay(half)])
