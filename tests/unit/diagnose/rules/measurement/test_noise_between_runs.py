"""Runs that differ, a drift over them, one that stands apart."""

from __future__ import annotations

from typing import Any

import pytest

from loadlens.diagnose.rules.measurement.noise_between_runs import assess
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.quality import Quality, Variation
from tests.unit.diagnose.build import curve, facts, step


def varied(**more: Any) -> Facts:
    built: dict[str, Any] = {
        "trials": 5, "between": 0.12, "between_low": 0.07, "between_high": 0.34, "within": 0.01,
        "share_between": 0.99, "order_p": 0.6, "without_one": 0.1,
    }  # fmt: skip
    return facts(curve(step(8, 100.0, 0.08, quality=Quality(variation=Variation(**(built | more))))))


def test_runs_that_differ_are_found_with_the_trials_that_would_do() -> None:
    finding = assess(varied())

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "Mean response times of 5 equal runs differ by 12 %"
    assert "Take 23 trials" in finding.advice  # (1.96 * 0.12 / 0.05)^2 = 22.1


@pytest.mark.parametrize(
    "short",
    [
        {"between_low": 0.049},  # its interval touches what does not matter
        {"share_between": 0.79},  # longer trials would do
        {"order_p": 0.04},  # a drift
        {"without_one": 0.04},  # one trial alone
    ],
)
def test_each_of_these_keeps_it_silent(short: dict[str, float]) -> None:
    assert isinstance(assess(varied(**short)), Absent)


def test_three_trials_show_no_order_and_bear_probable() -> None:
    finding = assess(varied(trials=3, order_p=1.0))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_four_trials_in_perfect_order_show_none_and_bear_probable() -> None:
    finding = assess(varied(trials=4, order_p=2 / 24))  # two of the 24 orders are all up or all down

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_single_trials_are_not_assessed() -> None:
    assert isinstance(assess(facts(curve(step(8, 100.0, 0.08)))), NotAssessed)
