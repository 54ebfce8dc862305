"""Memory that grows with requests, and memory that merely grew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.memory_and_disk.drift_leak import assess
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed, Undecided
from loadlens.model.shapes import MemoryGrowth
from tests.unit.diagnose.build import curve, estimate, step


def memory(**more: Any) -> MemoryGrowth:
    """8 KiB more with each of 20,000 requests, on top of 10 MiB."""
    built: dict[str, Any] = {
        "label": "a",
        "trials": 10,
        "seconds": 60.0,
        "readings": 100,
        "requests": 20_000,
        "begin_bytes": 10 * 2.0**20,
        "grown_bytes": 20_000 * 8_192.0,
        "fallen_bytes": 0.0,
        "per_request": estimate(8_192.0, unit="bytes"),
        "per_minute": 0.9,
        "late": 1.0,
        "follows": "requests",
    }
    return MemoryGrowth(**{**built, **more})


def record(*assessed: MemoryGrowth) -> Facts:
    return Facts(4, (replace(curve(step(1, 20, 0.05)), memory=assessed),))


def test_memory_that_grows_with_each_request_is_found() -> None:
    finding = assess(record(memory()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE  # a cache without a bound in sight looks the same
    assert finding.statement == "Memory grows by 8.00 KiB per request: 156 MiB over 20,000 requests"
    value = next(e for e in finding.evidence if e.signal == "memory.per-request")
    assert (value.value, value.low) == (8_192.0, 8_192.0 * 0.98)
    assert finding.impact == pytest.approx(156.25 / 166.25)


def test_a_look_of_half_a_minute_is_a_suspicion() -> None:
    finding = assess(record(memory(seconds=30.0)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


@pytest.mark.parametrize(
    "grown",
    [
        memory(begin_bytes=200 * 2.0**20),  # a heap of 200 MiB that has not doubled
        memory(late=0.6),  # it may be levelling off
        memory(follows="unknown"),  # all levels answered as many
    ],
    ids=["not doubled", "slower", "one rate"],
)
def test_what_a_collector_or_a_cache_may_still_end_is_a_suspicion(grown: MemoryGrowth) -> None:
    finding = assess(record(grown))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_memory_that_grows_with_the_clock_is_no_leak_of_requests() -> None:
    answer = assess(record(memory(follows="clock")))

    assert isinstance(answer, Absent)
    assert answer.reason.endswith("in proportion to time and not to these")


@pytest.mark.parametrize(
    "grown",
    [
        memory(late=0.2),  # a cache that has filled
        memory(fallen_bytes=100 * 2.0**20),  # a collector gives it back
        memory(per_request=estimate(40.0, unit="bytes")),  # pages
        memory(per_request=estimate(70.0, unit="bytes", half=0.1)),  # 63 at its lower end
        memory(grown_bytes=0.5 * 2.0**20),  # hardly anything in all
        memory(begin_bytes=4 * 2.0**30),  # 4 % of what it had
        memory(per_minute=0.005),
    ],
    ids=["levels off", "given back", "few bytes", "perhaps few", "little", "little of much", "slow"],
)
def test_what_merely_grew_is_no_leak(grown: MemoryGrowth) -> None:
    assert isinstance(assess(record(grown)), Absent)


def test_a_process_without_memory_at_first_has_no_share_that_it_grew_by() -> None:
    assert isinstance(assess(record(memory(begin_bytes=0.0))), Absent)


def test_the_service_that_grows_is_found_next_to_one_that_does_not() -> None:
    steady = memory(label="b", grown_bytes=0.0, per_request=estimate(1e-9, unit="bytes"), late=None)

    finding = assess(record(memory(), steady))

    assert isinstance(finding, Finding)
    assert finding.scope.startswith("a")
    assert isinstance(assess(record(steady)), Absent)


def test_without_readings_nothing_is_assessed() -> None:
    few = memory(readings=12, per_request=Undecided("memory.per-request", "bytes", "12 readings, needs 30"))

    answer = assess(record(few))

    assert isinstance(answer, NotAssessed)
    assert answer.reason == "12 readings of memory under load, needs 30"
    assert isinstance(assess(record()), NotAssessed)
