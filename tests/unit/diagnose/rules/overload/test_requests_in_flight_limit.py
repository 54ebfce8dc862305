"""A limit of requests in flight that fails at once, a limit of a rate, and failures by chance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.overload.requests_in_flight_limit import assess
from loadlens.model.facts import Curve
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.shapes import FailedAtOnce
from tests.unit.diagnose.build import curve, facts, step

WORK, ROOM = 0.04, 6


def level(users: float, **more: Any) -> FailedAtOnce:
    """A level beyond the room: 6 are served for 40 ms each, the others ask 1,000 times a second."""
    built: dict[str, Any] = {
        "outcome": "unexpected_status",
        "status": 500,
        "failures": round(2_000 * (users - ROOM)),
        "successes": 300,
        "failure_s": 0.001,
        "success_s": WORK,
        "served": ROOM,
        "same": 0.98,
        "first": (6.0,),
        "beyond": 0.02,
    }
    return FailedAtOnce(users, **{**built, **more})


def limited(*levels: FailedAtOnce, **more: Any) -> Curve:
    light = [step(n, n / WORK, WORK) for n in (1, 2, 4)]
    full = [
        step(n, ROOM / WORK, WORK, failed_count=level(n).failures, issued=level(n).failures + 300)
        for n in (8, 16)
    ]
    return replace(curve(*light, *full, think=0.0), failed=levels or (level(8), level(16)), **more)


@pytest.mark.parametrize(
    ("status", "outcome"), [(500, "unexpected_status"), (503, "unexpected_status"), (0, "reset")]
)
def test_the_number_is_named_whatever_the_status(status: int, outcome: str) -> None:
    levels = [level(n, status=status, outcome=outcome) for n in (8, 16)]

    answer = assess(facts(limited(*levels)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.STRONG
    assert answer.statement.startswith("6 are served at a time; at 16 users the rest fails at once")
    assert len(answer.statement) <= 90
    assert answer.impact == pytest.approx(1 - 6 / 16)
    assert all(len(e.chip) <= 32 for e in answer.evidence)
    assert "12 at once" in answer.confirm


def test_one_level_with_failures_is_no_proof_against_a_broken_part() -> None:
    answer = assess(facts(limited(level(8))))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"same": 0.79}, "79 %"),  # some failures come while a place is free: a limit of the rate
        ({"first": (12.0,)}, "12 at the first failures"),  # what was saved up is used first
        ({"first": (6.0, 3.0)}, "3 at the first failures"),  # or there was less than fits
        ({"beyond": 0.16}, "16 %"),  # more are served at times: failures by chance
        ({"failure_s": 0.021}, "21.0 ms"),  # they waited
        ({"success_s": None, "successes": 0}, "nothing succeeds"),
    ],
)
def test_a_near_miss_is_no_limit_in_flight(wrong: dict[str, Any], says: str) -> None:
    answer = assess(facts(limited(level(8), level(16, **wrong))))

    assert isinstance(answer, Absent)
    assert says in answer.reason


@pytest.mark.parametrize(
    ("right", "fires"),
    [({"same": 0.80}, True), ({"beyond": 0.15}, True), ({"failure_s": 0.020}, True), ({"served": 7}, False)],
)
def test_thresholds(right: dict[str, Any], fires: bool) -> None:
    """7 in service at twice the users, in place of 6, is another number."""
    first = {"first": (7.0,)} if "served" in right else {}

    answer = assess(facts(limited(level(8), level(16, **right, **first))))

    assert isinstance(answer, Finding if fires else Absent)


def test_a_number_that_grows_with_the_users_is_that_of_the_others() -> None:
    """One in eight connections goes to a part that is broken: 7 of 8 are served, then 14 of 16."""
    levels = [level(n, served=served, first=(float(served),)) for n, served in ((8, 7), (16, 14))]

    answer = assess(facts(limited(*levels)))

    assert isinstance(answer, Absent)
    assert "7 to 14" in answer.reason


@pytest.mark.parametrize(("failed", "fires"), [(1, True), (2, False)])
def test_nothing_fails_on_levels_with_room(failed: int, fires: bool) -> None:
    """One of 1,000 is a single fault; two are a share that fails at any load."""
    light = level(4, failures=failed, successes=1_000 - failed)

    assert isinstance(assess(facts(limited(light, level(8), level(16)))), Finding if fires else Absent)


def test_without_a_level_that_has_room_it_is_only_suspected() -> None:
    built = limited()

    answer = assess(facts(replace(built, steps=built.steps[3:])))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


def test_all_other_users_are_no_number_that_more_could_pass() -> None:
    """Of 64 users 2 % fail by chance, while the other 63 are served: there are no more."""
    by_chance = level(64, served=63, same=1.0, first=(63.0,), beyond=0.0)
    steps = (
        *limited().steps[:3],
        step(32, 32 / WORK, WORK),
        step(64, 64 / WORK, WORK, failed_count=40, issued=2_000),
    )

    answer = assess(facts(replace(limited(by_chance), steps=steps)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


def test_of_an_open_load_it_is_only_suspected() -> None:
    answer = assess(facts(limited(is_closed=False)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


def test_failures_without_a_log_are_not_assessed() -> None:
    assert isinstance(assess(facts(replace(limited(), failed=()))), NotAssessed)


def test_a_service_without_failures_is_silent() -> None:
    assert isinstance(assess(facts(curve(step(4, 100.0, WORK)))), Absent)


def test_it_explains_that_throughput_stops() -> None:
    verdict = diagnose.assess(facts(limited()))

    by_rule = {finding.rule: finding.explained_by for finding in verdict.findings}
    assert by_rule["requests.in-flight-limit"] is None
    assert by_rule.get("saturation.plateau", "requests.in-flight-limit") == "requests.in-flight-limit"
