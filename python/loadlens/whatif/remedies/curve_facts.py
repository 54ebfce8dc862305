"""Inputs of a model from one load curve: capacity, a request alone, its work, the cores, the probe."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from loadlens.diagnose.capacity import most_of
from loadlens.measure.curve import Capacity, capacity_of, completed, succeeded, working
from loadlens.model.facts import Curve, Facts, ProbeWatch, Step
from loadlens.model.finding import Z_95, Estimate, Evidence, Figure, Finding
from loadlens.whatif.queueing import MOST_FAILED, NoModel
from loadlens.whatif.remedies.service_model import ProbeLoad

LEAST_ERROR: Final = 0.005  # of a logarithm: no figure is more precise
UNKNOWN_ERROR: Final = 0.05  # of a logarithm, where an interval is open


@dataclass(frozen=True, slots=True)
class SlowShare:
    """A slow path, as it was fitted to the times of single requests."""

    share: Estimate  # of the requests
    longer: Estimate  # seconds
    usual: Estimate  # mean seconds of the other requests on an idle service


@dataclass(frozen=True, slots=True)
class Ladder:
    """A load curve that reached its limit, as far as a model needs it."""

    curve: Curve
    steps: tuple[Step, ...]  # those that a model must reproduce, ascending
    top: Step
    knee: Step  # the lowest level on the plateau
    rate: Figure  # the most per second, as the answer has it
    alone: Estimate  # seconds of a request of one user
    work: Estimate | None  # CPU seconds in the processes that answer; none: not watched
    other_cpu_s: float  # CPU seconds in other processes on the same cores
    cores: float
    members: int  # processes that answer
    probe: ProbeWatch | None
    probe_load: ProbeLoad | None
    shape: tuple[float, ...]  # relative times of the classes, if there are several
    slow: SlowShare | None = None  # where the model is to have it
    bounded_by: str = ""  # why `rate` is a lower bound; empty: it is none

    @property
    def most_per_s(self) -> float:
        """The highest rate that requests of the load were answered at."""
        return self.rate.point if isinstance(self.rate, Estimate) else 0.0

    def must_be_reached(self) -> None:
        """Check that the rate is the most that the service does.

        Raises:
            NoModel: It is not known, or a lower bound.
        """
        if not isinstance(self.rate, Estimate):
            raise NoModel(f"the capacity is not known: {self.rate.reason}")
        if self.bounded_by:
            raise NoModel(f"of the capacity a lower bound is known: {self.bounded_by}")


def ladder_of(facts: Facts, curve: Curve) -> Ladder:
    """Return what a model needs of a curve.

    Raises:
        NoModel: Something is missing.
    """
    if not curve.is_closed:
        raise NoModel("the load is open: how much the service does at most was not asked")
    capacity = capacity_of(curve)
    if not isinstance(capacity, Capacity):
        raise NoModel(f"the capacity is not known: {capacity.reason}")
    if capacity.saturation.verdict == "underdriven":
        raise NoModel(f"the capacity was not reached: {capacity.saturation.reason}")
    if capacity.saturation.verdict == "retrograde":
        raise NoModel(f"{capacity.saturation.reason}: queues alone do not do that")
    alone = curve.steps[0].response.mean
    if curve.steps[0].load != 1 or not isinstance(alone, Estimate) or alone.point <= 0:
        raise NoModel("the time of a request alone is not known: no level of one user")
    usable = tuple(
        step for step in curve.steps if not _fails(step) and isinstance(step.response.mean, Estimate)
    )
    if len(usable) < 2 or usable[-1] is not capacity.top:
        raise NoModel("too many requests failed at the highest level")
    knee = next(s for s in usable if s.load >= capacity.saturation.plateau_from)
    generator = generator_of(facts, curve)
    work, other_cpu_s = _works(curve, capacity.top, generator)
    probe = next((p for p in capacity.top.probes if isinstance(p.response.mean, Estimate)), None)
    most = most_of(curve, capacity)
    return Ladder(
        curve=curve,
        steps=usable,
        top=capacity.top,
        knee=knee,
        rate=most.figure,
        alone=alone,
        work=work,
        other_cpu_s=other_cpu_s,
        cores=_cores(facts, curve, capacity.top, generator),
        members=max(1, len(working(capacity.top))),
        probe=probe,
        probe_load=None if probe is None else _probe_load(capacity.top, probe),
        shape=_shape(curve.steps[0]),
        bounded_by=most.bounded_by,
    )


def error_of(figure: Estimate) -> float:
    """Return the standard error of the logarithm of a figure, by its interval."""
    if figure.low is None or figure.high is None or figure.low <= 0:
        return UNKNOWN_ERROR
    return max(LEAST_ERROR, math.log(figure.high / figure.low) / (2 * Z_95))


def signal(finding: Finding, name: str) -> Evidence | None:
    """Return the piece of evidence of this name, if it has a value and speaks for the finding."""
    for piece in finding.evidence:
        if piece.signal == name and piece.value is not None and piece.passed is not False:
            return piece
    return None


def value_of(finding: Finding, name: str) -> float | None:
    """Return the value of this piece of evidence."""
    piece = signal(finding, name)
    return None if piece is None else piece.value


def _fails(step: Step) -> bool:
    return isinstance(step.failed, Estimate) and step.failed.point > MOST_FAILED


def _works(curve: Curve, top: Step, generator: Slope) -> tuple[Estimate | None, float]:
    """Return CPU seconds of a request in the processes that answer, and elsewhere on their cores."""
    whole = curve.work_all
    if not isinstance(whole, Estimate) or whole.point <= 0:
        return None, generator.per_request
    share = sum(p.cores for p in working(top)) / top.server_cores if top.server_cores > 0 else 1.0
    low, high = (None if end is None else end * share for end in (whole.low, whole.high))
    own = replace(whole, point=whole.point * share, low=low, high=high)
    return own, generator.per_request + whole.point * (1 - share)


@dataclass(frozen=True, slots=True)
class Slope:
    """Cores of the generator: those of every request, and those that it takes anyway."""

    per_request: float = 0.0
    always: float = 0.0


def generator_of(facts: Facts, curve: Curve) -> Slope:
    """Return its cores if it shares those of the service, from the levels with fewest and most requests."""
    if curve.shares_cores is False or curve.cores_allotted < facts.cores:
        return Slope()
    seen = [
        (succeeded(step), step.generator.cpu_cores)
        for step in curve.steps
        if step.generator.cpu_cores is not None and step.throughput_trials
    ]
    if not seen:
        return Slope()
    (few, idle), (many, busy) = min(seen), max(seen)
    each = max(0.0, (busy - idle) / (many - few)) if many > few else 0.0
    return Slope(each, max(0.0, min(busy, busy - each * many)))


def _cores(facts: Facts, curve: Curve, top: Step, generator: Slope) -> float:
    """Return the cores that requests may use, without those of the idle generator and of other programs."""
    if curve.cores_allotted < facts.cores:
        return curve.cores_allotted
    return max(0.1, curve.cores_allotted - (top.other_cores or 0.0) - generator.always)


def _probe_load(top: Step, probe: ProbeWatch) -> ProbeLoad | None:
    """Return the probe's rate, from its count and the requests of the load meanwhile."""
    ended = completed(top)
    if not top.issued or ended <= 0 or probe.idle_s is None:
        return None
    is_load = probe.request in {c.request for c in top.classes}
    return ProbeLoad(probe.count * ended / top.issued, probe.idle_s, is_load)


def _shape(first: Step) -> tuple[float, ...]:
    """Return times of the classes over their mean, each repeated by its share of requests in twentieths."""
    pairs = [
        (c.rate.point, c.response.mean.point)
        for c in first.classes
        if isinstance(c.rate, Estimate) and isinstance(c.response.mean, Estimate)
    ]
    whole = sum(rate for rate, _ in pairs)
    if len(pairs) < 2 or whole <= 0:
        return ()
    values = [time for rate, time in pairs for _ in range(max(1, round(20 * rate / whole)))]
    mean = sum(values) / len(values)
    return tuple(value / mean for value in values) if mean > 0 else ()
