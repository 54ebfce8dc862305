"""Processes that end under load: with requests that are cut off, and not where one ends anyway."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.overload.processes_ended import assess
from loadlens.model.facts import ConcurrencyLimit, Curve, EndedLevel, EndedProcesses, FailureMode
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, facts, found, process, step
from tests.unit.diagnose.waiting import gauge


def ended(count: int = 2, *, cut: int = 30, outcome: str = "reset", program: str = "gunicorn") -> EndedLevel:
    """A level of 64 users that was ended after 100 requests."""
    mode = FailureMode("b", outcome, 0, cut, 0.1, None, 0.1)
    return EndedLevel(64, 100, (mode,), (), ended_processes=(EndedProcesses(program, count, 1),))


def ladder(*levels: EndedLevel) -> Curve:
    watched = (process(0.1),)
    steps = step(1, 10.0, 0.1, processes=watched), step(32, 300.0, 0.1, processes=watched)
    return curve(*steps, ended=levels)


def test_processes_that_end_while_requests_are_cut_off_are_named() -> None:
    finding = assess(facts(ladder(ended())))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert finding.statement.startswith("2 gunicorn processes end under load; at 64 users 30 % of the")


def test_a_single_one_is_suspected() -> None:
    assert found(assess(facts(ladder(ended(1))))).grade is Grade.SUSPECTED


@pytest.mark.parametrize("outcome", ["timeout", "connect_timeout", "own_ports", "unexpected_status"])
def test_processes_that_end_while_no_request_is_cut_off_are_none(outcome: str) -> None:
    assert isinstance(assess(facts(ladder(ended(outcome=outcome)))), Absent)


def test_processes_that_end_after_so_many_requests_may_do_so_by_design() -> None:
    """2 for 100 requests, and 18,600 at the levels without failures; or 2 for 20,000, where 1.9 would."""
    many = replace(ended(cut=6_000), issued=20_000)

    assert found(assess(facts(ladder(ended())))).grade is Grade.PROBABLE
    assert found(assess(facts(ladder(many)))).grade is Grade.SUSPECTED


def test_a_program_whose_processes_end_without_failures_too_ends_them_by_design() -> None:
    built = ladder(ended())
    usual = replace(built.steps[0], ended_processes=(EndedProcesses("gunicorn", 1, 1),))

    assert isinstance(assess(facts(replace(built, steps=(usual, *built.steps[1:])))), Absent)


def test_those_of_a_database_end_with_its_connections() -> None:
    titles = ConcurrencyLimit("pool", gauge("connections", 4.0), seen_in="titles", program="postgres")
    built = ladder(ended(program="postgres"))
    with_titles = replace(built, steps=(replace(built.steps[0], places=(titles,)), *built.steps[1:]))

    assert isinstance(assess(facts(with_titles)), Absent)


def test_without_processes_it_is_not_assessed() -> None:
    assert isinstance(assess(facts(curve(step(1, 10.0, 0.1)))), NotAssessed)
