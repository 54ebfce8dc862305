"""A limit of requests per connection: distinguished from a limit of age, and weighed by its cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.network import http_keepalive_limit as rule
from loadlens.diagnose.rules.network.http_keepalive_limit import assess
from loadlens.model.facts import Curve, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import connections, curve, estimate, facts, step


def limited(limit: int = 10, *, first: float = 0.015, other: float = 0.005, **more: Any) -> Curve:
    """One to sixteen users of a service that waits; more of them make connections live longer."""
    mean = other + (first - other) / limit
    return curve(*[_level(users, limit, first, other, mean, **more) for users in (1, 4, 16)], think=0.0)


def _level(users: int, limit: int, first: float, other: float, mean: float, **more: Any) -> Step:
    busy = 1 + users / 16
    built = {
        "opened": 400,
        "answered": 400 * limit,
        "limit": limit,
        "age": limit * mean * busy,
        "first": estimate(first * busy),
        "other": estimate(other * busy),
    }
    return step(users, users / mean, mean * busy, connections=connections(**{**built, **more}))


def found_in(built: Curve) -> Finding:
    answer = assess(facts(built))
    assert isinstance(answer, Finding), answer
    return answer


@pytest.mark.parametrize("limit", [2, 10, 100, 1000])
def test_the_limit_is_the_count_that_closed_connections_share(limit: int) -> None:
    answer = found_in(limited(limit, first=0.005 + 0.005 * limit))

    shown = next(e for e in answer.evidence if e.signal == "connection.requests")
    assert (shown.value, shown.low, shown.high) == (limit, limit, limit)
    assert answer.grade is Grade.STRONG
    # half of the mean is the first request's extra: 0.005 of 0.010
    assert answer.impact == pytest.approx(0.5, rel=0.01)
    assert answer.curves == ("k=1",)


def test_the_cost_is_the_extra_of_the_first_over_all_requests() -> None:
    answer = found_in(limited(10, first=0.015, other=0.005))

    cost = next(e for e in answer.evidence if e.signal == "connection.cost")
    assert cost.value == pytest.approx(0.010 / (10 * 0.006))
    assert cost.threshold == 0.02


@pytest.mark.parametrize(("first", "grade"), [(0.0062, Grade.STRONG), (0.0058, Grade.SUSPECTED)])
def test_below_two_percent_of_the_time_it_is_said_and_not_claimed(first: float, grade: Grade) -> None:
    built = limited(10, first=first)
    narrow = [
        replace(
            s,
            connections=replace(
                s.connections, first=estimate(first, half=1e-4), other=estimate(0.005, half=1e-4)
            ),
        )
        for s in built.steps
        if s.connections is not None
    ]

    answer = found_in(replace(built, steps=tuple(narrow)))

    assert answer.grade is grade
    mean = (0.005 + (first - 0.005) / 10) * 17 / 16  # of the lightest level
    assert answer.impact == pytest.approx((first - 0.005) / (10 * mean), rel=0.01)


def _with_first(level: Step, first: float, half: float) -> Step:
    assert level.connections is not None
    return replace(level, connections=replace(level.connections, first=estimate(first, half=half)))


def test_the_level_speaks_whose_cost_is_surely_highest_not_the_noisiest() -> None:
    light, noisy, busy = limited(10).steps
    wild = _with_first(noisy, 0.030, 0.9)  # 3 to 57 ms

    answer = found_in(replace(limited(10), steps=(light, wild, busy)))

    cost = next(e for e in answer.evidence if e.signal == "connection.cost")
    assert cost.value == pytest.approx(0.010 / (10 * 0.006))


def test_a_cost_that_may_be_nothing_is_said_and_not_claimed() -> None:
    wild = tuple(_with_first(s, 0.030, 0.95) for s in limited(10).steps)

    assert found_in(replace(limited(10), steps=wild)).grade is Grade.SUSPECTED


def test_where_first_requests_cannot_be_compared_it_is_suspected() -> None:
    lacking = limited(10)
    steps = [
        replace(s, connections=replace(s.connections, first=None))
        for s in lacking.steps
        if s.connections is not None
    ]

    assert found_in(replace(lacking, steps=tuple(steps))).grade is Grade.SUSPECTED


def test_connections_that_live_equally_long_with_other_counts_have_no_limit_of_requests() -> None:
    answer = assess(facts(limited(30, same_requests=0.6, same_age=1.0)))

    assert isinstance(answer, Absent)
    assert "60 %" in answer.reason


def test_another_count_at_another_level_is_no_limit_of_requests() -> None:
    built = limited(30, same_age=1.0)
    slower = replace(built.steps[-1], connections=connections(40, 40 * 27, limit=27, same_age=1.0))

    answer = assess(facts(replace(built, steps=(*built.steps[:-1], slower))))

    assert isinstance(answer, Absent)
    assert "27" in answer.reason


def test_at_one_pace_a_limit_of_age_stays_possible() -> None:
    answer = found_in(limited(10, age=0.3, same_age=1.0))

    assert answer.grade is Grade.SUSPECTED
    assert "limit of age" in [rival.rival for rival in answer.counter if rival.ruled_out is None]
    assert answer.unknown


def test_nobody_limits_an_age_below_a_quarter_of_a_second() -> None:
    assert found_in(limited(10, age=0.06, same_age=1.0)).grade is Grade.STRONG


def test_ages_that_differ_by_more_than_a_request_rule_a_limit_of_age_out() -> None:
    assert found_in(limited(10, same_age=1.0)).grade is Grade.STRONG


@pytest.mark.parametrize(("share", "fires"), [(0.80, True), (0.79, False)])
def test_four_of_five_must_share_the_count(share: float, fires: bool) -> None:
    assert isinstance(assess(facts(limited(10, same_requests=share))), Finding) is fires


def test_few_closings_say_nothing_and_how_far_one_could_see() -> None:
    steps = [step(n, 100.0 * n, 0.01, connections=connections(n, 5_000 * n)) for n in (1, 4)]

    answer = assess(facts(curve(*steps)))

    assert isinstance(answer, Absent)
    assert "5,000" in answer.reason


def test_one_request_each_is_another_finding() -> None:
    assert isinstance(assess(facts(limited(1))), Absent)


def test_failing_requests_may_be_what_closes_connections() -> None:
    failing = [replace(s, failed_count=round(0.2 * (s.issued or 0))) for s in limited(10).steps]

    assert found_in(replace(limited(10), steps=tuple(failing))).grade is Grade.PROBABLE


def test_a_client_that_closes_by_itself_cannot_tell() -> None:
    assert isinstance(assess(facts(limited(10, reuses=False))), NotAssessed)


def test_without_connections_nothing_is_assessed() -> None:
    answer = assess(facts(curve(step(1, 100.0, 0.01))))

    assert isinstance(answer, NotAssessed)
    assert answer.rule == rule.ID


def test_one_short_trial_is_enough_to_be_probable() -> None:
    once = [replace(s, trials=1) for s in limited(10).steps]

    assert found_in(replace(limited(10), steps=tuple(once))).grade is Grade.PROBABLE


def test_a_thousand_times_slower_service_gives_the_same_answer() -> None:
    fast, slow = found_in(limited(10)), found_in(limited(10, first=15.0, other=5.0))

    assert (fast.grade, fast.statement) == (slow.grade, slow.statement)
    assert fast.impact == pytest.approx(slow.impact)


def test_the_statement_has_its_numbers_and_fits() -> None:
    answer = found_in(limited(1000, first=5.0))

    assert len(answer.statement) <= 90
    assert "1,000 requests" in answer.statement
    assert all(len(e.chip) <= 32 for e in answer.evidence)


def test_connections_that_were_closed_unanswered_on_some_level_are_no_limit() -> None:
    built = limited(10)
    full = replace(built.steps[-1], connections=connections(40, 0, limit=0))

    answer = assess(facts(replace(built, steps=(*built.steps[:-1], full))))

    assert isinstance(answer, Absent)
    assert "0 at 16" in answer.reason


@pytest.mark.parametrize(("limit", "grade"), [(10, Grade.STRONG), (9, Grade.SUSPECTED)])
def test_ages_scatter_by_a_request_under_a_limit_of_age_too(limit: int, grade: Grade) -> None:
    assert found_in(limited(limit, age=0.3, same_age=0.4)).grade is grade
