"""A curve that falls, and what only looks like one: failures, time, the generator, luck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.capacity_limits.retrograde_throughput import ID, assess
from loadlens.model.facts import Curve, Step
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import (
    curve,
    estimate,
    facts,
    found,
    generator,
    process,
    step,
)

ALONE_S = 0.05


def level(users: float, rates: tuple[float, ...], **more: Any) -> Step:
    """One level with these trials."""
    mean = sum(rates) / len(rates)
    more = {"completed_trials": rates, "processes": (process(0.04, hot=0),), **more}
    return step(users, mean, users / mean, trials=len(rates), throughput_trials=rates, **more)


def falling(*, end: tuple[float, ...] = (60.0, 61.0, 60.5), **last: Any) -> Curve:
    """A lock of 8 ms that is held longer the more wait: 120 a second at 8 users, half of it at 32."""
    return curve(
        level(1, (20.0, 20.1, 19.9)),
        level(4, (79.0, 80.0, 80.5)),
        level(8, (119.0, 120.0, 121.0)),
        level(16, (95.0, 96.0, 95.5)),
        level(32, end, **last),
        work=estimate(0.0004),
        think=0.0,
        shares_cores=True,
    )


def test_a_fall_is_found_with_its_peak_and_its_end() -> None:
    finding = found(assess(facts(falling())))

    assert finding.rule == ID
    assert finding.grade is Grade.STRONG
    # (119 120 121) to (60 61 60.5): geometric means 120.0 and 60.5
    assert finding.statement == "Throughput falls by 50 %: 120 /s at 8 users, 60.5 /s at 32"
    fell = finding.evidence[0]
    assert fell.value == pytest.approx(1 - 60.5 / 120, abs=0.001)
    assert fell.low is not None
    assert fell.high is not None
    assert fell.low < 1 - 60.5 / 120 < fell.high


def test_a_bound_on_what_is_in_flight_brings_the_peak_back() -> None:
    prediction = found(assess(facts(falling()))).predictions[0]

    assert prediction.what == "requests/s at 32 users, at most 8 in flight"
    assert isinstance(prediction.after, Estimate)
    assert prediction.after.point == pytest.approx(120.0)


def test_the_waiting_at_what_is_left_orders_it() -> None:
    assert found(assess(facts(falling()))).impact == pytest.approx(1 - 0.05 / (32 / 60.5))  # R = N / X


@pytest.mark.parametrize(
    "end",
    [
        (119.5, 120.5, 118.0),  # flat
        (115.0, 116.0, 114.5),  # within 5 %
        (112.8, 113.4, 113.0),  # 6 % less: not beyond 5 % for sure, and one level only
        (80.0, 130.0, 90.0),  # luck
    ],
)
def test_a_flat_end_is_no_fall(end: tuple[float, ...]) -> None:
    flat = falling(end=end)
    steps = (*flat.steps[:3], replace(flat.steps[4], load=32.0))

    answer = assess(facts(replace(flat, steps=steps)))

    assert isinstance(answer, Absent), answer


def test_one_level_past_the_peak_must_give_a_tenth_less() -> None:
    eight = falling(end=(110.0, 110.2, 109.8))
    steps = (*eight.steps[:3], eight.steps[4])

    answer = assess(facts(replace(eight, steps=steps)))  # 8 % less beyond doubt

    assert isinstance(answer, Absent)
    assert "1 past the plateau give less, the last 8.3 %" in answer.reason


def test_two_levels_past_the_peak_need_no_tenth() -> None:
    eight = falling(end=(110.0, 110.2, 109.8))
    steps = (*eight.steps[:3], level(16, (112.0, 112.1, 111.9)), eight.steps[4])

    assert isinstance(assess(facts(replace(eight, steps=steps))), Finding)


def test_a_growing_curve_is_silent() -> None:
    grows = falling()

    answer = assess(facts(replace(grows, steps=grows.steps[:3])))

    assert isinstance(answer, Absent)
    assert "on the plateau" in answer.reason


def test_failures_in_the_place_of_successes_are_no_fall() -> None:
    refused = falling(completed_trials=(500.0, 510.0, 505.0))

    answer = assess(facts(refused))

    assert isinstance(answer, Absent)
    assert "what fell are the successes among them" in answer.reason


def test_failures_beside_a_fall_leave_it_probable() -> None:
    some = falling(failed=Estimate("f", "share", 0.05, 0.04, 0.06, 3, 900, "built"))

    assert found(assess(facts(some))).grade is Grade.PROBABLE


def test_a_late_generator_is_no_fall_of_the_service() -> None:
    assert isinstance(assess(facts(falling(generator=generator(verdict="limit")))), Absent)


@pytest.mark.parametrize("rest", [{"host_cpu": estimate(3.7, unit="cores")}, {"processes": (process(3.6),)}])
def test_where_generator_and_service_fill_their_cores_it_is_not_assessed(rest: dict[str, Any]) -> None:
    built = falling()
    much = generator(cpu_cores=0.2)  # of 4
    full = replace(built, steps=(*built.steps[:-1], replace(built.steps[-1], generator=much, **rest)))

    answer = assess(facts(full))

    assert isinstance(answer, NotAssessed)
    assert "fill the 4 cores" in answer.reason
    assert isinstance(assess(facts(replace(full, shares_cores=False))), Finding)
    little = replace(full.steps[-1], generator=generator(cpu_cores=0.1))
    assert isinstance(assess(facts(replace(full, steps=(*full.steps[:-1], little)))), Finding)


@pytest.mark.parametrize(
    "ages",
    [
        {16: (110.0, 58.0)},  # as little as at 32 users
        {1: (20.1, 20.0), 4: (81.0, 80.0), 8: (125.0, 121.0, 117.0), 16: (96.0, 95.0), 32: (61.0, 60.0)},
    ],
    ids=["as much", "all levels"],
)
def test_levels_that_give_less_each_time_are_slower_with_time_not_with_load(
    ages: Mapping[float, tuple[float, ...]],
) -> None:
    steps = (level(s.load, ages.get(s.load, s.throughput_trials)) for s in falling().steps)

    answer = assess(facts(replace(falling(), steps=tuple(steps))))

    assert isinstance(answer, Absent)
    assert "slower with time" in answer.reason


def test_one_level_of_several_that_gives_a_little_less_each_time_does_not_remove_a_fall() -> None:
    """The last of three in falling order is 6 % below the first once in six times, by chance."""
    steps = falling().steps
    once = replace(falling(), steps=(*steps[:2], level(8, (125.0, 121.0, 117.0)), *steps[3:]))

    assert found(assess(facts(once))).grade is Grade.PROBABLE


def test_a_highest_load_that_never_settles_leaves_it_probable() -> None:
    assert found(assess(facts(falling(steady="slowdown")))).grade is Grade.PROBABLE


@pytest.mark.parametrize(("steal", "grade"), [(0.12, None), (0.06, Grade.PROBABLE), (0.02, Grade.STRONG)])
def test_time_that_other_machines_took_is_no_fall_of_the_service(steal: float, grade: Grade | None) -> None:
    """100.5 after 120 is 16 % less: 12 % of it stolen leave 4 %, 6 % are more than a quarter, 2 % are not."""
    answer = assess(facts(falling(end=(100.0, 101.0, 100.5), steal=steal)))

    assert (answer.grade if isinstance(answer, Finding) else None) == grade
    if grade is None:
        assert isinstance(answer, Absent)
        assert "other machines, they took 12 % of the time" in answer.reason


def test_levels_of_one_trial_before_a_repeated_end_are_probable() -> None:
    once = falling()
    steps = (*(level(s.load, s.throughput_trials[1:2]) for s in once.steps[:-1]), once.steps[-1])

    finding = found(assess(facts(replace(once, steps=steps))))

    assert finding.grade is Grade.PROBABLE
    assert any(c.rival == "slower with time" and c.ruled_out is None for c in finding.counter)


def test_one_trial_everywhere_is_only_suspected() -> None:
    once = falling()
    steps = tuple(level(s.load, s.throughput_trials[:1]) for s in once.steps)

    assert found(assess(facts(replace(once, steps=steps)))).grade is Grade.SUSPECTED


def test_an_open_load_and_no_curve_are_not_assessed() -> None:
    assert isinstance(assess(facts(replace(falling(), is_closed=False))), NotAssessed)
    assert isinstance(assess(facts()), NotAssessed)


def test_what_one_trial_lost_to_other_machines_is_a_third_of_it_over_three() -> None:
    """12 % in the worst trial would leave 4 % of the fall; 2 % on average leave it all."""
    answer = found(assess(facts(falling(end=(100.0, 101.0, 100.5), steal=0.12, steal_mean=0.02))))

    assert answer.grade is Grade.STRONG
