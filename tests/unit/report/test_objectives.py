"""Objectives: met, missed, or undecided by the interval."""

from __future__ import annotations

import pytest

from loadlens.model.finding import Estimate, Undecided
from loadlens.present.objective_text import verdict


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
