"""Verdicts on the objectives of a search, from curves made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.model.explanation import Rung
from loadlens.model.facts import Curve
from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided
from loadlens.model.study import Objective
from loadlens.search import objectives
from tests.unit.diagnose import build

NOT_REACHED = Undecided("capacity", "1/s", "not reached")
FAILED_BELOW_1 = Objective("unsuccessful.share", None, below=0.01)


def share(point: float, low: float, high: float) -> Estimate:
    return Estimate("failed.share", "share", point, low, high, 1, 1000, "by hand")


def capacity(low: float, high: float | None) -> Estimate:
    return Estimate("capacity", "1/s", 100.0, low, high, 3, 1000, "by hand")


def one_server(*failed: Estimate) -> Curve:
    """100/s from one user on: the knee is at one user, and all levels lie on the plateau."""
    levels = [build.step(2**n, 100.0, 2**n / 100, failed=each) for n, each in enumerate(failed)]
    return build.curve(*levels, think=0.0)


def verdict(
    objective: Objective, curve: Curve | None, capacity_of_curve: Figure, **more: Any
) -> tuple[str, str]:
    (row,) = objectives.rows([objective], curve, capacity_of_curve, (), **more)
    return row.word.partition(":")[0], row.case


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(95.0, 105.0, "undecided"), (101.0, 105.0, "met"), (90.0, 99.0, "missed"), (101.0, None, "met")],
)
def test_a_rate_is_judged_by_the_interval_of_the_capacity(low: float, high: float | None, word: str) -> None:
    rate = Objective("throughput", None, above=100.0)
    figure = replace(capacity(low, high), point=(low + (high or low)) / 2)

    assert verdict(rate, one_server(share(0, 0, 0)), figure) == (word, "at full load")


def test_a_rate_that_was_reached_is_met_and_one_that_was_not_reached_is_undecided() -> None:
    curve = build.curve(*(build.step(n, 20.0 * n, 0.05) for n in (1, 2, 4)), think=0.0)  # up to 80/s

    assert verdict(Objective("throughput", None, above=50.0), curve, NOT_REACHED)[0] == "met"
    assert verdict(Objective("throughput", None, above=500.0), curve, NOT_REACHED)[0] == "undecided"


def test_failures_are_judged_at_the_knee() -> None:
    fine, many = share(0.0, 0.0, 0.004), share(0.2, 0.15, 0.25)
    curve = one_server(fine, fine, many)

    assert verdict(FAILED_BELOW_1, curve, capacity(95, 105)) == ("met", "at 1 user, where throughput stops")
    assert verdict(FAILED_BELOW_1, one_server(many, fine, fine), capacity(95, 105))[0] == "missed"


def test_failures_that_ended_the_load_are_judged_where_they_did() -> None:
    fine, many = share(0.0, 0.0, 0.004), share(0.2, 0.15, 0.25)

    assert verdict(FAILED_BELOW_1, one_server(fine, fine, many), capacity(95, 105), is_failing=True) == (
        "missed",
        "at 4 users, the most that was measured",
    )


def test_a_level_that_failures_ended_at_once_counts_as_seen() -> None:
    nothing = NotMeasured("any", "half of the requests failed")
    seen = Estimate("failed.share", "share", 0.9, None, None, 1, 50, "exact count")
    failing = Rung("ladder", 8, 0, nothing, nothing, nothing, nothing, seen, None, None, "ended")
    curve = one_server(share(0.0, 0.0, 0.004))

    row = verdict(FAILED_BELOW_1, curve, NOT_REACHED, is_failing=True, failing=failing)

    assert row == ("missed", "at 8 users")


def test_without_a_level_nothing_is_decided() -> None:
    assert verdict(FAILED_BELOW_1, None, NOT_REACHED)[0] == "undecided"
