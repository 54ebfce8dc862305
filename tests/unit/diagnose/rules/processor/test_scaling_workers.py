"""Growth of capacity with the working processes: predicted from fewer, compared with the most."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.processor.scaling_workers import ID, assess
from loadlens.model.facts import Curve
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import (
    UNWATCHED,
    blocked,
    connections,
    estimate,
    facts,
    found,
    generator,
    process,
)


def of(k: int, *, work_s: float = 0.2, think: float = 0.15, **more: Any) -> Curve:
    """So many event loops that compute 0.2 s per request: 5 a second each, knee at 1.75 users each."""
    built = blocked(work_s, think=think, k=k, **more)
    full = replace(built.steps[-1], load=80.0)
    return replace(built, label=f"many={k}", shares_cores=False, steps=(*built.steps, full))


def test_two_processes_do_twice_what_one_does() -> None:
    finding = found(assess(facts(of(1), of(2))))

    assert finding.rule == ID
    assert finding.grade is Grade.STRONG
    assert finding.statement == "2 processes do 2.00 times what 1 does: 10.0 /s, 5.00 /s"
    ratio = finding.evidence[1]
    assert ratio.value == pytest.approx(2.0)
    assert ratio.low is not None
    assert ratio.low < 2.0 < (ratio.high or 0.0)
    assert "Plan 4.00 /s per process" in finding.advice  # 0.8 x 5


def test_the_largest_is_predicted_from_all_that_are_smaller() -> None:
    finding = found(assess(facts(of(4), of(1), of(2))))

    assert finding.statement.startswith("4 processes do 4.00 times what 1 does")
    assert finding.evidence[2].value == pytest.approx(0.0)


def test_twice_the_processes_are_predicted_up_to_the_cores() -> None:
    finding = found(assess(facts(of(1), of(2))))  # 4 cores at 0.2 s: 20 a second at most

    assert isinstance(finding.predictions[0].after, Estimate)
    assert finding.predictions[0].what == "most requests/s with 4 processes"
    assert finding.predictions[0].after.point == pytest.approx(20.0)
    eight = found(assess(facts(of(2), of(4)))).predictions[0].after
    assert isinstance(eight, Estimate)
    assert eight.point == pytest.approx(20.0)  # 8 x 5 would be 40


def test_more_processes_than_cores_do_what_the_cores_do() -> None:
    crowded = replace(of(4), cores_allotted=2.0)
    half = tuple(
        replace(level, throughput_trials=tuple(min(10.0, x) for x in level.throughput_trials))
        for level in crowded.steps
    )
    level = replace(of(1), cores_allotted=2.0)

    finding = found(assess(facts(level, replace(crowded, steps=half))))

    assert "2.00 times" in finding.statement
    assert "The 2 cores are the bound there" in finding.explanation


def test_cores_that_fewer_processes_would_use_better_are_not_predicted_by_the_largest_itself() -> None:
    """Four take 0.25 s of CPU per request where one takes 0.2: 8 a second of two cores, 10 are predicted."""
    dearer = replace(of(4), cores_allotted=2.0, work=estimate(0.25), work_all=estimate(0.25))
    steps = tuple(
        replace(level, throughput_trials=tuple(min(8.0, x) for x in level.throughput_trials))
        for level in dearer.steps
    )

    answer = assess(facts(replace(of(1), cores_allotted=2.0), replace(dearer, steps=steps)))

    assert isinstance(answer, Absent), answer
    assert "10.0 /s predicted for 4 from fewer, 8.00 /s measured" in answer.reason


@pytest.mark.parametrize(("rate", "expected"), [(9.2, Finding), (8.8, Absent), (11.3, Absent)])  # of 10
def test_a_prediction_that_misses_by_more_than_a_tenth_is_silent(rate: float, expected: type) -> None:
    two = of(2)
    steps = tuple(
        replace(level, throughput_trials=tuple(min(rate, x * rate / 10) for x in level.throughput_trials))
        for level in two.steps
    )

    answer = assess(facts(of(1), replace(two, steps=steps)))

    assert isinstance(answer, expected), answer
    if isinstance(answer, Absent):
        assert "10.0 /s predicted for 2 from fewer" in answer.reason


def test_a_load_that_never_filled_the_larger_one_says_so() -> None:
    two = of(2)

    answer = assess(facts(of(1), replace(two, steps=two.steps[:2])))  # 5 users, knee at 3.5

    assert isinstance(answer, NotAssessed)
    assert "many=2 never reached its capacity" in answer.reason


@pytest.mark.parametrize(("resent", "expected"), [(193, NotAssessed), (192, Finding)])
def test_a_lower_bound_of_what_fewer_can_do_foretells_nothing(resent: int, expected: type) -> None:
    """A request takes 20 / 5 - 0.15 s: a twentieth of that is 0.1925 s, of 1 s for each that is dropped."""
    single = of(1)
    watch = connections(1_000, 1_000, connects=1_000, resent=resent)
    dropped = replace(single, steps=(*single.steps[:-1], replace(single.steps[-1], connections=watch)))

    answer = assess(facts(dropped, of(2)))

    assert isinstance(answer, expected), answer
    if isinstance(answer, NotAssessed):
        assert "many=1 shows a lower bound" in answer.reason


def test_one_number_of_processes_is_not_assessed() -> None:
    answer = assess(facts(of(2), replace(of(2), label="other")))

    assert isinstance(answer, NotAssessed)
    assert "has one" in answer.reason
    assert isinstance(assess(facts()), NotAssessed)


def test_without_processes_it_is_not_assessed() -> None:
    bare = [replace(c, steps=tuple(replace(s, processes=()) for s in c.steps)) for c in (of(1), of(2))]

    answer = assess(facts(*bare))

    assert isinstance(answer, NotAssessed)
    assert "watch them" in answer.reason


def test_a_front_and_a_database_that_do_little_are_no_workers() -> None:
    def with_front(built: Curve) -> Curve:
        front = process(0.3, label="front")
        return replace(built, steps=tuple(replace(s, processes=(*s.processes, front)) for s in built.steps))

    assert (
        "2 processes do 2.00 times what 1 does"
        in found(assess(facts(with_front(of(1)), with_front(of(2))))).statement
    )


def test_curves_that_are_asked_something_else_are_not_compared() -> None:
    other = of(2)
    asked = tuple(
        replace(s, classes=tuple(replace(c, request="GET /other") for c in s.classes)) for s in other.steps
    )

    assert isinstance(assess(facts(of(1), replace(other, steps=asked))), NotAssessed)


def test_another_service_that_is_as_busy_is_no_worker() -> None:
    """A second backend that works as much as the busiest process, where something else was changed."""

    def with_backends(built: Curve, count: int) -> Curve:
        more = tuple(replace(process(1.0, label=f"d{i}"), service="d") for i in range(count))
        own = tuple(replace(p, service="s") for p in built.steps[-1].processes)
        return replace(
            built,
            steps=tuple(replace(s, processes=(*own, *more) if s.load > 1 else own) for s in built.steps),
        )

    answer = assess(facts(with_backends(of(1), 0), replace(with_backends(of(1), 1), label="other")))

    assert isinstance(answer, NotAssessed)
    assert "has one" in answer.reason


@pytest.mark.parametrize(("other", "kind"), [("x", Finding), ("y", NotAssessed)])
def test_curves_that_differ_in_two_factors_are_not_compared(other: str, kind: type) -> None:
    first = replace(of(1), levels=(("a", "1"), ("b", "x")))
    two = replace(of(2), levels=(("a", "2"), ("b", other)))

    assert isinstance(assess(facts(first, two)), kind)


def test_a_prediction_is_no_surer_than_the_model() -> None:
    """Ends 2 % off in the trials, 10 % in the model: 10.2 % together."""
    after = found(assess(facts(of(1), of(2)))).predictions[0].after

    assert isinstance(after, Estimate)
    assert after.low == pytest.approx(20 * (1 - 0.102), rel=1e-3)
    assert after.high == pytest.approx(20 * (1 + 0.102), rel=1e-3)


def test_a_late_generator_is_no_measure_of_processes() -> None:
    assert isinstance(assess(facts(of(1), of(2, generator=generator(verdict="limit")))), Absent)


def test_one_trial_a_level_is_probable() -> None:
    assert found(assess(facts(of(1, trials=1), of(2, trials=1)))).grade is Grade.PROBABLE


def test_without_the_cpu_time_of_a_request_cores_bound_nothing() -> None:
    finding = found(assess(facts(*(replace(of(k), work=UNWATCHED, work_all=UNWATCHED) for k in (1, 2)))))

    assert "as long as each has a core" in finding.advice


def test_other_times_give_the_same() -> None:
    assert found(assess(facts(*(of(k, work_s=8.0, think=6.0) for k in (1, 2))))).grade is Grade.STRONG
