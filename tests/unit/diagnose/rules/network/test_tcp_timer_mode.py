"""Piles at TCP's timers, and timers of the application."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.network.tcp_timer_mode import assess
from loadlens.model.facts import Facts, KernelWatch, ReceivedWatch
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from loadlens.model.shapes import SlowPath, TimerLevel, TimerPile
from tests.unit.diagnose.build import curve, estimate, step

LOOKED = SlowPath("b", "POST /b", 4_000, 2_000, 0, 8, 0.07)


def pile(place: str, timer: float, count: int, **more: Any) -> TimerPile:
    share = count / 4_000
    weight = Estimate("w", "share", share, 0.7 * share, min(1.0, 1.4 * share), 1, 4_000, "built")
    built: dict[str, Any] = {
        "label": "b",
        "request": "POST /b",
        "place": place,
        "timer_s": timer,
        "requests": 4_000,
        "count": count,
        "weight": weight,
        "shift": estimate(timer),
        "contrast": 12.0,
    }
    return TimerPile(**{**built, **more})


def record(*piles: TimerPile, kernel: KernelWatch | None = None, path: SlowPath = LOOKED) -> Facts:
    steps = [step(n, n / 0.04, 0.04, kernel=kernel) for n in (1, 2)]
    return Facts(4, (replace(curve(*steps, think=0.0), slow_paths=(path,), timer_piles=piles),))


def kernel(again: float | None, *, syn: float | None = None, drops: float | None = None) -> KernelWatch:
    """Return what the kernel counted at each of the two levels."""
    return KernelWatch(None, None, drops, again, syn)


def test_answers_that_wait_in_their_middle_for_40_ms_are_found() -> None:
    finding = assess(record(pile("answer", 0.04, 2_400)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE  # an answer in pieces looks the same
    assert finding.statement == "60 % of POST /b wait 40.0 ms: an acknowledgement is delayed"
    values = {e.signal: e.value for e in finding.evidence}
    assert values["component.shift"] == 0.04
    assert finding.impact == pytest.approx(0.6)  # 24 of 40 ms


@pytest.mark.parametrize(
    ("levels", "fires"),
    [
        (((1, 100, 1_000), (2, 300, 3_000)), True),
        (((1, 0, 1_000), (2, 400, 3_000)), False),  # 100 expected at the light level, none came
        (((1, 0, 40), (2, 400, 3_960)), True),  # 4 expected: too few to miss them
        (((1, 0, 1_000), (2, 0, 1_000), (4, 200, 1_000), (8, 200, 1_000)), False),  # two of four
        (((1, 0, 1_000), (2, 40, 1_000), (4, 160, 1_000), (8, 200, 1_000)), True),
    ],
)
def test_an_acknowledgement_is_delayed_at_every_load(
    levels: tuple[tuple[float, int, int], ...], fires: bool
) -> None:
    built = pile("answer", 0.04, 400, levels=tuple(TimerLevel(*level) for level in levels))

    assert isinstance(assess(record(built)), Finding if fires else Absent)


def test_a_pile_with_as_many_segments_sent_again_is_found() -> None:
    finding = assess(record(pile("whole", 0.2, 8), kernel=kernel(4.0)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG


def test_a_pile_without_segments_sent_again_is_a_timer_of_the_application() -> None:
    answer = assess(record(pile("whole", 0.2, 8), kernel=kernel(1.5)))

    assert isinstance(answer, Absent)
    assert "3 segments were sent again or dropped for 8" in answer.reason


def test_connections_are_held_against_requests_for_one_and_drops() -> None:
    refused = record(pile("opening", 1.0, 8), kernel=kernel(0.0, syn=1.0, drops=2.0))
    others = record(pile("opening", 1.0, 8), kernel=kernel(50.0, syn=0.0, drops=0.0))

    assert isinstance(assess(refused), Finding)  # two at each of two levels: one for two requests
    assert isinstance(assess(others), Absent)


@pytest.mark.parametrize(
    ("label", "at_1_s", "grade"),
    [("b", 4, Grade.STRONG), ("b", 3, Grade.SUSPECTED), ("other", 8, Grade.SUSPECTED)],
)
def test_what_is_lost_twice_was_lost_once(label: str, at_1_s: int, grade: Grade) -> None:
    """Eight connections wait 3 s; the kernel asked for each of them again."""
    once = pile("opening", 1.0, at_1_s, label=label, contrast=1.0)

    answer = assess(record(pile("opening", 3.0, 8), once, kernel=kernel(0.0, syn=8.0)))

    assert isinstance(answer, Finding)
    (earlier,) = (each for each in answer.evidence if each.signal == "tcp.earlier")
    assert earlier.passed is (True if grade is Grade.STRONG else None)
    assert answer.grade is grade


def test_a_drop_and_its_request_that_is_sent_again_are_one() -> None:
    both = record(pile("opening", 1.0, 8), kernel=kernel(0.0, syn=1.0, drops=1.0))

    assert isinstance(assess(both), Absent)  # two in all for eight


@pytest.mark.parametrize(
    ("levels", "fires"),
    [
        ((TimerLevel(1, 4), TimerLevel(2, 4)), True),  # 0 for 4, 4 for 4
        ((TimerLevel(1, 5), TimerLevel(2, 3)), False),  # 0 for 5, 3 for 3: what is beyond is of others
        ((TimerLevel(1, 8),), False),
        ((TimerLevel(2, 8),), True),
    ],
)
def test_segments_are_held_against_the_requests_of_their_own_level(
    levels: tuple[TimerLevel, ...], fires: bool
) -> None:
    built = record(pile("whole", 0.2, 8, levels=levels), kernel=kernel(0.0)).curves[0]
    steps = (built.steps[0], replace(built.steps[1], kernel=kernel(20.0 if len(levels) > 1 else 4.0)))

    assert isinstance(assess(Facts(4, (replace(built, steps=steps),))), Finding if fires else Absent)


def test_one_trial_is_no_more_than_probable() -> None:
    built = record(pile("whole", 0.2, 8), kernel=kernel(4.0)).curves[0]
    once = tuple(replace(s, trials=1) for s in built.steps)

    finding = assess(Facts(4, (replace(built, steps=once),)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_where_the_kernel_was_not_read_a_pile_is_a_suspicion() -> None:
    finding = assess(record(pile("whole", 0.2, 8)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_a_pile_lighter_than_two_in_ten_thousand_is_none() -> None:
    light = Estimate("w", "share", 0.0001, 0.00005, 0.0002, 1, 40_000, "built")

    assert isinstance(assess(record(pile("answer", 0.04, 4, weight=light))), Absent)


def test_no_pile_says_what_was_not_assessed() -> None:
    answer = assess(record())

    assert isinstance(answer, Absent)
    assert "among 4,000 requests; less than 0.02 % was not assessed" in answer.reason


def test_few_requests_and_thinned_logs_are_not_assessed() -> None:
    assert isinstance(assess(record(path=replace(LOOKED, requests=100))), NotAssessed)
    assert isinstance(assess(Facts(4, (curve(step(1, 20, 0.05)),))), NotAssessed)


@pytest.mark.parametrize(
    ("light", "heavy", "fires"),
    [
        (0.020, 0.040, False),  # two answers share a way on which one alone takes 20 ms
        (0.039, 0.041, True),
        (0.0002, 0.0008, True),  # one in fifty waits 40 ms: that grows with the load for other reasons
    ],
)
def test_answers_that_share_a_way_come_for_longer_the_more_there_are(
    light: float, heavy: float, fires: bool
) -> None:
    built = record(pile("answer", 0.04, 400)).curves[0]
    came = [ReceivedWatch(estimate(1e6), estimate(0.005), estimate(coming)) for coming in (light, heavy)]
    steps = tuple(replace(s, received=each) for s, each in zip(built.steps, came, strict=True))

    answer = assess(Facts(4, (replace(built, steps=steps),)))

    assert isinstance(answer, Finding if fires else Absent)
    if isinstance(answer, Absent):
        assert "at the heaviest load" in answer.reason
