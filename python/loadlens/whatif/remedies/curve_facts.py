"""What one load curve tells a model: capacity, a request alone, its work, the cores, the probe."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from loadlens.diagnose.capacity import most_of
from loadlens.measure.curve import Capacity, capacity_of, completed, succeeded, working
from loadlens.model.facts import Curve, Facts, ProbeWatch, Step
from loadlens.model.finding import Estimate, Evidence, Figure, Finding
from loadlens.whatif.remedies.service_model import Beside, NoModel

MOST_FAILED: Final = 0.05  # of a level's requests: the times of the others are then not those of the load
LEAST_ERROR: Final = 0.005  # of a logarithm: nothing is known better
UNKNOWN_ERROR: Final = 0.05  # of a logarithm, where an interval is open
T_95: Final = 1.96


@dataclass(frozen=True, slots=True)
class SlowKnown:
    """A slow path, as it was fitted to the times of single requests."""

    share: Estimate  # of the requests
    longer: Estimate  # seconds
    usual: Estimate  # mean seconds of the other requests where nobody waits


@dataclass(frozen=True, slots=True)
class Known:
    """A curve that reached its limit, as far as a model needs it."""

    curve: Curve
    steps: tuple[Step, ...]  # those that a model must reproduce, ascending
    top: Step
    knee: Step  # the lowest level on the plateau
    rate: Figure  # the most per second, as the answer has it
    alone: Estimate  # seconds of a request of one user
    work: Estimate | None  # CPU seconds in the processes that answer; none: not watched
    aside_s: float  # CPU seconds elsewhere on the same cores
    cores: float
    members: int  # processes that answer
    probe: ProbeWatch | None
    beside: Beside | None
    shape: tuple[float, ...]  # relative times of the classes, if there are several
    slow: SlowKnown | None = None  # where the model is to have it
    bounded_by: str = ""  # why `rate` is a lower bound; empty: it is none

    @property
    def most_per_s(self) -> float:
        """The highest rate that requests of the load were answered at."""
        return self.rate.point if isinstance(self.rate, Estimate) else 0.0

    def must_be_reached(self) -> None:
        """See to it that the rate is one that the service does at most.

        Raises:
            NoModel: It is not known, or a lower bound.
        """
        if not isinstance(self.rate, Estimate):
            raise NoModel(f"the capacity is not known: {self.rate.reason}")
        if self.bounded_by:
            raise NoModel(f"of the capacity a lower bound is known: {self.bounded_by}")


def known_of(facts: Facts, curve: Curve) -> Known:
    """Return what a curve tells.

    Raises:
        NoModel: What is missing.
    """
    found = _capacity(curve)
    alone = curve.steps[0].response.mean
    if curve.steps[0].load != 1 or not isinstance(alone, Estimate) or alone.point <= 0:
        raise NoModel("the time of a request alone is not known: no level of one user")
    usable = tuple(
        step for step in curve.steps if not _fails(step) and isinstance(step.response.mean, Estimate)
    )
    if len(usable) < 2 or usable[-1] is not found.top:
        raise NoModel("too many requests failed at the highest level")
    knee = next(s for s in usable if s.load >= found.saturation.plateau_from)
    generator = generator_of(facts, curve)
    work, aside = _works(curve, found.top, generator)
    probe = next((p for p in found.top.probes if isinstance(p.response.mean, Estimate)), None)
    most = most_of(curve, found)
    return Known(
        curve=curve,
        steps=usable,
        top=found.top,
        knee=knee,
        rate=most.figure,
        alone=alone,
        work=work,
        aside_s=aside,
        cores=_cores(facts, curve, found.top, generator),
        members=max(1, len(working(found.top))),
        probe=probe,
        beside=None if probe is None else _beside(found.top, probe),
        shape=_shape(curve.steps[0]),
        bounded_by=most.bounded_by,
    )


def error_of(figure: Estimate) -> float:
    """Standard error of the logarithm of a figure, by its interval."""
    if figure.low is None or figure.high is None or figure.low <= 0:
        return UNKNOWN_ERROR
    return max(LEAST_ERROR, math.log(figure.high / figure.low) / (2 * T_95))


def signal(finding: Finding, *names: str) -> Evidence | None:
    """The first of these pieces of evidence that has a value."""
    for name in names:
        for piece in finding.evidence:
            if piece.signal == name and piece.value is not None and piece.passed is not False:
                return piece
    return None


def _capacity(curve: Curve) -> Capacity:
    if not curve.is_closed:
        raise NoModel("the load is open: how much the service does at most was not asked")
    found = capacity_of(curve)
    if not isinstance(found, Capacity):
        raise NoModel(f"the capacity is not known: {found.reason}")
    if found.saturation.verdict == "underdriven":
        raise NoModel(f"the capacity was not reached: {found.saturation.reason}")
    if found.saturation.verdict == "retrograde":
        raise NoModel(f"{found.saturation.reason}: queues alone do not do that")
    return found


def _fails(step: Step) -> bool:
    return isinstance(step.failed, Estimate) and step.failed.point > MOST_FAILED


def _works(curve: Curve, top: Step, generator: Slope) -> tuple[Estimate | None, float]:
    """CPU seconds of a request in the processes that answer, and those elsewhere on their cores."""
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
    """Where it shares the cores of the service, from the levels with the least and the most requests."""
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
    """Cores that requests may use: what the generator always takes and programs of nobody here is gone."""
    if curve.cores_allotted < facts.cores:
        return curve.cores_allotted
    return max(0.1, curve.cores_allotted - (top.other_cores or 0.0) - generator.always)


def _beside(top: Step, probe: ProbeWatch) -> Beside | None:
    """The probe's rate, from how many there were while so many requests of the load were issued."""
    ended = completed(top)
    if not top.issued or ended <= 0 or probe.idle_s is None:
        return None
    is_load = probe.request in {c.request for c in top.classes}
    return Beside(probe.count * ended / top.issued, probe.idle_s, is_load)


def _shape(first: Step) -> tuple[float, ...]:
    """Times of the classes over their mean, each as often as its share of the requests in twentieths."""
    known = [
        (c.rate.point, c.response.mean.point)
        for c in first.classes
        if isinstance(c.rate, Estimate) and isinstance(c.response.mean, Estimate)
    ]
    whole = sum(rate for rate, _ in known)
    if len(known) < 2 or whole <= 0:
        return ()
    values = [time for rate, time in known for _ in range(max(1, round(20 * rate / whole)))]
    mean = sum(values) / len(values)
    return tuple(value / mean for value in values) if mean > 0 else ()
