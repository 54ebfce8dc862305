"""A service that refuses early, a broken one, and one whose requests wait in vain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.overload.shed_overload import assess
from loadlens.model.facts import Curve, FailureMode, RefusalWatch, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, estimate, facts, step

WORK, ROOM = 0.05, 8  # 8 at once for 50 ms: 160/s


def level(
    users: int,
    share: float,
    *,
    response: float = WORK,
    rate: float | None = None,
    late: float = 0.001,
    status: int = 503,
    **more: Any,
) -> Step:
    offered = users / 0.1
    passed = offered * (1 - share) if rate is None else rate
    refusal = RefusalWatch(
        status, estimate(share, unit="share"), estimate(passed, unit="1/s"), estimate(8.0), 0.3, offered
    )
    count = round(share * 1_000)
    statuses = more.pop("statuses", ((200, 1_000 - count), (status, count)))
    mode = FailureMode("b", "unexpected_status", status, count, late, 0.5, response)
    return step(
        users,
        passed,
        response,
        refusals=(refusal,) if share >= 0.01 else (),
        statuses=statuses,
        failures=(mode,) if count else (),
        **more,
    )


def shedding(*, top: dict[str, Any] | None = None) -> Curve:
    """Users who pause for 50 ms: more than 16 of them find no room at times."""
    light = (level(4, 0.0), level(16, 0.0))
    return curve(*light, level(24, 1 / 3, **(top or {})), level(48, 2 / 3, **(top or {})), think=0.05)


def test_a_part_that_breaks_on_the_way_refuses_as_much_at_every_load_from_then_on() -> None:
    """One of three replicas dies between 8 users and 16: what the others do grows with the load."""
    levels = [level(8, 0.0), level(16, 1 / 3), level(32, 1 / 3), level(64, 1 / 3)]

    answer = assess(facts(curve(*levels)))

    assert isinstance(answer, Absent)
    assert "for each success" in answer.reason


@pytest.mark.parametrize(("first", "fires"), [(0.58, True), (0.59, False)])
def test_refusals_for_each_success_grow_by_the_root_of_the_load_at_least(first: float, fires: bool) -> None:
    """Twice the load and 2 for each success, so up to 2 / 1.414 before: a share of 0.586."""
    levels = [level(4, 0.0), level(24, first, rate=150.0), level(48, 2 / 3)]

    assert isinstance(assess(facts(curve(*levels))), Finding if fires else Absent)


@pytest.mark.parametrize(
    "before", [level(16, 0.04), level(32, 0.33, rate=160.0)]
)  # hardly refused any; hardly less offered
def test_one_level_that_is_refused_some_leaves_open_whether_a_part_broke(before: Step) -> None:
    answer = assess(facts(curve(level(4, 0.0), before, level(40, 0.6, rate=160.0))))

    assert isinstance(answer, Finding)
    assert [rival.ruled_out for rival in answer.counter if rival.rival == "a part that broke"] == [None]


def test_refusing_early_is_found_and_to_be_kept() -> None:
    answer = assess(facts(shedding()))

    assert isinstance(answer, Finding)
    assert [rival.ruled_out for rival in answer.counter if rival.rival == "a part that broke"] == [True]
    assert answer.grade is Grade.PROBABLE  # whether a 503 says when to come again is not recorded
    assert answer.impact == pytest.approx(2 / 3)
    assert answer.advice.startswith("Keep it")
    assert "67 %" in answer.statement
    assert len(answer.statement) <= 90
    assert all(len(e.chip) <= 32 for e in answer.evidence)


def test_the_longer_curve_speaks() -> None:
    short = replace(curve(level(4, 0.0), level(8, 0.9, rate=40.0)), label="short")
    long = replace(shedding(), label="long")

    answer = assess(facts(short, long))

    assert isinstance(answer, Finding)
    assert answer.curves == ("long",)


def test_the_same_share_at_every_load_is_a_broken_part() -> None:
    answer = assess(facts(curve(*[level(n, 0.12) for n in (4, 16, 32)])))

    assert isinstance(answer, Absent)
    assert "12 %" in answer.reason


@pytest.mark.parametrize(("lowest", "fires"), [(0.25, True), (0.26, False)])
def test_the_share_must_double_with_the_load(lowest: float, fires: bool) -> None:
    answer = assess(facts(curve(level(4, lowest), level(16, 0.3), level(32, 0.5, rate=160.0))))

    assert isinstance(answer, Finding if fires else Absent)


def test_few_answers_at_the_lowest_level_may_hide_the_same_share() -> None:
    light = level(4, 0.0, statuses=((200, 200),))  # none of 200: with 99 % confidence at most 2.6 %

    answer = assess(facts(curve(light, level(32, 0.05))))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


def test_all_levels_below_the_first_refusals_show_together_that_there_were_none() -> None:
    """None of 18, 72 and 400: of 490 with 99 % confidence at most 1.1 %, where half of 5 % is the limit."""
    light = [level(n, 0.0, statuses=((200, count),)) for n, count in ((1, 18), (4, 72), (16, 400))]

    answer = assess(facts(curve(*light, level(32, 0.05))))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE
    assert any("at 1 to 16, 5.0 % at 32" in evidence.text for evidence in answer.evidence)


def test_levels_without_refusals_after_the_first_ones_are_not_counted_in() -> None:
    """A tenth fails at 4 users and at 32 users; a part recovered for the 1,000 answers between."""
    levels = [level(1, 0.0, statuses=((200, 18),)), level(4, 0.1), level(16, 0.0), level(32, 0.1)]

    answer = assess(facts(curve(*levels)))

    assert not isinstance(answer, Finding) or answer.grade is Grade.SUSPECTED


@pytest.mark.parametrize(("response", "fires"), [(1.49 * WORK, True), (1.51 * WORK, False)])
def test_successes_must_be_served_as_before(response: float, fires: bool) -> None:
    assert isinstance(assess(facts(shedding(top={"response": response}))), Finding if fires else Absent)


@pytest.mark.parametrize(("rate", "fires"), [(144.0, True), (143.0, False)])
def test_throughput_must_be_kept(rate: float, fires: bool) -> None:
    assert isinstance(assess(facts(shedding(top={"rate": rate}))), Finding if fires else Absent)


def test_errors_that_come_after_waiting_are_no_refusals() -> None:
    answer = assess(facts(shedding(top={"late": 2.0})))

    assert isinstance(answer, Absent)
    assert "2" in answer.reason


def test_one_level_alone_is_no_more_than_a_suspicion() -> None:
    answer = assess(facts(curve(level(32, 0.5))))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


def test_a_limiter_that_answers_429_is_none() -> None:
    assert isinstance(assess(facts(shedding(top={"status": 429}))), Absent)


def test_without_refusals_it_is_silent() -> None:
    assert isinstance(assess(facts(curve(level(4, 0.0), level(8, 0.0)))), Absent)


def test_a_load_without_statuses_is_not_assessed() -> None:
    assert isinstance(assess(facts(curve(step(4, 40.0, WORK)))), NotAssessed)


def test_refusals_that_were_too_short_to_measure_are_not_assessed() -> None:
    answer = assess(facts(curve(step(4, 40.0, WORK, statuses=((200, 90), (503, 10))))))

    assert isinstance(answer, NotAssessed)
