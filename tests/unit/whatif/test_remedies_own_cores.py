"""Effects of cores that a service shares no more: cores over the CPU time of a request, by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from loadlens.model.facts import Curve
from loadlens.model.finding import Estimate, Evidence, NotMeasured, Prediction
from loadlens.model.quality import OwnCores, Quality
from loadlens.present import numbers
from tests.unit.diagnose import build
from tests.unit.whatif.ladders import after, assert_holds, caused_by, dropped, predictions_of, why_not

WORK = 0.002  # seconds of CPU
WOKEN = 20e-6  # that a request from another core costs more


def crowded(
    used: float,
    *,
    waiting: float = 6.0,
    work: float = WORK,
    allotted: float = 1.0,
    shares: bool = True,
    users: Sequence[int] = (1, 2, 4, 8, 16),
    **top: Any,
) -> Curve:
    """A service that computes and gets so many cores at its limit: used / 2 ms requests a second."""
    steps = []
    for n in users:
        rate = min(used / WORK, n / (2 * WORK))
        process = build.process(rate * WORK, waiting=waiting, hot=16)
        steps.append(build.step(n, rate, n / rate, processes=(process,), other_cores=0.0))
    steps[-1] = replace(steps[-1], **top)
    return build.curve(
        *steps,
        think=0.0,
        label="ladder",
        cores_allotted=allotted,
        shares_cores=shares,
        work=build.estimate(work),
    )


def alone(curve: Curve, rule: str = "host.interference", *, cores: int = 4) -> tuple[Prediction, ...]:
    return predictions_of(curve, caused_by(rule), cores=cores)


def test_a_core_of_its_own_bears_one_over_the_work() -> None:
    effects = alone(crowded(0.6))

    capacity = after(effects, "1 core without the other programs", "capacity")
    assert_holds(capacity, 1 / WORK, within=1e-6)
    assert capacity.unit == "1/s"
    assert capacity.method.startswith("arithmetic: ")
    assert capacity.low == pytest.approx(500 / 1.02, rel=1e-3)  # the CPU time is known within 2 %
    assert after(effects, "1 core", "mean at 16 users").point == pytest.approx(16 * WORK)


def test_of_the_machines_cores_those_of_the_others_come_back_and_the_generators_stay() -> None:
    """4 cores, of which others use 1.6; the generator takes 0.1 ms of CPU a request and 0.2 cores anyway."""
    curve = crowded(1.8, allotted=4.0, users=(1, 2, 4, 8, 16, 32), other_cores=1.6)
    steps = tuple(
        replace(step, generator=build.generator(cpu_cores=0.2 + 0.0001 * step.throughput_trials[0]))
        for step in curve.steps
    )

    effects = after(alone(replace(curve, steps=steps)), "3.8 cores without", "capacity")

    assert effects.point == pytest.approx(3.8 / (WORK + 0.0001), rel=1e-6)


def test_without_the_generator_its_cores_are_the_services() -> None:
    curve = crowded(1.8, allotted=4.0, users=(1, 2, 4, 8, 16, 32), other_cores=0.4)
    steps = tuple(
        replace(step, generator=build.generator(cpu_cores=0.2 + 0.0001 * step.throughput_trials[0]))
        for step in curve.steps
    )

    effects = alone(replace(curve, steps=steps), "colocation.contention")

    assert after(effects, "3.6 cores without the generator", "capacity").point == pytest.approx(
        3.6 / (WORK + WOKEN)
    )


def test_a_generator_that_is_held_to_the_services_core_keeps_what_it_takes() -> None:
    both = Quality(own_cores=OwnCores(1, 0.99, 0.2))

    effects = alone(crowded(0.5, quality=both))

    assert after(effects, "0.8 cores without", "capacity").point == pytest.approx(0.8 / WORK)


def test_a_short_request_may_do_less_without_the_generator_beside_it() -> None:
    """0.1 ms, and 20 us more (5 to 35) once the generator wakes the service from another core."""
    curve = crowded(0.9, work=1e-4)
    scaled = tuple(
        replace(
            build.step(step.load, 20 * step.throughput_trials[0], 0.05 * step.response.mean.point),
            processes=step.processes,
            other_cores=0.0,
        )
        for step in curve.steps
        if isinstance(step.response.mean, Estimate)
    )

    effects = after(
        alone(replace(curve, steps=scaled), "colocation.contention"), "without the gen", "capacity"
    )

    off = math.hypot(15e-6, 1e-4 * 0.02)
    assert effects.point == pytest.approx(1 / 120e-6)
    assert effects.point < 9_000  # of 0.9 cores now
    assert effects.low == pytest.approx(1 / (120e-6 + off), rel=1e-3)


def test_what_is_left_of_the_cpu_used_widens_the_interval() -> None:
    """1.9 ms account for 0.57 of the 0.6 cores: 5 % off, where the error is 2 %."""
    effects = after(alone(crowded(0.6, work=0.0019)), "", "capacity")

    off = math.hypot(1.96 * math.log(2.0 / 1.9), math.log(1.02 / 0.98) / 2)
    assert effects.point == pytest.approx(1 / 0.0019)
    assert effects.low == pytest.approx(math.exp(-off) / 0.0019, rel=1e-3)


def test_it_never_does_less_than_it_did() -> None:
    effects = alone(crowded(0.98, work=0.0021))

    capacity = after(effects, "", "capacity")
    (now, *_) = effects
    assert isinstance(now.before, Estimate)
    assert capacity.point == now.before.point == pytest.approx(490.0)


@pytest.mark.parametrize(("waiting", "is_predicted"), [(0.26, True), (0.24, False)])
def test_cores_that_it_would_not_use_are_not_what_it_lacks(waiting: float, is_predicted: bool) -> None:
    """0.85 of the one core must be used or waited for, and 0.6 are used."""
    effects = alone(crowded(0.6, waiting=waiting))

    assert isinstance(effects[0].after, Estimate) is is_predicted
    if not is_predicted:
        assert "uses and waits for 0.84 cores: 1.00 are not what it lacks" in why_not(effects)


def test_cpu_time_that_does_not_account_for_what_is_used_gives_no_prediction() -> None:
    assert "3 ms of CPU a request are 0.90 cores at 300/s, 0.60 were used" in why_not(
        alone(crowded(0.6, work=0.003))
    )


def test_waiting_or_work_that_was_not_read_gives_no_prediction() -> None:
    unread = crowded(0.6)
    process = replace(unread.steps[-1].processes[0], waiting=NotMeasured("waiting", "not read"))
    blind = replace(unread, steps=(*unread.steps[:-1], replace(unread.steps[-1], processes=(process,))))

    assert "was not read" in why_not(alone(blind))
    assert "CPU time of a request is not known" in why_not(alone(replace(unread, work_all=build.UNWATCHED)))


def test_what_the_host_took_is_not_given_back() -> None:
    stolen = replace(
        caused_by("host.interference"),
        evidence=(Evidence("host.steal", "", "", None, None, None, None, True),),
    )

    assert "other machines took" in why_not(predictions_of(crowded(0.6), stolen))


def test_the_capacity_of_cores_needs_no_more_than_a_lower_bound_of_what_is_done() -> None:
    """The CPU time of a request is enough."""
    (now_predicted, *_) = effects = alone(dropped(crowded(0.6)))

    assert isinstance(now_predicted.before, Estimate)
    assert numbers.is_lower_bound(now_predicted.before)
    assert after(effects, "1 core", "capacity").point == pytest.approx(1 / WORK)
