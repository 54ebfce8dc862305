"""A counter above what was sent: by time, by request, by scrapes, or not at all. Counts by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.observe import counts
from loadlens.diagnose.rules.measurement import accounting_deficit, accounting_explained
from loadlens.diagnose.rules.measurement.accounting_excess import assess
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.quality import Count, Counted
from tests.unit.diagnose.build import facts

SENT = (40, 80, 160, 320, 640, 1280, 2560, 2560)
SECONDS = (4.0, 4.2, 4.1, 4.0, 4.3, 4.0, 4.4, 4.1)  # 33.1 in all


def kept(*trials: Counted, restarts: int = 0) -> Facts:
    return replace(facts(), counts=(Count("s, n_total", trials, restarts),))


def trials(more: tuple[int, ...], *, scrapes: int = 0, unsure: int = 0) -> list[Counted]:
    return [
        Counted(seconds, sent - unsure, sent, scrapes, float(sent + extra))
        for seconds, sent, extra in zip(SECONDS, SENT, more, strict=True)
    ]


VISITED = (12, 13, 12, 12, 13, 12, 13, 12)  # one every 0.33 s: 99 in 33.1 s
RETRIED = (1, 2, 3, 6, 13, 26, 51, 51)  # 2 % of what was sent


def test_a_visitor_at_no_usual_period_is_found_with_its_rate() -> None:
    finding = assess(kept(*trials(VISITED)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "99 requests more than sent were counted: 2.99/s"
    rate = next(e for e in finding.evidence if e.signal == "excess.rate")
    # 99 / 33.1; either way 1.96 * 0.5 * sqrt(8) = 2.77 requests.
    assert rate.value == pytest.approx(99 / 33.1)
    assert rate.low == pytest.approx((99 - 2.772) / 33.1, abs=1e-3)
    assert rate.high == pytest.approx((99 + 2.772) / 33.1, abs=1e-3)


def test_what_grows_with_requests_is_told_from_what_grows_with_time() -> None:
    retried = assess(kept(*trials(RETRIED)))

    assert isinstance(retried, Finding)
    assert "of what was sent" in retried.statement
    assert "retries" in retried.advice
    visited = assess(kept(*trials(VISITED)))
    assert isinstance(visited, Finding)
    assert "access log" in visited.advice


def test_a_check_every_second_is_explained_and_no_excess() -> None:
    every_second = tuple(int(s) + 1 for s in SECONDS)  # floor(T) + 1: 40 in 33.1 s would be 1.2/s

    usual = kept(*trials((4, 4, 4, 4, 5, 4, 4, 4)))

    answer = assess(usual)
    assert isinstance(answer, Absent)
    assert "every 1 s" in answer.reason
    assert isinstance(accounting_explained.assess(usual), Finding)
    assert isinstance(assess(kept(*trials(every_second))), Finding)  # no usual period fits 1.2/s


def test_equal_books_and_one_curious_request_are_silent() -> None:
    assert isinstance(assess(kept(*trials((0,) * 8))), Absent)
    assert isinstance(assess(kept(*trials((1, 0, 0, 0, 1, 0, 0, 0)))), Absent)
    assert isinstance(assess(kept(*trials((1, 0, 0, 0, 1, 0, 1, 0)))), Finding)


def test_what_a_check_at_one_of_several_usual_periods_explains_is_only_suspected() -> None:
    """3 in 33.1 s are 0.01 to 0.17 a second: one every 10, 15, 30 or 60 s, and none of them stands out."""
    few = kept(*trials((1, 0, 0, 0, 1, 0, 1, 0)))

    finding = assess(few)

    assert counts.account(few.counts[0]).periods_s == (10.0, 15.0, 30.0, 60.0)
    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_own_scrapes_cover_as_many_and_no_more() -> None:
    scraped = trials((3,) * 8, scrapes=3)

    assert isinstance(assess(kept(*scraped)), Absent)
    assert isinstance(assess(kept(*trials((5,) * 8, scrapes=3))), Finding)


def test_requests_that_may_not_have_arrived_leave_room_below_only() -> None:
    unsure = trials((-4,) * 8, unsure=5)

    assert isinstance(assess(kept(*unsure)), Absent)
    assert isinstance(accounting_deficit.assess(kept(*unsure)), Absent)


def test_without_a_count_nothing_is_assessed_and_a_restart_is_named() -> None:
    assert isinstance(assess(facts()), NotAssessed)
    answer = assess(kept(restarts=2))
    assert isinstance(answer, NotAssessed)
    assert "began anew" in answer.reason


def test_one_trial_or_a_restart_among_others_bears_no_more_than_probable() -> None:
    single = assess(kept(Counted(4.0, 100, 100, 0, 112.0)))
    restarted = assess(kept(*trials(VISITED), restarts=1))

    assert isinstance(single, Finding)
    assert single.grade is Grade.PROBABLE
    assert isinstance(restarted, Finding)
    assert restarted.grade is Grade.PROBABLE


def test_a_counter_that_goes_back_in_half_of_the_trials_is_only_suspected() -> None:
    """Eight of sixteen: processes that share a port answer in turns, each with a counter of its own."""
    finding = assess(kept(*trials(VISITED), restarts=8))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_a_period_must_fit_each_trial_not_only_their_sum() -> None:
    uneven = [Counted(10.0, 100, 100, 0, 110.0 + more) for more in (-9.0, 9.0, 0.0)]  # 1/s in all

    assert counts.account(kept(*uneven).counts[0]).period_s is None
    assert counts.account(kept(*[Counted(10.0, 100, 100, 0, 110.0)] * 3).counts[0]).period_s == 1.0
