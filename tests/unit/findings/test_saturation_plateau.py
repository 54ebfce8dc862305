"""The plateau of a closed loop, and the curves that are not one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.findings.saturation_plateau import assess
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.findings.build import curve, estimate, facts, failing, generator, process, step


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
