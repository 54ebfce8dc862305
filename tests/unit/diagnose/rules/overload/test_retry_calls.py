"""Calls for each request that grow where requests fail, next to what looks the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.overload.retry_calls import assess
from loadlens.model.facts import CallsWatch, FailureMode, KernelWatch, LogSign, Step
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
        (level(32, 2.6, 0.2), 2.0),  # half a call more, and not half as many again
        (level(32, 1.4, 0.2), 0.92),  # half as many again, and not half a call
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


def test_connections_of_a_busy_neighbour_may_be_its_own() -> None:
    """As above, where other programs use a core at any load."""

    def opening(built: Step, each: float) -> Step:
        watch = connections(opened=4, answered=built.issued or 0)
        kernel = KernelWatch(0, 128, 0, 0, 0, begun=4 + each * (built.issued or 0), begun_s=60.0)
        return replace(built, connections=watch, kernel=kernel, other_cores=1.0)

    levels = [opening(level(users, 0.9, 0.0), 0.3) for users in (1, 4)]
    storm = facts(curve(*levels, opening(level(32, 0.9, 0.5), 4.3)))

    assert found(assess(storm)).grade is Grade.SUSPECTED


def test_what_is_polled_at_a_constant_rate_is_no_call_of_a_request() -> None:
    """The program is called once for each request, and asked twice a second whether it is there."""

    def polled(built: Step, rate: float) -> Step:
        return replace(
            built, calls=calls(1 + 2 / rate), throughput_trials=(rate,) * 3, completed_trials=(rate,) * 3
        )

    levels = [polled(level(users, 1.0, 0.0), 20.0 * users) for users in (1, 4)]

    answer = assess(facts(curve(*levels, polled(level(32, 1.0, 0.5), 3.0))))

    assert isinstance(answer, Absent)


def test_requests_without_an_answer_are_requests_all_the_same() -> None:
    """Each opens a connection, and half of those at the heaviest load are given up by the client."""

    def opening(users: float, answered: float) -> Step:
        built = level(users, 0.9, 1 - answered)
        issued = built.issued or 0
        lost = FailureMode("b", "timeout", 0, round((1 - answered) * issued), None, None, None)
        watch = connections(opened=0, answered=round(answered * issued))
        kernel = KernelWatch(0, 128, 0, 0, 0, begun=issued, begun_s=60.0)
        failures = (lost,) if answered < 1 else ()
        return replace(built, connections=watch, kernel=kernel, failures=failures)

    assert isinstance(assess(facts(curve(opening(1, 1.0), opening(4, 1.0), opening(32, 0.5)))), Absent)


def test_messages_that_begin_a_connection_are_no_calls() -> None:
    """A driver connects again after a call that failed, with six messages."""

    def reopening(built: Step, each: float) -> Step:
        issued = built.issued or 0
        watch = connections(opened=0, answered=issued)
        kernel = KernelWatch(0, 128, 0, 0, 0, begun=each * issued, begun_s=60.0)
        return replace(built, connections=watch, kernel=kernel)

    levels = [reopening(level(users, 1.0, 0.0), 0.0) for users in (1, 4)]

    answer = assess(facts(curve(*levels, reopening(level(32, 2.2, 0.2), 0.2))))

    assert isinstance(answer, Absent)


def test_a_service_that_calls_nothing_is_not_assessed() -> None:
    assert isinstance(assess(facts(curve(step(1, 100, 0.01), step(8, 800, 0.01)))), NotAssessed)
    assert not isinstance(assess(ladder(level(32, 1.0, 0.0))), Finding)
