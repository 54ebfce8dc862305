"""Dropped connections: by the kernel's count, by whole seconds, and not where packets were lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.network.accept_drops import assess_after
from loadlens.model.facts import Curve, Facts, KernelWatch
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import connections, curve, estimate, facts, process, step


def seen(drops: float | None, *, resent: int = 0, connects: int = 1_000, **more: Any) -> Curve:
    kernel = None if drops is None else KernelWatch(9.0, 8.0, drops, 20.0, 18.0)
    watch = connections(connects, connects, limit=1, connects=connects, resent=resent)
    top = step(16, 100.0, 0.16, kernel=kernel, connections=watch, **more)
    light = replace(top, load=1.0, kernel=None if kernel is None else replace(kernel, listen_drops=0.0))
    return curve(replace(light, connections=replace(watch, resent=0)), top)


def ask(built: Facts) -> Finding | Absent | NotAssessed:
    return assess_after(built, ())


def test_drops_and_connections_that_took_a_second_are_strong() -> None:
    answer = ask(facts(seen(30.0, resent=20)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.STRONG
    # 2 % of the connections, one a request, wait 1 s of a mean of 160 ms
    assert answer.impact == pytest.approx(0.02 / 0.16)
    assert "30" in answer.statement
    assert "from 8 to 32" in answer.advice
    assert len(answer.statement) <= 90
    assert all(len(e.chip) <= 32 for e in answer.evidence)


@pytest.mark.parametrize(("resent", "explained"), [(8, "accept.drops"), (7, None)])
def test_drops_that_cost_little_explain_no_plateau(resent: int, explained: str | None) -> None:
    """0.8 % of the connections wait 1 s of a mean of 160 ms: 5 %."""
    drops = ask(facts(seen(30.0, resent=resent)))
    assert isinstance(drops, Finding)
    assert drops.scope == "k=1"
    flat = Finding("saturation.plateau", Grade.STRONG, 0.5, "k=1", "x", "", (), (), "", "", curves=("k=1",))

    folded = diagnose.fold([drops, flat])

    assert [f.explained_by for f in folded] == [None, explained]


@pytest.mark.parametrize(
    ("each", "resent", "grade"),
    [
        (2, 0, Grade.SUSPECTED),  # connections of a user: its own, and a share of those of probes
        (3, 0, Grade.STRONG),  # it opens further ones
        (2, 30, Grade.STRONG),  # one in three requests and more waits a second, of a mean of 160 ms
    ],
)
def test_users_who_all_connect_as_the_load_begins(each: int, resent: int, grade: Grade) -> None:
    trials = len(seen(30.0).steps[-1].throughput_trials)
    answer = ask(facts(seen(30.0, resent=resent, connects=16 * each * trials)))

    assert isinstance(answer, Finding)
    assert answer.grade is grade


@pytest.mark.parametrize(("drops", "fires"), [(4.0, True), (3.0, False)])
def test_more_than_three_drops(drops: float, fires: bool) -> None:
    assert isinstance(ask(facts(seen(drops))), Finding if fires else Absent)


def test_drops_of_a_few_in_a_million_connections_are_none() -> None:
    assert isinstance(ask(facts(seen(4.0, connects=1_800_000))), Absent)
    assert isinstance(ask(facts(seen(361.0, connects=1_800_000))), Finding)  # 0.02 % are 360


def test_drops_alone_are_enough() -> None:
    answer = ask(facts(seen(30.0, resent=0)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.STRONG


@pytest.mark.parametrize(
    ("resent", "connects", "fires"), [(2, 10_000, True), (2, 10_001, False), (1, 100, False)]
)
def test_from_outside_two_and_two_in_ten_thousand(resent: int, connects: int, fires: bool) -> None:
    answer = ask(facts(seen(None, resent=resent, connects=connects)))

    assert isinstance(answer, Finding if fires else Absent)
    if isinstance(answer, Finding):
        assert answer.grade is Grade.SUSPECTED  # packets may have been lost
        assert len(answer.statement) <= 90


def busy(light: float, full: float) -> Curve:
    """Drops at 8 and 16 users of a service that uses so many of 2 cores there."""
    built = seen(30.0, resent=20, processes=(process(full, waiting=7.0, hot=8),))
    top = built.steps[-1]
    half = replace(top, load=8.0, processes=(process(light, waiting=7.0, hot=8),))
    return replace(built, steps=(built.steps[0], half, top), cores_allotted=2.0)


def named(rule: str, grade: Grade = Grade.PROBABLE, curves: tuple[str, ...] = ("k=1",)) -> Finding:
    return Finding(rule, grade, 0.5, "k=1", "x", "", (), (), "", "", curves=curves)


@pytest.mark.parametrize(
    ("light", "others", "explained"),
    [
        (1.8, [named("cpu.saturated")], "cpu.saturated"),
        (1.6, [named("cpu.saturated")], None),  # a fifth of the cores was idle at 8 users
        (1.8, [named("cpu.saturated", Grade.SUSPECTED)], None),
        (1.8, [named("cpu.saturated", curves=("k=2",))], None),
        (1.8, [named("db.lock")], None),
    ],
)
def test_drops_at_full_processors_alone_are_their_consequence(
    light: float, others: list[Finding], explained: str | None
) -> None:
    answer = assess_after(facts(busy(light, 1.9)), others)

    assert isinstance(answer, Finding)
    assert answer.explained_by == explained


@pytest.mark.parametrize(("host", "explained"), [(3.9, "cpu.saturated"), (3.0, None)])
def test_cores_that_other_programs_fill_as_well_are_full(host: float, explained: str | None) -> None:
    built = busy(1.2, 1.2)
    steps = tuple(replace(step, host_cpu=estimate(host, unit="cores")) for step in built.steps)
    shared = replace(built, steps=steps, shares_cores=True)

    answer = assess_after(facts(shared, cores=4), [named("cpu.saturated")])

    assert isinstance(answer, Finding)
    assert answer.explained_by == explained


def test_drops_at_full_processors_still_explain_a_wait_for_connections() -> None:
    processors = named("cpu.saturated")
    drops = assess_after(facts(busy(1.8, 1.9)), [processors])
    assert isinstance(drops, Finding)

    folded = diagnose.fold([processors, drops, named("tcp.timer-mode"), named("saturation.plateau")])

    assert [f.explained_by for f in folded] == [None, "cpu.saturated", "accept.drops", "cpu.saturated"]


def test_packets_lost_on_the_way_are_told_by_the_kernel() -> None:
    answer = ask(facts(seen(0.0, resent=50)))

    assert isinstance(answer, Absent)
    assert "0 were dropped at the port" in answer.reason


def test_a_calm_service_is_silent_with_what_was_looked_at() -> None:
    answer = ask(facts(seen(0.0)))

    assert isinstance(answer, Absent)
    assert "2,000 connections" in answer.reason


def test_where_nobody_watched_nothing_is_assessed() -> None:
    assert isinstance(ask(facts(curve(step(1, 100.0, 0.01)))), NotAssessed)


def test_one_trial_is_probable() -> None:
    assert isinstance(answer := ask(facts(seen(30.0, resent=20, trials=1))), Finding)
    assert answer.grade is Grade.PROBABLE


@pytest.mark.parametrize(("answered", "rate", "shown"), [(1_000, 100.0, "100 /s"), (4_000, 25.0, "25.0 /s")])
def test_what_is_accepted_is_said_to_be_a_lower_bound(answered: int, rate: float, shown: str) -> None:
    """100 requests/s, on a connection each, or four on each: 25 connections."""
    built = seen(30.0, resent=20)
    top = built.steps[-1]
    assert top.connections is not None
    reused = replace(top, connections=replace(top.connections, answered=answered))

    answer = ask(facts(replace(built, steps=(built.steps[0], reused))))

    assert isinstance(answer, Finding)
    (rate_shown,) = [e for e in answer.evidence if e.signal == "accept.rate"]
    assert (rate_shown.value, rate_shown.low, rate_shown.high) == (rate, rate, None)
    assert "a lower bound" in rate_shown.text
    assert f"can accept {shown} or more" in answer.explanation


def test_without_connections_nothing_is_said_of_what_is_accepted() -> None:
    built = seen(30.0)
    blind = tuple(replace(s, connections=None) for s in built.steps)

    answer = ask(facts(replace(built, steps=blind)))

    assert isinstance(answer, Finding)
    assert "accept.rate" not in {e.signal for e in answer.evidence}
    assert "accept" not in answer.explanation
