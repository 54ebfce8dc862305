"""Machines of a fleet at different distances from the service."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.fleet.paths_differ import assess
from loadlens.model.finding import Absent, Finding, Grade, NotMeasured
from tests.unit.diagnose.build import curve, estimate, facts, step
from tests.unit.diagnose.fleet import fleet, node, of


def test_a_machine_that_is_farther_away_is_found() -> None:
    finding = assess(fleet(connect=estimate(0.0204)))  # the others have 0.4 ms

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "Connections of one of 3 nodes take 20.4 ms, those of the others 400 µs"
    assert "node gen3" in finding.explanation


@pytest.mark.parametrize(("far", "near", "is_found"), [(0.0021, 0.001, True), (0.0019, 0.001, False)])
def test_twice_as_long_and_a_millisecond_decide(far: float, near: float, is_found: bool) -> None:
    pair = of(node("gen1", connect=estimate(near)), node("gen2", connect=estimate(far)))

    assert isinstance(assess(pair), Finding) is is_found


def test_what_differs_by_less_than_a_millisecond_is_one_place() -> None:
    answer = assess(fleet(connect=estimate(0.0013)))

    assert isinstance(answer, Absent)
    assert "(limit 1.00 ms)" in answer.reason


@pytest.mark.parametrize(("connections", "is_found"), [(10, True), (9, False)])
def test_ten_connections_of_each_decide(connections: int, is_found: bool) -> None:
    few = replace(estimate(0.0204), samples=connections)

    assert isinstance(assess(fleet(connect=few)), Finding) is is_found


def test_a_late_generator_reads_the_answer_to_a_connect_late() -> None:
    assert isinstance(assess(fleet(connect=estimate(0.0204), verdict="starved")), Absent)


def test_without_connections_nothing_is_known_of_paths() -> None:
    assert isinstance(assess(fleet(connect=NotMeasured("connect.mean", "no connection was made"))), Absent)
    assert isinstance(assess(facts(curve(step(100, 300.0, 0.012)))), Absent)
