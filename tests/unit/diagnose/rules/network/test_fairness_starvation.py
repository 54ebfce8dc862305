"""Connections that starve are distinguished from chance, from a full service and from uneven backends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.network.fairness_starvation import assess
from loadlens.model.facts import Curve, Step
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import connections, curve, facts, process, step

ONE = (process(0.4),)
TWO = (process(0.9, label="p0"), process(0.8, label="p1"))


def level(users: int, rate: float, *, ratio: float = 20.0, jain: float = 0.7, **more: Any) -> Step:
    shown = Estimate("r", "ratio", ratio, ratio * 0.95, ratio * 1.05, 3, 60, "built")
    watch = connections(users, 20_000, lasting=users, best_over_worst=shown, evenness=jain)
    return step(users, rate, users / rate, connections=watch, **more)


def starving(**more: Any) -> Curve:
    """Two levels of connections that can be compared, of a service with room for more."""
    alone = step(8, 500.0, 0.016, connections=connections(8, 5_000, lasting=8))
    return curve(alone, level(16, 1_000.0, **more), level(32, 2_000.0, **more), think=0.0)


def test_starved_connections_are_found_at_the_calmest_level() -> None:
    answer = assess(facts(starving(processes=ONE)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.STRONG
    ratio = next(e for e in answer.evidence if e.signal == "connections.ratio")
    assert (ratio.value, ratio.threshold) == (20.0, 3.0)
    assert "16 users" in answer.statement
    assert answer.impact == pytest.approx(0.3)
    assert len(answer.statement) <= 90
    assert all(len(e.chip) <= 32 for e in answer.evidence)


@pytest.mark.parametrize(
    ("ratio", "jain", "fires"), [(3.0, 0.95, True), (2.9, 0.8, False), (2.9, 0.79, True), (1.9, 0.79, False)]
)
def test_three_times_or_an_index_below_eight_tenths(ratio: float, jain: float, fires: bool) -> None:
    answer = assess(facts(starving(processes=ONE, ratio=ratio, jain=jain)))

    assert isinstance(answer, Finding if fires else Absent)


def test_chance_among_equals_is_silent_with_its_figures() -> None:
    answer = assess(facts(starving(ratio=1.2, jain=0.99)))

    assert isinstance(answer, Absent)
    assert "1.2" in answer.reason


def test_from_outside_uneven_backends_stay_possible() -> None:
    """A balancer may keep connections with a replica that is slow while throughput still grows."""
    answer = assess(facts(starving()))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


@pytest.mark.parametrize("processes", [(), TWO])
def test_connections_hashed_over_full_processes_are_no_more_than_a_suspicion(processes: Any) -> None:
    answer = assess(facts(curve(step(16, 1_000.0, 0.016), level(32, 1_000.0, processes=processes))))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


def test_one_process_that_is_full_may_starve_connections_too() -> None:
    answer = assess(facts(curve(step(16, 1_000.0, 0.016), level(32, 1_000.0, processes=ONE))))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.STRONG


def test_several_classes_may_be_unevenly_asked() -> None:
    built = starving(processes=ONE)
    mixed = [replace(s, classes=(*s.classes, *s.classes)) for s in built.steps]

    answer = assess(facts(replace(built, steps=tuple(mixed))))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE


def test_few_connections_are_not_assessed() -> None:
    answer = assess(facts(curve(step(8, 500.0, 0.016, connections=connections(8, 5_000, lasting=8)))))

    assert isinstance(answer, NotAssessed)
    assert "8" in answer.reason


def test_an_open_load_shares_its_connections_anyhow() -> None:
    assert isinstance(assess(facts(replace(starving(), is_closed=False))), NotAssessed)


def test_without_connections_nothing_is_assessed() -> None:
    assert isinstance(assess(facts(curve(step(16, 500.0, 0.03)))), NotAssessed)


def test_connections_may_stay_with_a_process_that_is_slower_at_any_load() -> None:
    answer = assess(facts(starving(processes=TWO)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED
