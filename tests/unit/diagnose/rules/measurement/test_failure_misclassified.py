"""Lengths that a program calls failures."""

from __future__ import annotations

from typing import Any

from loadlens.diagnose.rules.measurement.failure_misclassified import assess
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, Grade
from loadlens.model.quality import CalledFailed, Quality
from tests.unit.diagnose.build import curve, facts, step


def called(**more: Any) -> Facts:
    built: dict[str, Any] = {
        "program": "tool", "by_length": 9_395, "failed": 0, "unexpected": 0, "answered": 10_000,
    }  # fmt: skip
    level = step(6, 43.2, 0.139, driver="tool", quality=Quality(called_failed=CalledFailed(**(built | more))))
    return facts(curve(level, think=0.0))


def test_lengths_alone_are_no_failures() -> None:
    finding = assess(called())

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "94 % of answers count as failed for their length; 0 failed"
    assert finding.advice.startswith("Read 0 failures, not 9,395")


def test_error_pages_differ_in_length_because_they_are_errors() -> None:
    assert isinstance(assess(called(unexpected=101)), Absent)
    assert isinstance(assess(called(unexpected=100)), Finding)


def test_what_broke_off_is_a_failure() -> None:
    assert isinstance(assess(called(by_length=50, failed=50)), Absent)


def test_where_the_program_does_not_tell_statuses_it_is_suspected() -> None:
    finding = assess(called(unexpected=None))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_programs_that_judge_otherwise_are_silent() -> None:
    assert isinstance(assess(facts(curve(step(6, 43.2, 0.139)))), Absent)
