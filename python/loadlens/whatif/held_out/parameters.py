"""The parameters of a model, fitted to measured cases: CPU time and other time of a request.

The work of a class is the CPU time of one request at the service that works, by the utilisation law over all
measured cases. What a request takes when it is alone, less its work, is time in which it holds no core: the
network, a database, a timer. Each parameter has the standard error of its logarithm over trials, or within
the only one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadlens.estimate.demand import Demand, demand
from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.estimate.probes import idle_time
from loadlens.model.finding import Z_95
from loadlens.whatif.held_out.observed import (
    GENERATOR,
    SHAPE,
    Observed,
    cores_of,
    ended_per_s,
    shape_of,
    step_share,
)
from loadlens.whatif.queueing import NoModel

MUCH = 0.9  # of a core: below, other programs are in the way
STEADY_WORK = 0.7  # the fastest requests take at least so much of the work: then it hardly varies
FASTEST = 0.1  # of the requests
LEAST_ERROR = 0.002  # of a logarithm: nothing is known better


@dataclass(frozen=True, slots=True)
class Parameter:
    """A time above 0 with its uncertainty."""

    name: str  # "work of order"
    point: float  # seconds
    error: float  # standard error of the logarithm
    method: str

    def drawn(self, normal: float) -> float:
        """Return the value that many standard errors away."""
        return self.point * math.exp(self.error * normal)


@dataclass(frozen=True, slots=True, eq=False)
class ClassFit:
    """One kind of request."""

    name: str
    work: Parameter  # CPU seconds at the service
    alone: Parameter  # seconds from due to done when it meets no other request
    shape: Floats  # of `alone`: equally likely values with mean 1
    speed: float  # in cores, at which `alone` was measured

    @property
    def is_steady(self) -> bool:
        """True if work hardly varies: even the fastest requests take about as long."""
        fastest = float(np.quantile(self.shape, FASTEST)) * self.alone.point
        return fastest >= STEADY_WORK * self.work.point / self.speed

    def split(self, work: float, alone: float) -> tuple[Floats, Floats]:
        """Return equally likely pairs: CPU seconds and other seconds of a request.

        Where the work hardly varies it is the same for all, and the rest is what is left of each time.
        Otherwise both vary as the whole does.
        """
        times = self.shape * alone
        share = min(1.0, work / self.speed / alone)
        if self.is_steady:
            taken = np.minimum(times, work / self.speed)
            taken *= share * alone / float(taken.mean())
            return taken * self.speed, np.maximum(0.0, times - taken)
        return times * share * self.speed, times * (1 - share)


@dataclass(frozen=True, slots=True)
class ProbeFit:
    """A probe: hardly any work."""

    name: str
    work: float  # CPU seconds
    idle: float  # seconds on an idle service


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """All that a model takes from measurements."""

    classes: tuple[ClassFit, ...]
    probes: tuple[ProbeFit, ...]
    other_cpu: Parameter | None  # CPU seconds of a request elsewhere on the machine
    background: float  # cores that are busy without any request
    share: float  # of a core that a process got when ready to run: less than 1 next to other programs
    assumed: tuple[str, ...]  # assumptions in words

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All that are uncertain."""
        own = [p for each in self.classes for p in (each.work, each.alone)]
        return (*own, *([self.other_cpu] if self.other_cpu is not None else []))


def fit(cases: Sequence[Observed], probes: Sequence[str]) -> Fit:
    """Fit the parameters to measured cases.

    Args:
        cases: Of the same requests, with at least one usable trial each.
        probes: Names of those that the predicted case has.

    Raises:
        NoModel: What is missing.
    """
    light = [case for case in cases if case.is_light]
    if not light:
        raise NoModel(
            "no measured case has one user, or arrivals that hardly meet: how long a request takes without "
            "waiting is not known; measure users: [1] too"
        )
    lightest = min(light, key=lambda case: (-len({*probes} & {*case.case.probe_names}), case.in_flight))
    assumed: list[str] = []
    shares = []
    for trial in lightest.case.usable:
        own = [p for p in trial.resources.processes if p.service == lightest.site.service]
        used = sum(p.cpu.point for p in own if isinstance(p.cpu, Interval))
        waited = sum(p.waiting.point for p in own if isinstance(p.waiting, Interval))
        if used > 0:
            shares.append(part_of_a_core(used, waited, lightest.site.speed))
    share = float(np.median(shares)) if shares else 1.0
    if share < MUCH:
        assumed.append(
            f"other programs leave {share:.0%} of a core to the service, as in {lightest.case.name}"
        )
    work, background = _works(cases, assumed)
    classes = tuple(
        ClassFit(
            step.plan.name,
            work[step.plan.name],
            _alone(lightest, step.plan.index),
            _shape(lightest, step.plan.index),
            min(lightest.site.speed, share),
        )
        for step in lightest.load.steps
    )
    for each in classes:
        if each.work.point / each.speed > 1.05 * each.alone.point:
            assumed.append(
                f"{each.name} uses more CPU time than it takes alone: work after its answer is left out"
            )
    probed = _probes(lightest, probes, background)
    return Fit(classes, probed, _other_cpu(cases), background, share, tuple(assumed))


def part_of_a_core(used: float, waited: float, speed: float) -> float:
    """Return the part of a core that processes got when they were ready to run.

    The kernel counts the pauses of a quota as waiting, too; what a quota explains was not taken by others.

    Args:
        used: CPU time, in any unit.
        waited: Time that they were ready and did not run, in the same unit.
        speed: Cores that the quota allows, at most 1.
    """
    part = used / (used + waited)
    return 1.0 if speed < 1 and part >= MUCH * speed else part


