"""A limiter that delays, by its burst and by its windows, next to what looks the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.capacity import most_of
from loadlens.diagnose.rules.capacity_limits import retrograde_throughput
from loadlens.diagnose.rules.overload.ratelimit_active import assess
from loadlens.measure.curve import Capacity, capacity_of
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from loadlens.model.shapes import LetThrough, Standstill, StandstillWatch
from loadlens.model.stacks import COMMAND_LINE, SourceLine
from tests.unit.diagnose.build import curve, estimate, facts, process, step, times

RATE, BURST, ALONE_S, SECONDS = 60.0, 48.0, 0.2, 4.0


def burst(rate: float = RATE, ahead: float = BURST, deviation: float = 8.0) -> LetThrough:
    return LetThrough(rate, 100, ahead, deviation, None, (), 0.0)


def window(each: int, period_s: float = 1.0, silent: float = 0.9) -> LetThrough:
    return LetThrough(each / period_s, 100, 0.0, float("inf"), period_s, (each,) * 3, silent)


def level(users: float, rate: float, *seen: LetThrough, cpu: float = 0.1, **more: Any) -> Step:
    built = step(users, rate, users / rate, processes=(process(cpu),), statuses=((200, 900),), **more)
    return replace(built, let_through=seen, quality=replace(built.quality, seconds=SECONDS))


def ladder(*levels: Step, **more: Any) -> Facts:
    built = facts(curve(*levels, think=0.0, **more))
    return replace(built, unloaded=(replace(levels[0].classes[0], response=times(ALONE_S)),))


def after_a_burst(*rates: float, **more: Any) -> Facts:
    """20 users live on the burst for the whole level, 32 and 64 spend it at once."""
    lows = [level(1, 5.0, **more), level(16, RATE + 0.8 * BURST / SECONDS, **more)]
    highs = [level(32.0 * 2**n, RATE, burst(rate), **more) for n, rate in enumerate(rates or (RATE, RATE))]
    return ladder(*lows, *highs)


def in_windows(*sizes: int, **more: Any) -> Facts:
    levels = [level(2.0 * 4**n, 11.0, window(size), **more) for n, size in enumerate(sizes)]
    return ladder(level(1, 11.0), *levels)


def test_a_burst_and_then_a_rate_are_named() -> None:
    answer = assess(after_a_burst())

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE  # a buffer before something slower looks the same
    assert answer.statement == "60.0 /s are let through, after 48 at once; what exceeds that is delayed"


def test_levels_that_live_on_the_burst_are_no_fall_of_throughput() -> None:
    built = after_a_burst()
    fallen = replace(built.curves[0], steps=tuple(replace(s, let_through=()) for s in built.curves[0].steps))

    assert isinstance(retrograde_throughput.assess(built), Absent)
    assert isinstance(retrograde_throughput.assess(replace(built, curves=(fallen,))), Finding)


def test_the_capacity_is_the_rate_after_the_burst() -> None:
    built: Curve = after_a_burst().curves[0]
    capacity = capacity_of(built)
    assert isinstance(capacity, Capacity)

    figure = most_of(built, capacity).figure

    assert isinstance(figure, Estimate)
    assert figure.point == pytest.approx(RATE)


@pytest.mark.parametrize(
    "built",
    [
        after_a_burst(RATE),  # one level
        after_a_burst(RATE, 1.2 * RATE),  # levels settle apart: what is left depends on who asks
        after_a_burst(cpu=3.5),  # of 4 cores
    ],
    ids=["one level", "rates apart", "out of CPU"],
)
def test_what_agrees_on_no_rate_or_computes_is_no_limiter(built: Facts) -> None:
    assert isinstance(assess(built), Absent)


def test_windows_of_one_size_are_named() -> None:
    answer = assess(in_windows(11, 11))

    assert isinstance(answer, Finding)
    assert answer.statement == "11 requests are let through every 1.00 s; who is later waits for the next"


def test_windows_of_one_length_with_different_numbers_are_a_quota_of_something_else() -> None:
    answer = assess(in_windows(11, 14, 9))

    assert isinstance(answer, Finding)
    assert answer.statement == "A quota is used up in each period of 1.00 s: up to 90 % of it nothing comes"
    assert answer.setting is None  # no line sets one of these rates
    assert {e.signal for e in answer.evidence} == {"limiter.window", "cpu.room"}


@pytest.mark.parametrize(
    ("periods", "sizes"),
    [
        ((1.0, 1.0, 1.03), (11, 14, 9)),  # lengths differ
        ((1.0, 1.0), (11, 14)),  # two levels
        ((1.0, 1.0, 1.0), (2, 8, 32)),  # 2, 8 and 32 users: each once
    ],
)
def test_windows_of_other_lengths_or_of_all_who_wait_are_none(
    periods: tuple[float, ...], sizes: tuple[int, ...]
) -> None:
    levels = [
        level(2.0 * 4**n, 11.0, window(size, period))
        for n, (size, period) in enumerate(zip(sizes, periods, strict=True))
    ]

    assert not isinstance(assess(ladder(level(1, 11.0), *levels)), Finding)


def test_what_takes_in_all_who_wait_has_no_window() -> None:
    assert not isinstance(assess(in_windows(2, 8)), Finding)


@pytest.mark.parametrize(("stopped_s", "kind"), [(0.2, Finding), (2.0, Absent)])
def test_a_service_that_stands_still_between_is_not_a_limiter(stopped_s: float, kind: type) -> None:
    stops = (Standstill(0.1, 0.1 + stopped_s, is_cut=False),)
    watch = StandstillWatch("life", 0.0, SECONDS, 0.1, 0.01, 0.01, stops)

    assert isinstance(assess(in_windows(11, 11, standstills=(watch,))), kind)


def test_a_request_that_takes_as_long_as_a_window_is_a_batch() -> None:
    built = in_windows(11, 11)
    slow = replace(built.unloaded[0], response=replace(times(0.9), mean=estimate(0.9)))

    answer = assess(replace(built, unloaded=(slow,)))

    assert isinstance(answer, Absent | NotAssessed)


def by_a_line(
    text: str, *rates: float, cpu: float = 0.1, file: str = "conf/zone.conf", line: int = 3
) -> Finding | Absent | NotAssessed:
    """A plateau with a line of the service's files; alone, a request takes 0.2 s."""
    levels = [level(32.0 * 2**n, rate, cpu=cpu) for n, rate in enumerate(rates)]
    built = ladder(level(1, 5.0, cpu=cpu), level(4, 20.0, cpu=cpu), *levels)
    only = replace(built.curves[0], settings=(SourceLine(file, line, text),))
    return assess(replace(built, curves=(only,)))


