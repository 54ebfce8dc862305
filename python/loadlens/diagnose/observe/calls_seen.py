"""Calls of a service to other programs of its machine, as the kernel saw them: their part of requests' time.

By Little's law calls under way over throughput is the time that a request spends in them. Where several go
side by side, each counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from loadlens.diagnose import grading
from loadlens.diagnose.observe import limits
from loadlens.diagnose.observe.waits import MOSTLY, Full
from loadlens.measure.curve import completed
from loadlens.model.facts import Curve, Step
from loadlens.model.finding import Estimate
from loadlens.present.numbers import percent, with_unit

AS_ALONE = 1.2  # times the response time of the lightest load: up to there hardly any request waits
SEVERAL = 1.5  # segments with data for each request: several calls, which may go side by side
NEARLY_ALL = 0.8  # of the waiting, where they may


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


def spent(steps: Sequence[Step]) -> tuple[Spent, ...]:
    """Return the time of a request in calls over levels of load, the longest first; those of each level.

    What is under way before the load is no call of a request. Those that fail are counted as well.
    """
    rate = sum(completed(step) for step in steps)
    every = []
    for first in steps[0].calls if steps and rate > 0 else ():
        same = [calls for step in steps for calls in step.calls if calls.to == first.to]
        held = [point for calls in same if (point := limits.point(calls.under_way)) is not None]
        if len(held) == len(steps):
            under_way = sum(
                max(0.0, point - (calls.under_way.before or 0.0))
                for point, calls in zip(held, same, strict=True)
            )
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
        if isinstance(step.response.mean, Estimate)
        and step.response.mean.point <= AS_ALONE * alone.point
        and step.completed_trials
    ]


def growth(full: Full) -> Growth | None:
    """Return the calls in which most of the waiting is; none: requests wait elsewhere, or it is not seen.

    A program that is called in turn by one that waits for it takes less time: it is the one.
    """
    before = {calls.name: calls for calls in spent(light(full.curve))}
    mean = full.top.response.mean
    if (
        not isinstance(mean, Estimate)
        or not isinstance(full.alone, Estimate)
        or mean.point <= full.alone.point
    ):
        return None
    waiting_s = mean.point - full.alone.point
    for calls in reversed(spent([full.top])):
        then = before.get(calls.name)
        if then is None or then.seconds > AS_ALONE * full.alone.point:
            continue  # those that go side by side take longer together than the request
        share = (calls.seconds - then.seconds) / waiting_s
        if share >= (MOSTLY if calls.per_request <= SEVERAL else NEARLY_ALL):
            return Growth(calls.name, then.seconds, calls.seconds, min(1.0, share))
    return None
