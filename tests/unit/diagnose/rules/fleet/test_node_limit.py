"""A machine of a fleet whose generator did not keep up, while others did."""

from __future__ import annotations

import pytest

from loadlens.diagnose.rules.fleet.node_limit import assess
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, facts, step
from tests.unit.diagnose.fleet import fleet, node, of


@pytest.mark.parametrize("verdict", ["late", "starved", "limit", "stood_still"])
def test_a_machine_that_did_not_keep_up_is_named(verdict: str) -> None:
    finding = assess(fleet(verdict=verdict))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement.startswith("One of 3 nodes")
    assert "Node gen3" in finding.explanation
    assert "33 % of the load" in finding.explanation


def test_two_of_three_are_counted() -> None:
    finding = assess(of(node("gen1", verdict="late"), node("gen2", verdict="late"), node("gen3")))

    assert isinstance(finding, Finding)
    assert finding.statement.startswith("2 of 3 nodes sent late")


def test_a_fleet_that_is_behind_as_a_whole_is_not_one_machine() -> None:
    answer = assess(of(node("gen1", verdict="late"), node("gen2", verdict="limit")))

    assert isinstance(answer, Absent)
    assert "it is the whole fleet" in answer.reason


def test_machines_that_kept_up_are_no_limit() -> None:
    assert isinstance(assess(fleet()), Absent)


def test_one_machine_is_no_fleet() -> None:
    assert isinstance(assess(facts(curve(step(100, 300.0, 0.012)))), Absent)
    assert isinstance(assess(facts()), NotAssessed)