def _works(cases: Sequence[Observed], assumed: list[str]) -> tuple[dict[str, Parameter], float]:
    """Return CPU seconds of each class at the service, and the cores that are busy without any request."""
    rows = [
        (case, load, cpu)
        for case in cases
        for trial, load in zip(case.case.usable, case.case.loads, strict=True)
        if (cpu := cores_of(trial, case.site.service)) is not None and cpu > 0 and ended_per_s(load) > 0
    ]
    if not rows:
        raise NoModel("the CPU time of the service's processes was not read: its work is not known")
    names = [step.plan.name for step in cases[0].load.steps]
    busy = np.array([cpu for _, _, cpu in rows])
    whole = np.array([[ended_per_s(load)] for _, load, _ in rows])
    shares = np.array([[step_share(load, place) for place in range(len(names))] for _, load, _ in rows])
    if len(names) > 1:
        apart = demand(busy, whole * shares)
        if isinstance(apart, Demand):
            pairs = zip(names, apart.per_request, strict=True)
            return {name: _of(f"work of {name}", work) for name, work in pairs}, apart.background.point
        assumed.append("classes share the CPU time in proportion to the time that they take alone")
    together = demand(busy, whole)
    if isinstance(together, Insufficient):
        total, background = _ratio(busy, whole[:, 0]), 0.0
    else:
        total, background = _of("work", together.per_request[0]), together.background.point
    return _divided(total, cases, names, shares.mean(axis=0)), background


def _divided(
    total: Parameter, cases: Sequence[Observed], names: Sequence[str], shares: Floats
) -> dict[str, Parameter]:
    """Divide the work of a mean request over its classes by the times that they take alone."""
    lightest = min((case for case in cases if case.is_light), key=lambda case: case.in_flight)
    alone = np.array([_alone(lightest, place).point for place in range(len(names))])
    mean = float(shares @ alone) / float(shares.sum())
    return {
        name: Parameter(f"work of {name}", total.point * alone_s / mean, total.error, total.method)
        for name, alone_s in zip(names, alone, strict=True)
    }


def _ratio(busy: Floats, rates: Floats) -> Parameter:
    """Return busy time over requests, where rates do not vary."""
    ratios = busy / rates
    spread = float(np.std(np.log(ratios), ddof=1)) / math.sqrt(ratios.size) if ratios.size > 1 else 0.05
    return Parameter(
        "work", float(np.exp(np.mean(np.log(ratios)))), max(LEAST_ERROR, spread), "busy time over requests"
    )


def _of(name: str, interval: Interval) -> Parameter:
    """Return a parameter from an estimate with its interval."""
    if interval.point <= 0:
        return Parameter(name, 1e-9, LEAST_ERROR, interval.method)
    error = LEAST_ERROR
    if interval.low is not None and interval.high is not None and interval.low > 0:
        error = max(error, math.log(interval.high / interval.low) / (2 * Z_95))
    elif interval.high is not None:
        error = max(error, math.log(interval.high / interval.point) / Z_95)
    return Parameter(name, interval.point, error, interval.method)


def _alone(case: Observed, step: int) -> Parameter:
    """Return the response time of a request that meets no other."""
    name = case.load.steps[step].plan.name
    means = [load.steps[step].response_mean for load in case.case.loads]
    answered = [mean for mean in means if isinstance(mean, Interval) and mean.point > 0]
    if not answered:
        raise NoModel(f"{name} was never answered in {case.case.name}")
    logs = np.log([mean.point for mean in answered])
    point = float(np.exp(logs.mean()))
    if len(answered) > 1:
        error = max(LEAST_ERROR, float(logs.std(ddof=1)) / math.sqrt(len(answered)))
        return Parameter(f"{name} alone", point, error, f"{len(answered)} trials of {case.case.name}")
    error = _of(name, answered[0]).error
    return Parameter(f"{name} alone", point, error, f"within one trial of {case.case.name}")


def _shape(case: Observed, step: int) -> Floats:
    counts = [load.steps[step].response for load in case.case.loads if load.steps[step].response.observed]
    if not counts:
        return np.ones(SHAPE)
    values = shape_of(counts)
    return values / float(values.mean())


def _probes(lightest: Observed, names: Sequence[str], background: float) -> tuple[ProbeFit, ...]:
    """Return probes; their work is the background that is busy without a request of the load."""
    probes = []
    for name in names:
        counts = [s.all_steps().response for s in lightest.case.probe_streams(name)]
        idle = [time for part in counts if not isinstance(time := idle_time(part), Insufficient)]
        if idle:
            streams = lightest.case.probe_streams(name)
            rate = sum(stream.plan.load for stream in streams) / len(streams)
            shared = background / rate / len(names) if rate > 0 else 0.0
            probes.append(ProbeFit(name, min(shared, float(np.mean(idle))), float(np.mean(idle))))
    return tuple(probes)


def _other_cpu(cases: Sequence[Observed]) -> Parameter | None:
    """Return CPU seconds of a request elsewhere: databases, balancers, a generator on the same cores."""
    busy, rates = [], []
    for case in cases:
        for trial, load in zip(case.case.usable, case.case.loads, strict=True):
            others = {p.service for p in trial.resources.processes if not p.is_lab} - {case.site.service}
            if trial.source.placement.shared:
                others.add(GENERATOR)
            cores = cores_of(trial, *others)
            if cores is not None and cores > 0 and ended_per_s(load) > 0:
                busy.append(cores)
                rates.append(ended_per_s(load))
    if not busy:
        return None
    each = demand(np.array(busy), np.array(rates)[:, None])
    if isinstance(each, Demand):
        return _of("CPU time elsewhere", each.per_request[0]) if each.per_request[0].point > 0 else None
    return replace(_ratio(np.array(busy), np.array(rates)), name="CPU time elsewhere")
