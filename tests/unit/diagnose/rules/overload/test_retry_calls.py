"""Calls for each request that grow where requests fail, next to what looks the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.overload.retry_calls import assess
from loadlens.model.facts import CallsWatch, EndedLevel, FailureMode, KernelWatch, LogSign, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import connections, curve, facts, found, step
from tests.unit.diagnose.waiting import gauge


def calls(each: float) -> tuple[CallsWatch, ...]:
    """Calls as the kernel saw them, so many for each request."""
    return (CallsWatch("quotes:8081", gauge("calls to quotes:8081", 2.0), each, 4.0),)


def level(users: float, each: float, failed: float, **more: Any) -> Step:
    """A level at which requests take 10 ms up to 8 users, and wait beyond."""
    rate = min(users, 8) / 0.01
    built = step(users, rate, users / rate, **more)
    assert built.issued is not None
    return replace(built, calls=calls(each), failed_count=round(failed * built.issued))


def ladder(heavy: Step, *, light: float = 1.0) -> Any:
    """Light loads with so many calls for each request, and a heavier one."""
    return facts(curve(level(1, light, 0.0), level(4, light, 0.0), heavy))


def test_calls_that_grow_where_requests_fail_are_retries() -> None:
    answer = found(assess(ladder(level(32, 2.5, 0.2))))

    assert answer.grade is Grade.PROBABLE
    assert answer.statement == (
        "Retries: 2.5 calls to quotes:8081 for each request at 32 users, 1 where none fails"
    )
    assert answer.impact == pytest.approx(0.6)  # of 2.5 calls 1.5 are made again
    assert all(len(each.chip) <= 32 for each in answer.evidence)


@pytest.mark.parametrize(
    ("heavy", "light"),
    [
        (level(32, 2.5, 0.0), 1.0),  # nothing fails: answers may have grown
        (level(32, 1.3, 0.2), 1.0),  # hardly more
        (level(32, 0.9, 0.2), 0.2),  # a cache, which holds less under load
        (level(32, 2.5, 0.2, log_signs=(LogSign("pool", 40, "pool timed out"),)), 1.0),
    ],
)
def test_what_looks_the_same_is_no_retry(heavy: Step, light: float) -> None:
    assert isinstance(assess(ladder(heavy, light=light)), Absent)


def test_calls_that_take_their_connections_with_them_are_counted_as_connections() -> None:
    """Each level lasts 60 s; checks open one connection a second at any load."""

    def opening(built: Step, each: float) -> Step:
        watch = connections(opened=4, answered=built.issued or 0)
        begun = 4 + 60 + each * (built.issued or 0)
        kernel = KernelWatch(0, 128, 0, 0, 0, begun=begun, begun_s=60.0)
        return replace(built, connections=watch, kernel=kernel)

    levels = [opening(level(users, 0.9, 0.0), 0.3) for users in (1, 4)]
    storm = facts(curve(*levels, opening(level(32, 0.9, 0.5), 4.3)))
    quiet = facts(curve(*levels, opening(level(32, 0.9, 0.5), 0.3)))

    assert found(assess(storm)).statement == (
        "Retries: 4.3 new connections for each request at 32 users, 0.9 where none fails"
    )
    assert isinstance(assess(quiet), Absent)


def test_trials_that_failures_ended_count_as_well() -> None:
    mode = FailureMode("load", "unexpected_status", 503, 50, None, None, None)
    built = curve(level(1, 1.0, 0.0), level(4, 1.0, 0.0))
    ended = EndedLevel(32.0, 200, (mode,), (), calls=calls(3.0))

    answer = found(assess(facts(replace(built, ended=(ended,)))))

    assert "3 calls to quotes:8081 for each request at 32 users" in answer.statement
    assert next(each for each in answer.evidence if each.signal == "errors.share").value == 0.25


def test_a_service_that_calls_nothing_is_not_assessed() -> None:
    assert isinstance(assess(facts(curve(step(1, 100, 0.01), step(8, 800, 0.01)))), NotAssessed)
    assert not isinstance(assess(ladder(level(32, 1.0, 0.0))), Finding)
