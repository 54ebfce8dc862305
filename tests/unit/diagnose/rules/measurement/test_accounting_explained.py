"""A surplus that scrapes or checks make, all of it."""

from __future__ import annotations

from dataclasses import replace

from loadlens.diagnose.rules.measurement.accounting_explained import assess
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, NotAssessed
from loadlens.model.quality import Count, Counted
from tests.unit.diagnose.build import facts


def kept(*trials: Counted) -> Facts:
    return replace(facts(), counts=(Count("s, n_total", trials),))


def test_our_own_scrapes_are_named_as_the_source() -> None:
    finding = assess(kept(*[Counted(10.0, 500, 500, 9, 509.0)] * 3))

    assert isinstance(finding, Finding)
    assert finding.statement == "27 requests more than sent were counted: our own scrapes"


def test_a_check_every_five_seconds_is_told_by_its_period() -> None:
    finding = assess(kept(*[Counted(50.0, 500, 500, 0, 510.0)] * 4))

    assert isinstance(finding, Finding)
    assert "a check every 5 s" in finding.statement
    rate = next(e for e in finding.evidence if e.signal == "excess.rate")
    assert rate.value == 0.2


def test_more_than_checks_can_make_is_left_to_the_excess() -> None:
    assert isinstance(assess(kept(*[Counted(10.0, 500, 500, 9, 540.0)] * 3)), Absent)


def test_a_server_that_counts_no_scrapes_has_nothing_to_explain() -> None:
    assert isinstance(assess(kept(*[Counted(10.0, 500, 500, 9, 500.0)] * 3)), Absent)
    assert isinstance(assess(facts()), NotAssessed)
