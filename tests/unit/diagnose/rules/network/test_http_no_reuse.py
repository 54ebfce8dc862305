"""A new connection for every request: found where the service closes, not where the client or errors do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose import assess as every_rule
from loadlens.diagnose.rules.network.http_no_reuse import assess
from loadlens.model.facts import Curve, Handshakes, KernelWatch
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import connections, curve, estimate, facts, step, times


def single(opened: int = 500, *, answered: int = 500, failed: float = 0.0, **more: Any) -> Curve:
    watch = connections(opened, answered, **{"limit": 1, "connect": estimate(0.001), **more})
    steps = []
    for users in (1, 8):
        built = step(users, 100.0 * users, 0.010, connections=watch)
        steps.append(replace(built, failed_count=round(failed * (built.issued or 0))))
    return curve(*steps)


def test_one_request_a_connection_is_found_with_what_connecting_takes() -> None:
    answer = assess(facts(single()))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE  # what version the answers have is not recorded
    assert answer.impact == pytest.approx(0.1)  # 1 ms of 10 ms
    assert "1 ms of 10 ms" in answer.statement.replace("1.00", "1").replace("10.0", "10")
    assert len(answer.statement) <= 90
    assert all(len(e.chip) <= 32 for e in answer.evidence)


@pytest.mark.parametrize(("answered", "fires"), [(749, True), (750, False), (5_000, False)])
def test_fewer_than_one_and_a_half_requests_each(answered: int, fires: bool) -> None:
    answer = assess(facts(single(answered=answered)))

    assert isinstance(answer, Finding if fires else Absent)


@pytest.mark.parametrize(("by_server", "fires"), [(400, True), (399, False)])
def test_the_service_must_be_who_closes(by_server: int, fires: bool) -> None:
    answer = assess(facts(single(closed_by_server=by_server)))

    assert isinstance(answer, Finding if fires else Absent)


@pytest.mark.parametrize(("failed", "fires"), [(0.2, True), (0.6, False)])
def test_errors_close_connections(failed: float, fires: bool) -> None:
    answer = assess(facts(single(failed=failed)))

    assert isinstance(answer, Finding if fires else Absent)


def test_a_client_that_closes_by_itself_cannot_tell() -> None:
    assert isinstance(assess(facts(single(reuses=False))), NotAssessed)


def test_connections_that_last_are_silent() -> None:
    kept = [step(n, 100.0 * n, 0.01, connections=connections(n, 5_000 * n)) for n in (1, 8)]

    assert isinstance(assess(facts(curve(*kept))), Absent)


def test_without_the_time_to_connect_it_is_found_all_the_same() -> None:
    answer = assess(facts(single(connect=None)))

    assert isinstance(answer, Finding)
    assert "500" in answer.statement


def test_without_connections_nothing_is_assessed() -> None:
    assert isinstance(assess(facts(curve(step(1, 100.0, 0.01)))), NotAssessed)


def test_what_would_confirm_it_counts_the_connections_of_a_trial() -> None:
    closed, opened = single(600), replace(single(600), is_closed=False)  # of three trials

    users, rate = assess(facts(closed)), assess(facts(opened))

    assert isinstance(users, Finding)
    assert users.confirm == "the same load with keep-alive: 1 connections per trial instead of 200"
    assert isinstance(rate, Finding)
    assert rate.confirm == "the same load with keep-alive: far fewer connections instead of 200"


@pytest.mark.parametrize(("resent", "fires"), [(0, True), (24, True), (26, False)])
def test_connections_that_were_dropped_are_why_connecting_takes_long(resent: int, fires: bool) -> None:
    # 500 of 1 s each time that they are asked for again; 100 ms of connecting each are 50 s in all.
    built = single(connect=estimate(0.1), connects=500, resent=resent)
    steps = tuple(replace(each, response=times(0.2)) for each in built.steps)

    answer = assess(facts(replace(built, steps=steps)))

    assert isinstance(answer, Finding if fires else Absent)


def opening(
    each: float,
    *,
    kept: bool = True,
    share: float | None = 0.55,
    rates: tuple[float, ...] = (100.0, 200.0, 200.0),
) -> Curve:
    """A service whose requests each open so many connections to another program of the machine."""
    steps = []
    for users, rate in zip((1, 8, 32), rates, strict=True):
        answered = round(10 * rate)
        kernel = KernelWatch(0, 128, 0, 0, 0, begun=users + each * answered, begun_s=10.0)
        watch = connections(users if kept else answered, answered)
        steps.append(step(users, rate, users / rate, connections=watch, kernel=kernel))
    begins = None if share is None else Handshakes(share, "ssl.SSLSocket.do_handshake")
    return curve(*steps[:-1], replace(steps[-1], handshakes=begins), think=0.0)


def test_connections_that_requests_open_are_found_where_beginning_them_is_the_work() -> None:
    answer = assess(facts(opening(1.0)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE  # it stands on one trial
    assert answer.statement == "Requests open TLS connections within the service: 55 % of the CPU at 200 /s"
    assert answer.impact == pytest.approx(0.55)
    assert all(len(e.chip) <= 32 for e in answer.evidence)


@pytest.mark.parametrize(
    "built",
    [
        opening(0.5),  # most requests find one that stands
        opening(1.0, share=None),  # connections cost hardly anything
        opening(1.0, rates=(100.0, 800.0, 3200.0)),  # no limit
        opening(1.0, kept=False),  # the handshakes may be those of the load
    ],
)
def test_connections_that_requests_open_are_no_finding_otherwise(built: Curve) -> None:
    assert isinstance(assess(facts(built)), Absent)


def test_they_explain_the_plateau_and_those_of_the_client_do_not() -> None:
    folded = {finding.rule: finding.explained_by for finding in every_rule(facts(opening(1.0))).findings}
    assert folded["saturation.plateau"] == "http.no-reuse"

    steps = single().steps
    client = curve(*steps, step(32, 800.0, 0.04, connections=steps[0].connections))
    folded = {finding.rule: finding.explained_by for finding in every_rule(facts(client)).findings}
    assert folded["http.no-reuse"] is None
    assert "http.no-reuse" not in folded.values()
