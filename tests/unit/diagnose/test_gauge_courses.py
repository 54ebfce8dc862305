"""Gauges by their behaviour: each is a formula over users N, throughput X and times R of a closed loop.

The service takes 10 ms and then holds one of S places for 20 ms: X = min(N / 0.03, S / 0.02), R = N / X. It
has S min(1, X / X of the plateau) places taken and X (R - 0.03) requests waiting. Metrics are called a, b, c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from loadlens import diagnose
from loadlens.diagnose.observe import gauge_courses, waits
from loadlens.model.facts import Curve, Gauge
from loadlens.model.finding import Grade
from tests.unit.diagnose.build import facts
from tests.unit.diagnose.waiting import gauge, waiting

SIZE, HOLD_S, ALONE_S = 4, 0.02, 0.03
MOST_PER_S = SIZE / HOLD_S
Course = Callable[[float, float], float]  # users, throughput -> mean of the readings


def taken(users: float, rate: float) -> float:
    return rate * HOLD_S


def queued(users: float, rate: float) -> float:
    return users - rate * ALONE_S


def exporting(built: Curve | None = None, /, **courses: Course) -> Curve:
    """The service with gauges; a reading is a whole number, so that the highest is rounded up."""
    built = waiting(HOLD_S, size=SIZE) if built is None else built
    steps = []
    for step in built.steps:
        rate = step.throughput_trials[0]
        steps.append(replace(step, numbers=tuple(shows(n, c(step.load, rate)) for n, c in courses.items())))
    return replace(built, steps=tuple(steps))


def shows(name: str, mean: float, before: float = 0.0) -> Gauge:
    return replace(gauge(name, mean), highest=float(-(-round(mean, 6) // 1)), before=before)


def full(built: Curve) -> waits.Full:
    plateau = waits.full(built)
    assert isinstance(plateau, waits.Full)
    return plateau


def places_of(built: Curve) -> tuple[str, int] | None:
    places = gauge_courses.full_places(full(built))
    return None if places is None else (places.gauge.name, places.size)


def line_of(built: Curve) -> str | None:
    line = gauge_courses.line(full(built))
    return None if line is None else line.gauge.name


def test_a_gauge_that_stays_at_a_number_while_waiting_grows_is_the_full_resource() -> None:
    assert places_of(exporting(a=taken)) == ("a", SIZE)


def test_a_gauge_that_equals_the_waiting_requests_is_the_queue() -> None:
    assert line_of(exporting(a=taken, b=queued)) == "b"


@pytest.mark.parametrize(
    "course",
    [
        pytest.param(lambda users, rate: SIZE, id="a configured bound, 0 before the load by chance"),
        pytest.param(lambda users, rate: users, id="requests in the service"),
        pytest.param(lambda users, rate: users + 12, id="goroutines, connections"),
        pytest.param(lambda users, rate: rate, id="a rate"),
        pytest.param(lambda users, rate: min(users, 16.0), id="threads that wait for the places"),
        pytest.param(lambda users, rate: 100 - 2 * users, id="idle threads of many"),
        pytest.param(lambda users, rate: float(users >= 4), id="a flag: under load"),
        pytest.param(lambda users, rate: 2.0 if users > 2 else 0.0, id="machines that were added"),
        pytest.param(lambda users, rate: 3e7 + 1e5 * users, id="bytes"),
        pytest.param(lambda users, rate: 0.0, id="nothing"),
    ],
)
def test_other_gauges_name_neither(course: Course) -> None:
    built = exporting(c=course)
    if course(1, 0) == course(32, 0) == SIZE:  # what is there before the load as well is a setting
        built = replace(
            built,
            steps=tuple(
                replace(s, numbers=tuple(replace(g, before=SIZE) for g in s.numbers)) for s in built.steps
            ),
        )

    assert places_of(built) is None
    assert line_of(built) is None


def test_places_that_as_many_users_fill_may_be_users() -> None:
    """20 places, 30 at work at once: with 32 users, 32 are what a gauge of users shows as well."""
    built = waiting(HOLD_S, size=20, users=(1, 2, 4, 8, 16, 32, 64))

    assert places_of(exporting(built, a=lambda users, rate: min(users, 32.0))) is None


def test_of_equal_gauges_the_one_that_is_called_like_the_queue_is_named() -> None:
    built = exporting(sockets_open=taken, desk_clerks=taken, desk_line=queued)
    line = gauge_courses.line(full(built))

    places = gauge_courses.full_places(full(built), line)

    assert places is not None
    assert places.gauge.name == "desk_clerks"


def test_the_finding_names_the_gauge_as_it_is_exported() -> None:
    verdict = diagnose.assess(facts(exporting(a=taken)))

    line = next(f for f in verdict.findings if f.rule == "downstream.serialised")
    assert line.grade is Grade.PROBABLE
    assert line.statement == "All 4 places of a are taken: 200 /s"
    assert any("a is 4 at 16 users and at 32 users, 0.67 at 1 user" in e.text for e in line.evidence)


@pytest.mark.parametrize(("size", "rule"), [(4, "db.pool"), (1, "db.lock")])
def test_places_with_their_queue_are_a_pool_or_a_lock(size: int, rule: str) -> None:
    verdict = diagnose.assess(facts(exporting(waiting(HOLD_S, size=size), a=taken, b=queued)))

    assert next(f.rule for f in verdict.findings if f.explained_by is None) == rule
    assert "downstream.serialised" not in [f.rule for f in verdict.findings]


def test_places_for_which_cheap_requests_wait_as_well_are_no_pool_behind_the_service() -> None:
    built = waiting(HOLD_S, size=SIZE, coupling=1.0)

    verdict = diagnose.assess(facts(exporting(built, a=taken, b=queued)))

    assert not {"db.pool", "db.lock", "downstream.serialised"} & {f.rule for f in verdict.findings}


def test_the_same_under_other_names() -> None:
    def rules(**courses: Course) -> list[tuple[str, Grade]]:
        return [(f.rule, f.grade) for f in diagnose.assess(facts(exporting(**courses))).findings]

    assert rules(a=taken, b=queued) == rules(x_total_seats=taken, ü=queued)


def test_without_gauges_nothing_changes() -> None:
    findings = diagnose.assess(facts(waiting(HOLD_S, size=SIZE))).findings

    assert findings[0].statement.startswith("Requests wait in a line, in the service or behind it")
