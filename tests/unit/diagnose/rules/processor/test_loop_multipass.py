"""Handlers that cross the loop several times, and what only makes them wait longer than a probe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.processor.loop_multipass import ID, assess_after
from loadlens.model.facts import ConcurrencyLimit, ConnectionWatch, Curve, Gauge, Times
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import (
    after_loops,
    blocked,
    estimate,
    facts,
    found,
    probe,
    process,
)

KEPT = ConnectionWatch(opened=20, closed_by_server=0, answered=2000)


def crossing(
    passes: float, *, opened: ConnectionWatch | None = KEPT, line: float | None = 0.0, **more: Any
) -> Curve:
    """A loop that requests cross as often as a probe; connections last, and no request waits for a lock."""
    built = blocked(0.2, think=0.0, passes=passes, **more)
    built = replace(built, steps=tuple(replace(level, connections=opened) for level in built.steps))
    return built if line is None else with_line(built, line)


def ask(built: Curve) -> Finding | Absent | NotAssessed:
    return after_loops(assess_after, built)


def test_requests_that_wait_twice_as_long_as_a_probe_cross_the_loop_twice() -> None:
    finding = found(ask(crossing(2.0)))

    assert finding.grade is Grade.STRONG
    assert finding.statement == "b crosses the blocked loop at least 2 times: 2.0 waits of a probe"
    evidence = finding.evidence[0]
    assert evidence.low == 2.0
    assert evidence.high is None  # users in step hide crossings
    assert evidence.value == evidence.low  # a bound, and no other number


def test_more_waits_than_two_are_more_crossings_at_least() -> None:
    """Three times as long, both means known to 2 %: above 2.8."""
    evidence = found(ask(crossing(3.0))).evidence[0]

    assert evidence.value is not None
    assert 2.8 < evidence.value < 3.0


def keeping(built: Curve) -> Curve:
    """The same with a probe that keeps its connection."""
    kept = tuple(
        replace(level, probes=tuple(replace(p, fresh_connections=False) for p in level.probes))
        for level in built.steps
    )
    return replace(built, steps=kept)


def with_line(built: Curve, waiting: float, kind: Any = "lock") -> Curve:
    """The same with a gauge of who waits elsewhere."""
    held = Gauge("h", estimate(0.8, unit="requests"), 1.0)
    line = ConcurrencyLimit(kind, held, Gauge("w", estimate(waiting, unit="requests"), waiting))
    return replace(built, steps=tuple(replace(level, places=(line,)) for level in built.steps))


@pytest.mark.parametrize(("waiting", "kind"), [(7.9, Finding), (8.5, Absent)])
def test_a_line_at_a_lock_is_taken_off_what_requests_wait(waiting: float, kind: type) -> None:
    """They wait 3.8 s, a probe half of it; 1.15 times that is 2.19 s: 1.61 s are over, 8.1 who wait."""
    assert isinstance(ask(with_line(crossing(2.0), waiting)), kind)


def test_requests_that_the_service_counts_in_its_own_line_wait_nowhere_else() -> None:
    assert found(ask(with_line(crossing(2.0), 15.0, "requests"))).grade is Grade.PROBABLE


def test_a_probe_that_keeps_its_connection_is_not_enough_where_nothing_tells_of_another_line() -> None:
    assert found(ask(keeping(crossing(3.0, line=None)))).grade is Grade.SUSPECTED
    assert found(ask(keeping(crossing(3.0)))).grade is Grade.STRONG


def test_without_gauges_another_line_is_not_excluded() -> None:
    assert found(ask(crossing(2.0, line=None))).grade is Grade.PROBABLE


@pytest.mark.parametrize("passes", [0.67, 1.0, 1.1])  # one crossing against a probe of 1.5, of 1; and noise
def test_one_crossing_is_silent(passes: float) -> None:
    answer = ask(crossing(passes))

    assert isinstance(answer, Absent)
    assert "times as long as a" in answer.reason


def test_a_little_over_the_limit_is_enough_when_its_interval_is_above_one() -> None:
    assert found(ask(crossing(1.2))).grade is Grade.STRONG


def test_an_interval_that_reaches_one_leaves_it_suspected() -> None:
    built = crossing(1.2)
    wide = estimate(0.002 + 0.8 / 1.2, half=0.5), estimate(0.002 + 3.8 / 1.2, half=0.5)
    steps = tuple(
        replace(level, probes=(replace(level.probes[0], response=Times(mean, mean, mean)),))
        for level, mean in zip(built.steps[1:], wide, strict=True)
    )

    assert found(ask(replace(built, steps=(built.steps[0], *steps)))).grade is Grade.SUSPECTED


def test_one_level_at_which_they_wait_longer_is_chance() -> None:
    built = crossing(2.0)
    middle = built.steps[1]
    once = replace(middle, probes=(probe(0.8),))  # 4 D, as the others there

    assert isinstance(ask(replace(built, steps=(built.steps[0], once, built.steps[2]))), Absent)


def test_several_processes_are_not_assessed() -> None:
    answer = ask(crossing(2.0, k=2))

    assert isinstance(answer, NotAssessed)
    assert "2 processes work" in answer.reason


def test_requests_that_open_connections_cross_the_loop_for_that() -> None:
    answer = ask(crossing(2.0, opened=ConnectionWatch(opened=1000, closed_by_server=980, answered=2000)))

    assert isinstance(answer, Absent)
    assert "50 % of requests opened one" in answer.reason


def test_uncounted_connections_and_an_unmeasured_start_leave_it_probable() -> None:
    assert found(ask(crossing(2.0, opened=None))).grade is Grade.PROBABLE
    whole = crossing(2.0)
    later = tuple(replace(level, load=level.load * 2) for level in whole.steps)
    assert found(ask(replace(whole, steps=later))).grade is Grade.PROBABLE


def test_one_trial_a_level_is_probable() -> None:
    assert found(ask(crossing(2.0, trials=1))).grade is Grade.PROBABLE


def test_without_a_blocked_loop_there_is_nothing_to_queue_behind() -> None:
    answer = ask(crossing(2.0, processes=(process(0.02),)))

    assert isinstance(answer, Absent)
    assert "no event loop is blocked" in answer.reason


def test_without_a_probe_it_is_not_assessed() -> None:
    whole = crossing(2.0)

    answer = ask(replace(whole, steps=tuple(replace(level, probes=()) for level in whole.steps)))

    assert isinstance(answer, NotAssessed)
    assert "needs a probe" in answer.reason


def test_the_blocked_loop_stands_before_it() -> None:
    verdict = diagnose.assess(facts(crossing(2.0)))

    assert next(f.explained_by for f in verdict.findings if f.rule == ID) == "eventloop.blocked"


def test_other_times_give_the_same() -> None:
    slow = replace(blocked(20.0, think=0.0, passes=2.0), work=estimate(20.0))

    assert found(ask(slow)).grade is Grade.PROBABLE  # connections were not counted


def test_it_is_no_surer_than_the_blocked_loop_that_it_needs() -> None:
    unread = process(1.0, hot=None)  # threads were not read: the loop is only suspected

    assert found(ask(crossing(2.0, processes=(unread,)))).grade is Grade.SUSPECTED


def test_a_level_at_which_no_probe_waits_counts_for_nothing() -> None:
    built = crossing(2.0)
    quiet = replace(built.steps[1], probes=(probe(0.001, idle=0.002),))

    answer = ask(replace(built, steps=(built.steps[0], quiet, built.steps[2])))

    assert isinstance(answer, NotAssessed)
    assert "1 level of load" in answer.reason
