"""Times from sending compared with times from due."""

from __future__ import annotations

from typing import Any

import pytest

from loadlens.diagnose.rules.measurement.co_omission import assess
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.quality import Omission, Quality
from tests.unit.diagnose.build import curve, estimate, facts, step


def scheduled(is_closed: bool = False, **more: Any) -> Facts:
    built: dict[str, Any] = {
        "late": estimate(0.2, unit="share"), "tail_ratio": 39.7, "mean_ratio": 11.5,
        "response_p99_s": 0.913, "service_p99_s": 0.023,
    }  # fmt: skip
    level = step(100, 100.0, 0.06, quality=Quality(omission=Omission(**(built | more))))
    return facts(curve(level, is_closed=is_closed, think=0.0))


def test_a_tail_that_sending_hides_is_found_with_who_was_late() -> None:
    finding = assess(scheduled())

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert "39.70 times as long" in finding.statement
    assert "913 ms from due, 23.0 ms from sending; the generator was late" in finding.explanation


def test_requests_that_waited_for_a_connection_are_told_from_a_late_generator() -> None:
    finding = assess(scheduled(late=estimate(0.001, unit="share")))

    assert isinstance(finding, Finding)
    assert "no connection was free" in finding.explanation
    assert "in flight" in finding.advice


@pytest.mark.parametrize(("ratio", "is_found"), [(1.2, True), (1.19, False)])
def test_a_fifth_decides(ratio: float, is_found: bool) -> None:
    assert isinstance(assess(scheduled(tail_ratio=ratio, mean_ratio=1.1)), Finding) is is_found


def test_without_p99_it_is_suspected_from_the_means() -> None:
    finding = assess(scheduled(tail_ratio=None))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED
    assert "the mean is 11.50 times as long" in finding.statement
    assert isinstance(assess(scheduled(tail_ratio=None, mean_ratio=1.1)), Absent)


def test_a_closed_load_leaves_nothing_out() -> None:
    assert isinstance(assess(scheduled(is_closed=True)), Absent)


def test_unrecorded_lateness_is_not_assessed() -> None:
    assert isinstance(assess(facts(curve(step(100, 100.0, 0.06), is_closed=False))), NotAssessed)
    assert isinstance(assess(facts()), NotAssessed)
