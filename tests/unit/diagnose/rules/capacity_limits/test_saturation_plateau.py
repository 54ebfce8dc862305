"""The plateau of a closed loop, and the curves that are not one."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from loadlens.diagnose.rules.capacity_limits.saturation_plateau import assess
from loadlens.model.facts import Crowd
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed, Undecided
from tests.unit.diagnose.build import (
    curve,
    estimate,
    facts,
    failing,
    generator,
    process,
    step,
)


def plateau(*, think: float = 0.1, last: object = None, **more: object):  # type: ignore[no-untyped-def]
    """D = 0.1 s at one server: X = min(N / (D + Z), 1 / D), R = N / X - Z."""
    more = {"processes": (process(0.3),), **more}
    steps = [step(n, x := min(n / (0.1 + think), 10.0), n / x - think, **more) for n in (1, 4, 8, 16)]  # type: ignore[arg-type]
    return curve(*steps, think=think, work=estimate(0.1))


def test_a_plateau_is_found_with_its_capacity_and_knee() -> None:
    finding = assess(facts(plateau()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "Throughput stops at 10.0 /s from 2 users on; further users only wait"


def test_the_line_where_most_threads_wait_is_named() -> None:
    built = plateau()
    top = replace(built.steps[-1], crowd=Crowd(52.3, 64.1, "clicks.py:46"))
    finding = assess(facts(replace(built, steps=(*built.steps[:-1], top))))

    assert isinstance(finding, Finding)
    assert finding.statement == "Throughput stops at 10.0 /s: 52 of 64 threads wait at clicks.py:46"


def test_a_plateau_of_unknown_height_is_told_without_a_number() -> None:
    unknown = Undecided("throughput", "1/s", "needs at least 3 trials, has 2")
    built = plateau(trials=1)
    alone, *reached = built.steps[:3]
    steps = (alone, *(replace(step, throughput=unknown) for step in reached))
    finding = assess(facts(replace(built, steps=steps)))

    assert isinstance(finding, Finding)
    assert finding.statement == "Throughput stops growing from 2 users on; further users only wait"
    assert finding.advice == "Keep at most 2 in flight at once and refuse the rest early."


def test_waiting_at_the_highest_load_orders_the_finding() -> None:
    finding = assess(facts(plateau()))

    assert isinstance(finding, Finding)
    assert finding.impact == pytest.approx(1 - 0.1 / 1.5)  # R = 16 / 10 - 0.1


def test_an_underdriven_curve_is_silent_and_says_how_far_to_go() -> None:
    steps = [step(n, n / 1.1, 0.1) for n in (1, 2, 4)]

    answer = assess(facts(curve(*steps, think=1.0, work=estimate(0.1))))

    assert isinstance(answer, Absent)
    assert "underdriven" in answer.reason
    assert "go on to 8 users" in answer.reason


def test_a_generator_at_its_limit_is_no_plateau_of_the_service() -> None:
    answer = assess(facts(plateau(generator=generator(verdict="limit"))))

    assert isinstance(answer, Absent)


def test_response_times_that_do_not_grow_with_users_contradict_it() -> None:
    steps = [step(n, 10.0, 0.1) for n in (4, 8, 16)]

    answer = assess(facts(curve(*steps, work=estimate(0.1))))

    assert isinstance(answer, Absent)
    assert "1 / throughput" in answer.reason


def test_one_level_of_load_is_not_assessed() -> None:
    assert isinstance(assess(facts(curve(step(1, 5.0, 0.2)))), NotAssessed)


def test_an_open_load_is_not_assessed() -> None:
    assert isinstance(assess(facts(replace(plateau(), is_closed=False))), NotAssessed)


def test_many_failures_leave_it_suspected() -> None:
    bent = replace(
        plateau(),
        steps=(*plateau().steps[:-1], replace(failing(0.3), load=16, throughput_trials=(10.0,) * 3)),
    )

    finding = assess(facts(bent))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_without_a_level_of_one_user_the_cpu_time_bounds_the_knee() -> None:
    bent = replace(plateau(), steps=plateau().steps[1:])

    finding = assess(facts(bent))

    assert isinstance(finding, Finding)
    assert "at least" in finding.evidence[1].text
    assert finding.unknown


def test_the_knee_is_claimed_with_its_interval() -> None:
    """X = 10 (2 %), R1 = 0.1 s (2 %), Z = 0.1 s: errors of 2 % and 1 % in squares, and 2.5 % of a plateau."""
    finding = assess(facts(plateau()))

    assert isinstance(finding, Finding)
    knee = next(e for e in finding.evidence if e.signal == "load.knee")
    assert knee.value == pytest.approx(2.0)
    assert knee.low == pytest.approx(2.0 * (1 - math.hypot(0.02, 0.01)) * 0.975)
    assert knee.high == pytest.approx(2.0 * (1 + math.hypot(0.02, 0.01)) * 1.025)


def test_a_knee_of_one_user_has_no_end_below_one() -> None:
    finding = assess(facts(plateau(think=0.0)))

    assert isinstance(finding, Finding)
    knee = next(e for e in finding.evidence if e.signal == "load.knee")
    assert (knee.value, knee.low) == (1.0, 1.0)


def test_throughput_that_still_grows_a_little_is_no_contradiction() -> None:
    """9 % per doubling, the most that counts as flat; R = N / X at both levels, as Little's law says."""
    rates = {1: 10.0, 4: 19.0, 8: 19.5, 16: 19.5 * 1.09}
    steps = [step(n, x, n / x, processes=(process(0.3),)) for n, x in rates.items()]

    finding = assess(facts(curve(*steps, think=0.0, work=estimate(0.1))))

    assert isinstance(finding, Finding)
    assert "(+0.0 %" in finding.evidence[2].text


def test_a_generator_that_is_late_for_want_of_cores_leaves_the_plateau_of_a_full_service_probable() -> None:
    late = generator(verdict="limit")

    full = assess(facts(plateau(generator=late, processes=(process(3.5),))))  # of 4 cores

    assert isinstance(full, Finding)
    assert full.grade is Grade.PROBABLE
    assert isinstance(assess(facts(plateau(generator=late, processes=(process(3.3),)))), Absent)


def test_what_a_request_does_elsewhere_is_no_waiting() -> None:
    """0.1 s alone, of which 1 ms computes: of 16 / 10 - 0.1 = 1.5 s at 16 users 1.4 s are waiting."""
    finding = assess(facts(replace(plateau(), work_all=estimate(0.001))))

    assert isinstance(finding, Finding)
    assert finding.impact == pytest.approx(1.4 / 1.5)


def test_without_one_user_alone_the_knee_is_a_lower_bound_and_the_finding_probable() -> None:
    built = plateau()

    finding = assess(facts(replace(built, steps=built.steps[1:])))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert any("at most 8.0 times beyond the knee of at least 2 users" in e.text for e in finding.evidence)
