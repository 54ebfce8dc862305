"""A machine of a fleet that sees longer times than the others."""

from __future__ import annotations

import pytest

from loadlens.diagnose.rules.fleet.node_slow_one import assess
from loadlens.model.finding import Absent, Finding, Grade
from tests.unit.diagnose.build import curve, estimate, facts, step
from tests.unit.diagnose.fleet import fleet


def test_a_slow_machine_is_found_with_how_slow_it_is() -> None:
    finding = assess(fleet(p50=estimate(0.015)))  # the others have 10 ms

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert (
        finding.statement == "One of 3 nodes sees 1.50 times the median of the others (15.0 ms, not 10.0 ms)"
    )
    assert "node gen3" in finding.explanation


@pytest.mark.parametrize(("p50", "is_found"), [(0.0126, True), (0.0124, False)])
def test_a_quarter_decides(p50: float, is_found: bool) -> None:
    assert isinstance(assess(fleet(p50=estimate(p50))), Finding) is is_found


def test_an_interval_that_reaches_the_others_shows_nothing() -> None:
    wide = estimate(0.015, half=0.4)

    assert isinstance(assess(fleet(p50=wide)), Absent)


def test_a_machine_that_is_farther_away_is_not_slow_itself() -> None:
    answer = assess(fleet(p50=estimate(0.015), connect=estimate(0.0054)))  # 5 ms farther, 5 ms slower

    assert isinstance(answer, Absent)
    assert "its network path" in answer.reason


def test_a_generator_that_was_late_makes_times_longer_by_itself() -> None:
    assert isinstance(assess(fleet(p50=estimate(0.015), verdict="late")), Absent)


def test_one_machine_is_no_fleet() -> None:
    assert isinstance(assess(facts(curve(step(100, 300.0, 0.012)))), Absent)
