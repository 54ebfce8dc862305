"""Probes that wait for what is ahead of them, and those that share cores or nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.processor.hol_correlation import ID, assess_after
from loadlens.model.facts import AheadWatch, Curve
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed, Undecided
from tests.unit.diagnose.build import (
    after_loops,
    blocked,
    estimate,
    facts,
    found,
    generator,
    process,
)


def line(slope: float = 0.2, *, explained: float = 0.9, **more: Any) -> Curve:
    """A loop that computes 0.2 s per request, five per second."""
    watch = AheadWatch("a", estimate(slope), explained, 900, 8.0)
    return replace(blocked(0.2, **more), ahead=watch)


def ask(built: Curve) -> Finding | Absent | NotAssessed:
    return after_loops(assess_after, built)


def test_what_each_request_ahead_adds_is_told() -> None:
    finding = found(ask(line()))

    assert finding.rule == ID
    assert finding.grade is Grade.STRONG
    assert finding.statement == "Each request that is ahead adds 200 ms to a"
    assert "1.60 s of waiting" in finding.explanation  # 8 x 0.2
    assert finding.evidence[0].threshold == pytest.approx(0.05)  # a quarter of 1 / 5 a second


@pytest.mark.parametrize(("slope", "expected"), [(0.052, Finding), (0.048, Absent), (0.004, Absent)])
def test_a_quarter_of_what_one_holds_is_the_limit(slope: float, expected: type) -> None:
    assert isinstance(ask(line(slope)), expected)


@pytest.mark.parametrize(("explained", "expected"), [(0.51, Finding), (0.49, Absent)])
def test_half_of_how_the_waits_vary_is_the_limit(explained: float, expected: type) -> None:
    assert isinstance(ask(line(explained=explained)), expected)


def test_without_a_blocked_loop_it_is_silent() -> None:
    answer = ask(line(processes=(process(0.02),)))

    assert isinstance(answer, Absent)
    assert "no event loop is blocked" in answer.reason


def test_without_a_log_or_with_few_probes_it_is_not_assessed() -> None:
    assert isinstance(ask(blocked(0.2)), NotAssessed)
    few = AheadWatch("a", Undecided("wait", "s", "300 probes, needs 500"), None, 300, None)

    answer = ask(replace(blocked(0.2), ahead=few))

    assert isinstance(answer, NotAssessed)
    assert answer.reason == "300 probes, needs 500"


def test_a_late_generator_and_one_trial_leave_it_probable() -> None:
    assert found(ask(line(trials=1))).grade is Grade.PROBABLE
    assert found(ask(line(generator=generator(verdict="late", lag_p99_s=None)))).grade is Grade.PROBABLE


def test_the_blocked_loop_stands_before_it() -> None:
    verdict = diagnose.assess(facts(line()))

    assert next(f.explained_by for f in verdict.findings if f.rule == ID) == "eventloop.blocked"


def test_other_times_give_the_same() -> None:
    watch = AheadWatch("a", estimate(6.0), 0.9, 900, 8.0)

    assert found(ask(replace(blocked(6.0, think=4.0), ahead=watch))).grade is Grade.STRONG


def test_it_is_no_surer_than_the_blocked_loop_that_it_needs() -> None:
    unread = process(1.0, hot=None)  # threads were not read: the loop is only suspected

    assert found(ask(line(processes=(unread,)))).grade is Grade.SUSPECTED
