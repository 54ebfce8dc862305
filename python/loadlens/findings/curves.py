"""What several rules ask of a load curve: its capacity, its knee, and which processes carry the load."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadlens.model.facts import Curve, ProcessWatch, Step
from loadlens.model.finding import Estimate
from loadlens.stats import saturation as load
from loadlens.stats.interval import Insufficient

WORKING_SHARE = 0.25  # of the busiest process: below, a process supervises or idles


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a curve says of the highest throughput, and the step that says it."""

    saturation: load.Saturation
    top: Step
    alone_s: float | None
    alone_is_measured: bool  # at one user; else the CPU time of a request stands for it, a lower bound


def capacity_of(curve: Curve) -> Capacity | Insufficient:
    """Return whether a closed curve reached its capacity, and where its knee is."""
    if not curve.is_closed:
        return Insufficient("the load is open: nothing waits for an answer before it asks again")
    usable = [step for step in curve.steps if step.throughput_trials and min(step.throughput_trials) > 0]
    alone, is_measured = alone_time(curve)
    steps = [load.Step(step.load, np.array(step.throughput_trials)) for step in usable]
    found = load.saturation(steps, alone_s=alone, think_s=curve.think_s)
    if isinstance(found, Insufficient):
        return found
    return Capacity(found, usable[-1], alone, is_measured)


def alone_time(curve: Curve) -> tuple[float | None, bool]:
    """Mean response time of a user who is alone, and whether it was measured at one user."""
    first = curve.steps[0] if curve.steps else None
    if first is not None and first.load == 1 and isinstance(first.response.mean, Estimate):
        return first.response.mean.point, True
    if isinstance(curve.work_all, Estimate):
        return curve.work_all.point, False
    return None, False


def working(step: Step) -> list[ProcessWatch]:
    """The processes that carry the load of a step."""
    most = max((process.cores for process in step.processes), default=0.0)
    return [p for p in step.processes if p.cores >= WORKING_SHARE * most and p.cores > 0]
