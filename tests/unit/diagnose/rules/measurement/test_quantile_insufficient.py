"""Quantiles on few requests."""

from __future__ import annotations

import pytest

from loadlens.diagnose.rules.measurement.quantile_insufficient import assess
from loadlens.model.finding import Absent, Finding, NotAssessed
from loadlens.model.quality import QuantileWatch
from tests.unit.diagnose.build import estimate
from tests.unit.diagnose.rules.measurement.test_quantile_boundary import quoted


def watch(level: float, above: float | None) -> QuantileWatch:
    return QuantileWatch(level, estimate(0.1), above, None, None, 0.005)


def test_fewer_than_twenty_above_are_named_with_what_would_do() -> None:
    finding = assess(quoted(watch(0.5, 3.0), watch(0.9, 40.0), watch(0.99, 4.0)))

    assert isinstance(finding, Finding)
    assert finding.statement == "1 of 2 quantiles stand on fewer than 20 independent requests"
    assert "5 times as long" in finding.advice  # 20 / 4


@pytest.mark.parametrize(("above", "is_found"), [(19.9, True), (20.0, False)])
def test_twenty_decide(above: float, is_found: bool) -> None:
    answer = assess(quoted(watch(0.99, above)))

    assert isinstance(answer, Finding) is is_found
    assert isinstance(answer, (Finding, Absent))


def test_a_median_and_quantiles_without_a_value_say_nothing() -> None:
    assert isinstance(assess(quoted(watch(0.5, 3.0))), NotAssessed)
    assert isinstance(assess(quoted(watch(0.99, None))), NotAssessed)
