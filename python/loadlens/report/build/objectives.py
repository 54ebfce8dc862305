"""Objectives of a study: limit, value, interval and verdict on one row."""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.measure.case import CaseMeasures
from loadlens.measure.metrics import figure_of
from loadlens.model.report import ObjectiveRow
from loadlens.model.study import Objective
from loadlens.present import objective_text


def rows(cases: Sequence[CaseMeasures], objectives: Sequence[Objective]) -> tuple[ObjectiveRow, ...]:
    """Return a row for each objective and case that has figures; held-out cases are not judged."""
    return tuple(
        objective_text.judged(objective, figure_of(case, objective.metric, objective.step), case.slug)
        for objective in objectives
        for case in cases
        if case.reference is not None and not case.is_held_out
    )
