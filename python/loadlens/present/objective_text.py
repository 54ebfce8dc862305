"""The verdict on an objective, of a study or a single load: met, missed, or undecided by its interval."""

from __future__ import annotations

from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.model.report import ObjectiveRow, State
from loadlens.model.study import Objective
from loadlens.present import numbers, words


def judged(objective: Objective, figure: Figure, case: str = "", *, unit: str = "") -> ObjectiveRow:
    """Return an objective with the figure of its metric and the verdict.

    Args:
        objective: A limit on a metric.
        figure: Of its metric.
        case: That was judged.
        unit: Of the metric, where it was not measured.
    """
    state, word = verdict(figure, objective.below, objective.above)
    unit = unit if isinstance(figure, NotMeasured) else figure.unit
    limits = " and ".join(
        f"{name} {numbers.with_unit(limit, unit)}"
        for name, limit in (("below", objective.below), ("above", objective.above))
        if limit is not None
    )
    text = words.metric(objective.metric) + (f", step {objective.step}" if objective.step else "")
    return ObjectiveRow(text, limits, figure, state, word, case)


def verdict(figure: Figure, below: float | None, above: float | None) -> tuple[State, str]:
    """Return met if the whole interval is on the right side of a limit, missed if on the wrong one."""
    if not isinstance(figure, Estimate):
        return "unknown", f"undecided: {figure.reason}"
    if figure.low is None and figure.high is None:
        return "unknown", "undecided: its interval is not known"
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


def line(row: ObjectiveRow) -> str:
    """Return an objective in one line: verdict, limit, value with its interval."""
    word, _, reason = row.word.partition(": ")
    shown = numbers.show(row.figure)
    value = shown.with_interval if shown.state == "measured" else ""
    parts = [part for part in (value, reason) if part]
    text = f"{words.GLYPHS[row.state]} {word}: {row.objective} {row.limit}"
    return f"{text}; {', '.join(parts)}" if parts else text
