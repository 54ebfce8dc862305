"""Calls of a service to other programs of its machine, as the kernel saw them: their part of requests' time.

By Little's law calls under way over throughput is the time that a request spends in them. Of calls that go
side by side each counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from loadlens.diagnose import grading
from loadlens.diagnose.observe import limits
from loadlens.diagnose.observe.waits import MOSTLY, Full
from loadlens.measure import figures
from loadlens.model.facts import Curve, Step
from loadlens.model.finding import Estimate
from loadlens.present.numbers import percent, with_unit

AS_ALONE = 1.2  # times the response time of the lightest load: up to there hardly any request waits


@dataclass(frozen=True, slots=True)
class Spent:
    """The time that a request spends in calls to one program."""

    name: str  # `calls to postgres:5432`
    seconds: float
    per_request: float  # segments with data: one for a short call


@dataclass(frozen=True, slots=True)
class Growth:
    """Calls that take longer under load."""

    name: str
    before_s: float  # of each request, at light loads
    now_s: float
    of_waiting: float  # share of the time that requests wait

    def signal(self) -> grading.Signal:
        """State the times."""
        text = (
            f"{self.name} take {with_unit(self.now_s, 's')} of each request, "
            f"{with_unit(self.before_s, 's')} at light loads"
        )
        chip = f"{percent(self.of_waiting)} of the waiting"
        return grading.stated("calls.wait", True, text=text, chip=chip, value=self.of_waiting)


def spent(steps: list[Step]) -> tuple[Spent, ...]:
    """Return the time of a request in calls over levels of load, the longest first; those of each level."""
    rate = sum(figures.point(step.throughput) for step in steps)
    every = []
    for first in steps[0].calls if steps and rate > 0 else ():
        same = [calls for step in steps for calls in step.calls if calls.to == first.to]
        if len(same) == len(steps):
            under_way = sum(limits.point(calls.under_way) or 0.0 for calls in same)
            each = fmean(calls.per_request for calls in same)
            every.append(Spent(first.under_way.name, under_way / rate, each))
    return tuple(sorted(every, key=lambda calls: -calls.seconds))


def light(curve: Curve) -> list[Step]:
    """Return the levels at which hardly any request waits: the lightest, and those that take as long."""
    alone = curve.steps[0].response.mean
    if not isinstance(alone, Estimate):
        return []
    return [
        step
        for step in curve.steps
        if isinstance(step.response.mean, Estimate) and step.response.mean.point <= AS_ALONE * alone.point
    ]


def growth(full: Full) -> Growth | None:
    """Return the calls in which most of the waiting is; none: requests wait elsewhere, or it is not seen."""
    now, before = spent([full.top]), {calls.name: calls for calls in spent(light(full.curve))}
    mean = full.top.response.mean
    if not isinstance(mean, Estimate) or not isinstance(full.alone, Estimate):
        return None
    waiting_s = mean.point - full.alone.point
    for calls in now:
        if calls.name in before and waiting_s > 0:
            grown = calls.seconds - before[calls.name].seconds
            if grown >= MOSTLY * waiting_s:
                share = min(1.0, grown / waiting_s)
                return Growth(calls.name, before[calls.name].seconds, calls.seconds, share)
    return None
