"""Bandwidth as the limit, and what makes answers slow without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.network.network_bound import assess
from loadlens.model.facts import Curve, ReceivedWatch
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, estimate, facts, generator, process, step

ROOM: dict[str, Any] = {"host_cpu": estimate(1.0, unit="cores")}


def received(per_s: float, waited: float, coming: float) -> ReceivedWatch:
    return ReceivedWatch(estimate(per_s, unit="bytes/s"), estimate(waited), estimate(coming))


def shared(
    each: float = 200_000.0,
    *,
    rates: tuple[float, ...] = (50.0, 100.0, 100.0),
    share: float = 0.8,
    light_s: float = 0.012,
    cores: float = 0.3,
    **last: Any,
) -> Curve:
    """1, 8 and 16 users; 100 answers a second of 200 kB are 20 MB/s. An answer alone takes 12 ms to come."""
    steps = []
    for users, rate in zip((1, 8, 16), rates, strict=True):
        response = users / rate
        coming = light_s if users == 1 else share * response
        steps.append(
            step(
                users,
                rate,
                response,
                received=received(each * rate, response - coming, coming),
                processes=(process(cores),),
                **ROOM,
            )
        )
    steps[-1] = replace(steps[-1], **last)
    return curve(*steps, think=0.0)


def test_answers_that_share_a_way_are_found() -> None:
    finding = assess(facts(shared()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE  # one size of answers alone
    assert "80 % of the time" in finding.statement
    assert "200 /s" in finding.advice  # 20 MB/s by 100 kB


def test_a_level_beyond_the_knee_is_as_full_though_hardly_below_the_plateau() -> None:
    """The knee is at 100/s x 20 ms = 2 users; 91 and 100 are 4.7 % from their mean."""
    assessed = assess(facts(shared(rates=(50.0, 91.0, 100.0))))

    assert isinstance(assessed, Finding)
    assert assessed.grade is Grade.PROBABLE


def test_a_level_before_the_knee_tells_nothing_of_the_plateau() -> None:
    assessed = assess(facts(shared(rates=(9.0, 72.0, 76.0))))  # alone 111 ms: a knee of 8.4 users

    assert isinstance(assessed, Finding)
    assert assessed.grade is Grade.SUSPECTED


@pytest.mark.parametrize(("share", "kind"), [(0.35, Absent), (0.45, Finding)])
def test_a_lock_makes_answers_wait_before_their_first_byte(share: float, kind: type) -> None:
    assert isinstance(assess(facts(shared(share=share))), kind)


def test_a_service_that_always_takes_as_long_to_write_is_no_shared_way() -> None:
    answer = assess(facts(shared(light_s=0.1)))  # 0.128 s at 16 users

    assert isinstance(answer, Absent)
    assert "lightest load" in answer.reason


@pytest.mark.parametrize(("each", "kind"), [(9_000.0, Absent), (11_000.0, Finding)])
def test_small_answers_fill_no_way(each: float, kind: type) -> None:
    assert isinstance(assess(facts(shared(each))), kind)


def test_processors_that_are_busy_are_the_limit_themselves() -> None:
    assert isinstance(assess(facts(shared(cores=3.2))), Absent)  # of 4
    assert isinstance(assess(facts(shared(host_cpu=estimate(3.8, unit="cores")))), Absent)


def test_throughput_that_still_grows_is_not_limited() -> None:
    assert isinstance(assess(facts(shared(rates=(50.0, 200.0, 390.0)))), Absent)


def test_bytes_that_differ_between_levels_are_no_bound() -> None:
    built = shared()
    other = replace(built.steps[-1], received=received(14e6, 0.032, 0.128))

    assert isinstance(assess(facts(replace(built, steps=(*built.steps[:-1], other)))), Absent)


def test_a_late_generator_reads_late() -> None:
    assert isinstance(assess(facts(shared(generator=generator(verdict="limit")))), Absent)


def test_without_a_sight_of_the_processes_it_is_suspected() -> None:
    built = shared()
    blind = tuple(replace(s, processes=()) for s in built.steps)

    finding = assess(facts(replace(built, steps=blind)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_what_was_not_recorded_is_not_assessed() -> None:
    assert isinstance(assess(facts(curve(step(1, 5.0, 0.2)))), NotAssessed)


def test_ten_times_as_fast_it_is_the_same() -> None:
    finding = assess(facts(shared(20_000.0, rates=(500.0, 1000.0, 1000.0), light_s=0.0012)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


@pytest.mark.parametrize(
    ("cores", "hot", "kind"), [(0.84, 1, Finding), (0.86, 1, Absent), (0.86, 3, Finding)]
)
def test_one_thread_that_writes_all_answers_and_is_full_is_the_limit_itself(
    cores: float, hot: int, kind: type
) -> None:
    answer = assess(facts(shared(processes=(process(cores, hot=hot),))))  # a fifth of 4 cores

    assert isinstance(answer, kind)
