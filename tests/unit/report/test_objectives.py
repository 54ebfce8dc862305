"""Objectives: met, missed, or undecided by the interval."""

from __future__ import annotations

import pytest

from loadlens.measure.case import CaseMeasures
from loadlens.model.finding import Estimate, Undecided
from loadlens.model.study import Objective
from loadlens.present.objective_text import verdict
from loadlens.report.build.objectives import rows
from tests import records


def figure(low: float | None, high: float | None) -> Estimate:
    return Estimate("p99", "s", 0.04, low, high, 5, 1000, "built")


@pytest.mark.parametrize(
    ("low", "high", "below", "state"),
    [
        (0.03, 0.045, 0.05, "ok"),
        (0.03, 0.045, 0.04, "unknown"),
        (0.035, None, 0.05, "unknown"),  # open above: it may lie beyond
        (0.035, None, 0.03, "bad"),
        (0.035, 0.045, 0.03, "bad"),
    ],
)
def test_the_whole_interval_decides(low: float | None, high: float | None, below: float, state: str) -> None:
    assert verdict(figure(low, high), below, None)[0] == state


def test_what_is_undecided_gives_its_reason() -> None:
    assert verdict(Undecided("p99", "s", "12 requests, needs 368"), 0.05, None) == (
        "unknown",
        "undecided: 12 requests, needs 368",
    )


def test_a_case_without_a_valid_trial_keeps_its_objectives_under_their_names() -> None:
    wanted = [Objective("response_time.p90", None, below=0.1), Objective("failed.share", None, below=0.01)]

    shown = rows([CaseMeasures(records.planned_case(), ())], wanted)

    assert [(row.limit, row.state) for row in shown] == [
        ("below 100 ms", "unknown"),
        ("below 1.00 %", "unknown"),
    ]
