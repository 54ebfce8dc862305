"""A cache that misses: counters of hits and misses, and what comes as often as a miss; rates by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.waiting import cache_misses
from loadlens.model.facts import Curve, LabelSplit, LookUps
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import facts
from tests.unit.diagnose.parts import part
from tests.unit.diagnose.waiting import waiting

HOLD_S = 0.02  # of the only place: 50 requests per second


def missing(missed: float, *, first: float | None = None, behind: bool = True, of_time: float = 0.6) -> Curve:
    """One look-up for each request; `missed` miss, and ask a part that takes `of_time` of their time."""
    built = waiting(HOLD_S, base_s=0.01)
    steps = []
    for place, step in enumerate(built.steps):
        rate = step.throughput_trials[0]
        share = missed if place or first is None else first
        counted = LookUps("a", "notes_hits_total", rate * (1 - share), rate * share, round(20 * rate))
        splits = []
        if behind and share:
            asked = part("archive", rate * share, of_time * step.load / (rate * share))
            splits.append(LabelSplit("calls_seconds", "to", (asked, part("racks", 3 * rate, 0.001))))
        steps.append(replace(step, splits=tuple(splits), look_ups=(counted,)))
    return replace(built, steps=tuple(steps))


def test_a_cache_that_misses_is_named_with_what_requests_wait_for() -> None:
    finding = cache_misses.assess(facts(missing(0.9)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert finding.statement == '90 % of the look-ups miss the cache, and requests wait for to="archive"'
    # 50 requests per second, each with one look-up.
    assert "notes_hits_total: 50.0 /s look-ups at" in finding.explanation
    assert {each.signal: each.value for each in finding.evidence}["look-ups.each"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    "built",
    [
        missing(0.9, behind=False),
        missing(0.9, of_time=0.3),  # what takes the time is not timed
        missing(0.9, of_time=0.95),  # without load, too: it may be the timer of the requests
    ],
)
def test_a_cache_whose_misses_nothing_follows_is_suspected(built: Curve) -> None:
    finding = cache_misses.assess(facts(built))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_the_load_by_path_is_not_behind_a_cache() -> None:
    built = missing(0.9, behind=False)
    steps = []
    for step in built.steps:
        rate = step.throughput_trials[0]
        asked = part("GET /a", 0.9 * rate, step.load / rate)
        steps.append(replace(step, splits=(LabelSplit("the load", "request", (asked,), is_of_load=True),)))

    finding = cache_misses.assess(facts(replace(built, steps=tuple(steps))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


@pytest.mark.parametrize(
    ("built", "reason"),
    [
        (missing(0.4), "40 % of 50.0 /s look-ups miss"),
        (missing(0.0), "no look-up misses"),
        (missing(0.0, first=0.5), "no look-up misses"),
    ],
)
def test_a_cache_that_helps_or_whose_misses_are_quick_is_no_limit(built: Curve, reason: str) -> None:
    absent = cache_misses.assess(facts(built))

    assert isinstance(absent, Absent)
    assert reason in absent.reason


@pytest.mark.parametrize(
    ("first", "grade"), [(0.65, Grade.PROBABLE), (0.2, Grade.PROBABLE), (0.8, Grade.SUSPECTED)]
)
def test_a_cache_that_fills_is_only_suspected(first: float, grade: Grade) -> None:
    finding = cache_misses.assess(facts(missing(0.6, first=first)))

    assert isinstance(finding, Finding)
    assert finding.grade is grade


def test_a_service_without_such_counters_is_not_assessed() -> None:
    assert isinstance(cache_misses.assess(facts(waiting(HOLD_S))), NotAssessed)
