"""Objectives of a study: limit, value, interval and verdict on one row."""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.measure.case import CaseMeasures
from loadlens.measure.metrics import figure_of
from loadlens.measure.source import Json
from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.model.report import ObjectiveRow, State
from loadlens.present import numbers, words


def rows(cases: Sequence[CaseMeasures], objectives: Sequence[Json]) -> tuple[ObjectiveRow, ...]:
    """One row for each objective and case that has figures; held-out cases are not judged."""
    return tuple(
        _row(case, objective)
        for objective in objectives
        for case in cases
        if case.reference is not None and not case.is_held_out
    )


def _row(case: CaseMeasures, objective: Json) -> ObjectiveRow:
    step = objective.get("step")
    figure = figure_of(case, objective["metric"], step)
    state, word = verdict(figure, objective.get("below"), objective.get("above"))
    unit = "" if isinstance(figure, NotMeasured) else figure.unit
    limits = []
    for name in ("below", "above"):
        if objective.get(name) is not None:
            limits.append(f"{name} {numbers.with_unit(float(objective[name]), unit)}")
    text = words.metric(objective["metric"]) + (f", step {step}" if step else "")
    return ObjectiveRow(text, " and ".join(limits), figure, state, word, case.slug)


def verdict(figure: Figure, below: float | None, above: float | None) -> tuple[State, str]:
    """Met when the whole interval is on the right side, missed when it is on the wrong one."""
    if not isinstance(figure, Estimate):
        return "unknown", f"undecided: {figure.reason}"
    low = figure.point if figure.low is None and figure.high is not None else figure.low
    high = figure.high
    missed = (below is not None and low is not None and low >= below) or (
        above is not None and high is not None and high <= above
    )
    if missed:
        return "bad", "missed"
    met_below = below is None or (high is not None and high < below)
    met_above = above is None or (low is not None and low > above)
    if met_below and met_above:
        return "ok", "met"
    return "unknown", "undecided: the interval covers the limit"
