"""Objectives of a study: limit, value, interval and verdict on one row."""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.measure.case import CaseMeasures
from loadlens.measure.metrics import figure_of, unit_of
from loadlens.model.report import ObjectiveRow
from loadlens.model.study import Objective
from loadlens.present import objective_text


def rows(cases: Sequence[CaseMeasures], objectives: Sequence[Objective]) -> tuple[ObjectiveRow, ...]:
    """Return a row for each objective and case; held-out cases are not judged.

    A case without a valid trial keeps its rows: one that vanishes from CI looks like one that is met.
    """
    return tuple(
        objective_text.judged(
            objective,
            figure_of(case, objective.metric, objective.step),
            case.slug,
            unit=unit_of(objective.metric),
        )
        for objective in objectives
        for case in cases
        if not case.is_held_out
    )
