"""Objectives of a search: the throughput against the capacity, everything else at the knee.

More users than at the knee only wait, so no level beyond it is a load to run at. Where the capacity was not
reached, the highest level is judged; where requests failed and ended the load, the level at which they did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadlens.estimate.interval import Insufficient
from loadlens.measure.case import CaseMeasures
from loadlens.measure.curve import capacity_of
from loadlens.measure.metrics import figure_of, unit_of
from loadlens.model.explanation import Rung
from loadlens.model.facts import Curve, Step
from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided
from loadlens.model.report import ObjectiveRow
from loadlens.model.study import UNSUCCESSFUL, Objective
from loadlens.present import objective_text, words

THROUGHPUT = "throughput"
SHARES = (UNSUCCESSFUL, "failed.share", "unexpected.share")


def rows(
    objectives: Sequence[Objective],
    curve: Curve | None,
    capacity: Figure,
    cases: Sequence[CaseMeasures],
    *,
    is_failing: bool = False,
    failing: Rung | None = None,
) -> tuple[ObjectiveRow, ...]:
    """Return the verdict on each objective.

    Args:
        objectives: Limits on metrics.
        curve: The load curve; none: no level was measured.
        capacity: Of the curve.
        cases: Every level with its requests.
        is_failing: Failures ended the load.
        failing: The level at which they did, if it was not measured to its end.
    """

    def row(objective: Objective) -> ObjectiveRow:
        if objective.metric in SHARES and failing is not None and isinstance(failing.failed, Estimate):
            share = failing.failed.point
            seen = replace(failing.failed, metric=objective.metric, low=share, high=share)
            return objective_text.judged(objective, seen, f"at {words.users(failing.users)}")
        return _row(objective, curve, capacity, cases, at_top=is_failing and objective.metric in SHARES)

    return tuple(map(row, objectives))


def _row(
    objective: Objective,
    curve: Curve | None,
    capacity: Figure,
    cases: Sequence[CaseMeasures],
    *,
    at_top: bool,
) -> ObjectiveRow:
    if curve is None or not curve.steps:
        return objective_text.judged(objective, NotMeasured(objective.metric, "no level was measured"))
    if objective.metric == THROUGHPUT:
        return _throughput(objective, curve, capacity)
    step, place = _highest(curve) if at_top else _knee(curve)
    return objective_text.judged(objective, _figure(step, objective.metric, cases), place)


def _throughput(objective: Objective, curve: Curve, capacity: Figure) -> ObjectiveRow:
    """Judge the capacity; where it was not reached, the level with the most throughput, a lower bound."""
    if isinstance(capacity, Estimate):
        return objective_text.judged(objective, capacity, "at full load")
    measured = [step for step in curve.steps if isinstance(step.throughput, Estimate)]
    if not measured:
        return objective_text.judged(objective, capacity)
    top = max(
        measured, key=lambda step: step.throughput.point if isinstance(step.throughput, Estimate) else 0
    )
    assert isinstance(top.throughput, Estimate)
    reached = replace(top.throughput, metric=THROUGHPUT, high=None)
    row = objective_text.judged(objective, reached, f"at {words.users(top.load)}, and more was not tried")
    return row if row.state != "bad" else objective_text.judged(objective, capacity)


def _knee(curve: Curve) -> tuple[Step, str]:
    """Return the lowest level on the plateau, or the highest level, in words."""
    capacity = capacity_of(curve)
    if not isinstance(capacity, Insufficient) and capacity.saturation.verdict != "underdriven":
        on_plateau = [step for step in curve.steps if step.load >= capacity.saturation.plateau_from]
        if on_plateau:
            return on_plateau[0], f"at {words.users(on_plateau[0].load)}, where throughput stops"
    return _highest(curve)


def _highest(curve: Curve) -> tuple[Step, str]:
    top = curve.steps[-1]
    return top, f"at {words.users(top.load)}, the most that was measured"


def _figure(step: Step, metric: str, cases: Sequence[CaseMeasures]) -> Figure:
    if metric == UNSUCCESSFUL:
        return replace(step.failed, metric=metric)
    case = next((case for case in cases if case.name == step.label), None)
    if case is None:
        return Undecided(metric, unit_of(metric), f"no figures of {step.label}")
    return figure_of(case, metric, None)
