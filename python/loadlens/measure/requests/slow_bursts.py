"""Slow requests by when they come: what expires, or runs now and then, makes those slow that it meets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loadlens.estimate.pauses import Bursts
from loadlens.measure.case import CaseMeasures
from loadlens.measure.requests.samples import Rows
from loadlens.model.shapes import SlowBursts

CALM = 1.2  # times the usual time under the lightest load: beyond, requests wait for each other


def slow_bursts(cases: Sequence[CaseMeasures], dense: Sequence[CaseMeasures]) -> tuple[SlowBursts, ...]:
    """Return the bursts of slow requests of each trial at a load under which requests do not wait.

    Args:
        cases: The levels of a curve, ascending.
        dense: Cases with the same requests and dense probes.
    """
    first = cases[0].reference
    if first is None:
        return ()
    wanted = [step.request for step in first.plan.steps]
    alike = [
        case
        for case in dense
        if case.reference is not None and [step.request for step in case.reference.plan.steps] == wanted
    ]
    bursts_of: list[SlowBursts] = []
    for step in first.plan.steps:
        seen = list(_of([*cases, *alike], step.index))
        least_s = min((bursts.usual_s for _, bursts in seen), default=0.0)
        bursts_of += [
            SlowBursts(
                label=step.name,
                request=step.request,
                load=load,
                begin_s=tuple(bursts.begin_s.tolist()),
                end_s=tuple(bursts.end_s.tolist()),
                longer_s=bursts.longer_s,
                slow=bursts.slow,
                requests=bursts.requests,
                usual_s=bursts.usual_s,
            )
            for load, bursts in seen
            if bursts.slow and bursts.usual_s <= CALM * least_s
        ]
    return tuple(bursts_of)


def _of(cases: Sequence[CaseMeasures], step: int) -> Iterator[tuple[float, Bursts]]:
    for case in cases:
        for trial in case.usable:
            bursts = trial.rows.bursts[step] if isinstance(trial.rows, Rows) and trial.rows.bursts else None
            if bursts is not None and case.reference is not None:
                yield case.reference.plan.load, bursts
