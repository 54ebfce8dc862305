"""Garbage collection that ends the throughput, and collections that do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.memory_and_disk.gc_stops import assess
from loadlens.model.facts import CollectorWatch, Curve, QuotaWatch, Step
from loadlens.model.finding import Absent, Figure, Finding, Grade, NotAssessed, NotMeasured
from tests.unit.diagnose.build import curve, estimate, facts, found, generator, process, step

MIB = float(1 << 20)
NOT_READ = NotMeasured("collector", "not read")
USERS = (1, 16, 64, 128)
RATES = (8.0, 108.0, 290.0, 270.0)
SHARES = (0.03, 0.25, 0.80, 0.85)


def collector(share: float | None, *, full: float | None = 1.0, filled: float | None = 1.0) -> CollectorWatch:
    """A collector that stops for a share of the time, of which a part goes into full collections."""

    def of_time(value: float | None) -> Figure:
        return NOT_READ if value is None else estimate(max(value, 1e-9), unit="share", half=0.1)

    whole = None if share is None or full is None else share * full
    return CollectorWatch(
        "app",
        of_time(share),
        of_time(whole),
        NOT_READ if share is None else estimate(10.0, unit="1/s"),
        None if filled is None else filled * 66 * MIB,
        66 * MIB,
    )


def service(
    shares: tuple[float | None, ...] = SHARES, *, cores: float = 0.9, cpu: float = 4.0, **how: Any
) -> Curve:
    """A service whose heap is full, unless its collections are of another kind; 4 cores allotted."""
    steps = [
        step(
            users,
            rate,
            max(0.125, users / rate),
            processes=(process(cores * rate / max(RATES)),),
            collectors=() if share is None else (collector(share, **how),),
        )
        for users, rate, share in zip(USERS, RATES, shares, strict=True)
    ]
    return curve(*steps, think=0.0, cores_allotted=cpu)


def changed(built: Curve, **last: Any) -> Curve:
    """The same with other values at each level of the plateau."""
    steps: list[Step] = [replace(level, **last) if level.load >= 64 else level for level in built.steps]
    return replace(built, steps=tuple(steps))


def test_a_heap_that_stays_full_holds_the_throughput_by_its_collections() -> None:
    finding = found(assess(facts(service())))

    assert finding.grade is Grade.STRONG
    assert finding.statement == "Garbage collection stops the service 80 % of the time at 290 /s"
    assert "10.0 /s of 80.0 ms each" in finding.explanation
    assert finding.impact == pytest.approx(0.80)
    assert "66.0 MiB of 66.0 MiB stay in use" in finding.advice
    assert "at most 1,450 /s" in finding.advice  # 290 / (1 - 0.8)


def test_it_is_the_answer_and_explains_the_plateau() -> None:
    verdict = diagnose.assess(facts(service()))

    root = diagnose.root_of(verdict.findings)
    assert root is not None
    assert root.rule == "gc.stops"
    plateau = next(each for each in verdict.findings if each.rule == "saturation.plateau")
    assert plateau.explained_by == "gc.stops"


def test_ordinary_young_collections_of_a_busy_service_are_no_finding() -> None:
    little = assess(facts(service((0.002, 0.02, 0.06, 0.07), full=0.0, filled=0.3)))
    much = assess(facts(service((0.01, 0.05, 0.15, 0.16), full=0.05, filled=0.3)))

    assert isinstance(little, Absent)
    assert isinstance(much, Absent)
    assert "30 % of its heap stay in use" in much.reason


def test_stops_that_come_whatever_the_load_hold_no_throughput() -> None:
    answer = assess(facts(service((0.12, 0.12, 0.13, 0.12))))

    assert isinstance(answer, Absent)


def test_without_the_time_of_collections_nothing_is_said() -> None:
    answer = assess(facts(service((None,) * 4)))

    assert isinstance(answer, NotAssessed)
    assert "not known" in answer.reason


def test_a_load_that_ends_before_the_plateau_says_nothing_about_it() -> None:
    built = service((0.03, 0.2, 0.3, 0.4))
    grown = [step(users, 8.0 * users, 0.125, collectors=(collector(0.2),)) for users in USERS]

    assert isinstance(assess(facts(replace(built, steps=tuple(grown)))), Absent)


def test_where_only_the_time_is_known_it_must_grow_with_each_request_or_be_much() -> None:
    # 0.03 / 8 = 3.75 ms per request alone; 0.4 / 290 = 1.4 ms: each request costs no more than there.
    same = assess(facts(service((0.03, 0.2, 0.4, 0.45), full=None, filled=None)))
    # As little, but no healthy service collects for half of the time.
    half = assess(facts(service((0.03, 0.3, 0.55, 0.6), full=None, filled=None)))
    # 0.003 / 8 = 0.375 ms: 7 times as much.
    more = assess(facts(service((0.003, 0.1, 0.8, 0.8), full=None, filled=None)))

    assert isinstance(same, Absent)
    assert isinstance(half, Finding)
    assert isinstance(more, Finding)
    assert more.advice.startswith("Give the heap more room, or allocate and hold less")


def test_full_collections_of_a_heap_with_room_point_to_calls_of_the_collector() -> None:
    finding = found(assess(facts(service(filled=0.2))))

    assert "80 % of it is free" in finding.advice


@pytest.mark.parametrize(
    "last",
    [
        {"other_cores": 2.0},
        {"generator": generator(verdict="late", lag_p99_s=0.2)},
        {"steal": 0.4, "steal_mean": 0.4},
        {"processes": (process(3.9),), "collectors": (collector(0.3),)},
        {"quotas": (QuotaWatch("app", 4.0, 0.1, estimate(1.0), estimate(0.5), estimate(0.5)),)},
    ],
    ids=["other programs", "late generator", "other machines", "full cores", "quota"],
)
def test_what_lengthens_stops_leaves_it_probable(last: dict[str, Any]) -> None:
    finding = found(assess(facts(changed(service(), **last))))

    assert finding.grade is Grade.PROBABLE


def test_short_stops_beside_another_limit_do_not_hide_it() -> None:
    finding = found(assess(facts(service((0.01, 0.1, 0.3, 0.3)))))

    assert not finding.explains_others
    assert isinstance(finding.evidence[1].value, float)