def test_a_line_that_sets_the_rate_that_comes_out_names_the_limiter() -> None:
    finding = by_a_line("limit_req_zone $host zone=a:1m rate=60r/s;", 60.1, 60.0)

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE  # a lock may let as many through by chance
    assert finding.statement == "A rate limiter lets 60.0 /s through: 60 is set at zone.conf:3"
    on_its_own = by_a_line("--requests-per-second 60", 60.1, 60.0, file=COMMAND_LINE, line=0)
    assert isinstance(on_its_own, Finding)
    assert on_its_own.statement.endswith("60 is set on its command line")


@pytest.mark.parametrize(
    ("text", "rates", "cpu"),
    [
        ("VAT_RATE = 60", (60.1, 60.0), 0.1),
        ("max_persons = 60", (60.1, 60.0), 0.1),
        ("rate = 61", (60.1, 60.0), 0.1),
        ("rate = 60", (60.1, 61.5), 0.1),  # levels more than 1 % apart
        ("rate = 60", (60.1,), 0.1),
        ("workers = 60", (60.1, 60.0), 0.1),
        ("rate = 60", (60.1, 60.0), 3.9),  # of 4 cores
    ],
    ids=["a tax", "no seconds", "another number", "rates apart", "one level", "no rate", "cores are full"],
)
def test_a_line_that_does_not_fit_names_none(text: str, rates: tuple[float, ...], cpu: float) -> None:
    answer, named = by_a_line(text, *rates, cpu=cpu), by_a_line("rate = 60", 60.1, 60.0)

    assert isinstance(named, Finding)
    assert not isinstance(answer, Finding) or answer.grade is Grade.SUSPECTED
