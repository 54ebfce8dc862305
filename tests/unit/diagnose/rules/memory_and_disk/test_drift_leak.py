"""Memory that grows with requests, and memory that merely grew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.memory_and_disk.drift_leak import assess
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed, Undecided
from loadlens.model.shapes import HeapGrowth, MemoryBound, MemoryGrowth
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
        "slope": estimate(8_192.0, unit="bytes"),
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


@pytest.mark.parametrize(("grown_mib", "grade"), [(29, Grade.SUSPECTED), (30, Grade.PROBABLE)])
def test_where_it_is_open_what_it_follows_memory_must_have_quadrupled(grown_mib: int, grade: Grade) -> None:
    finding = assess(record(memory(follows="unknown", grown_bytes=grown_mib * 2.0**20)))

    assert isinstance(finding, Finding)
    assert finding.grade is grade
    if grade is Grade.PROBABLE:
        assert finding.statement == "Memory grows by 30.0 MiB in 60 s of load: 8.00 KiB per request"
        assert finding.unknown == ("whether it grows with the requests or with time",)


@pytest.mark.parametrize(
    ("seconds", "grown_mib", "grade"),
    [
        (40.0, 10, Grade.PROBABLE),
        (39.0, 29, Grade.SUSPECTED),  # not doubled for 40 s
        (20.0, 30, Grade.PROBABLE),  # ten times four
        (19.0, 300, Grade.SUSPECTED),
    ],
)
def test_a_short_look_is_a_suspicion_unless_memory_has_quadrupled(
    seconds: float, grown_mib: int, grade: Grade
) -> None:
    finding = assess(record(memory(seconds=seconds, grown_bytes=grown_mib * 2.0**20)))

    assert isinstance(finding, Finding)
    assert finding.grade is grade


@pytest.mark.parametrize(
    "grown",
    [
        memory(begin_bytes=200 * 2.0**20),  # a heap of 200 MiB that has not doubled
        memory(late=0.6),  # it may be levelling off
        memory(late=2.2),  # it may follow the users, of which there were more
        memory(follows="unknown", grown_bytes=25 * 2.0**20),  # all levels answered as many
    ],
    ids=["not doubled", "slower", "faster", "one rate"],
)
def test_what_a_collector_or_a_cache_may_still_end_is_a_suspicion(grown: MemoryGrowth) -> None:
    finding = assess(record(grown))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def by_clock(**more: Any) -> MemoryGrowth:
    """2 MB more in each of 60 s, on top of 10 MiB."""
    slope = estimate(2e6, unit="bytes/s", half=0.02)
    return memory(**{"follows": "clock", "slope": slope, "grown_bytes": 120e6, **more})


def test_memory_that_grows_whatever_the_load_is_found() -> None:
    finding = assess(record(by_clock()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert finding.statement == "Memory grows by 1.91 MiB/s, whatever the load: 114 MiB in 60 s"
    assert "per request" not in " ".join(each.text for each in finding.evidence)


@pytest.mark.parametrize(
    "grown",
    [
        by_clock(late=0.2),  # a cache of entries that live for a while
        by_clock(slope=estimate(10_000.0, unit="bytes/s"), grown_bytes=600_000.0),
        by_clock(grown_bytes=5e5 * 60, begin_bytes=500e6),  # 6 % of what it had
        by_clock(fallen_bytes=80e6),  # a collector
    ],
)
def test_time_alone_may_also_fill_a_heap(grown: MemoryGrowth) -> None:
    assert not isinstance(assess(record(grown)), Finding)


@pytest.mark.parametrize(
    "grown",
    [
        memory(late=0.2),  # a cache that has filled
        memory(fallen_bytes=100 * 2.0**20),  # a collector gives it back
        memory(slope=estimate(40.0, unit="bytes")),  # pages
        memory(slope=estimate(70.0, unit="bytes", half=0.1)),  # 63 at its lower end
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
    steady = memory(label="b", grown_bytes=0.0, slope=estimate(1e-9, unit="bytes"), late=None)

    finding = assess(record(memory(), steady))

    assert isinstance(finding, Finding)
    assert finding.scope.startswith("a")
    assert isinstance(assess(record(steady)), Absent)


def test_without_readings_nothing_is_assessed() -> None:
    few = memory(readings=12, slope=Undecided("memory.per-request", "bytes", "12 readings, needs 30"))

    answer = assess(record(few))

    assert isinstance(answer, NotAssessed)
    assert answer.reason == "12 readings of memory under load, needs 30"
    assert isinstance(assess(record()), NotAssessed)


def test_the_forecast_is_what_is_left_over_the_growth_at_the_highest_rate_that_is_borne() -> None:
    # 8 KiB with each of 256 requests/s, a quarter more or less: 2 MiB/s, for which 2,400 MiB last 1,200 s
    half_fails = replace(step(32, 900, 0.05), failed=estimate(0.5, unit="share"))
    levels = (step(1, 64, 0.05), step(8, 256, 0.05), half_fails)
    each = estimate(8_192.0, unit="bytes", half=0.25)
    grown = memory(slope=each, bound=MemoryBound("control group", 2.0**32, 2_400 * 2.0**20))

    finding = assess(Facts(4, (replace(curve(*levels), memory=(grown,)),)))

    assert isinstance(finding, Finding)
    assert finding.explanation.endswith(
        "At 256 /s that is 2.00 MiB/s (1.50–2.50): the control group's limit of 4.00 GiB, of which "
        "2.34 GiB are left, is reached in about 20 min (16 min–27 min)."
    )


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"bound": None}, "no limit of it is known"),
        (
            {"slope": replace(estimate(8_192.0, unit="bytes"), low=None)},
            "the interval of its growth includes zero",
        ),
    ],
    ids=["no limit", "zero"],
)
def test_when_memory_ends_is_undecided_without_a_limit_or_a_lower_end(
    changed: dict[str, Any], why: str
) -> None:
    bound = MemoryBound("machine", 8 * 2.0**30, 2.0**30)

    finding = assess(record(memory(**{"bound": bound, **changed})))

    assert isinstance(finding, Finding)
    assert finding.explanation.endswith(f"When memory ends is undecided: {why}.")


def test_a_limit_that_is_reached_has_no_forecast() -> None:
    finding = assess(record(memory(bound=MemoryBound("heap", 2.0**28, -4096.0))))

    assert isinstance(finding, Finding)
    assert finding.explanation.endswith("the heap's limit of 256 MiB is reached.")


def test_a_heap_that_grows_towards_its_size_and_is_collected_is_no_leak() -> None:
    grown = 20_000 * 8_192.0
    saw_tooth = memory(heap=HeapGrowth(floor_bytes=0.05 * grown, peak_bytes=0.6 * grown))
    kept = memory(heap=HeapGrowth(floor_bytes=0.6 * grown, peak_bytes=0.65 * grown))
    elsewhere = memory(heap=HeapGrowth(floor_bytes=0.0, peak_bytes=0.01 * grown))

    answer = assess(record(saw_tooth))

    assert isinstance(answer, Absent)
    assert "heap" in answer.reason
    assert isinstance(assess(record(kept)), Finding)
    assert isinstance(assess(record(elsewhere)), Finding)
