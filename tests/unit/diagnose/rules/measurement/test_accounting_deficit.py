"""A counter below what was answered."""

from __future__ import annotations

from dataclasses import replace

from loadlens.diagnose.rules.measurement.accounting_deficit import assess
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, NotAssessed
from loadlens.model.quality import Count, Counted
from tests.unit.diagnose.build import facts


def kept(*trials: Counted) -> Facts:
    return replace(facts(), counts=(Count("s, n_total", trials),))


def test_requests_that_the_service_does_not_count_are_found() -> None:
    finding = assess(kept(*[Counted(4.0, 1_000, 1_000, 2, 900.0)] * 3))

    assert isinstance(finding, Finding)
    assert finding.statement == "300 of 3,000 requests were not counted by the service: 10 %"


def test_timed_out_requests_may_be_those_that_are_missing() -> None:
    assert isinstance(assess(kept(*[Counted(4.0, 890, 1_000, 2, 900.0)] * 3)), Absent)


def test_two_missing_are_not_enough_and_a_surplus_is_none() -> None:
    assert isinstance(assess(kept(Counted(4.0, 1_000, 1_000, 0, 998.0))), Absent)
    assert isinstance(assess(kept(Counted(4.0, 1_000, 1_000, 0, 1_100.0))), Absent)


def test_without_a_count_it_is_not_assessed() -> None:
    assert isinstance(assess(facts()), NotAssessed)
