"""Figures that cannot all be true, of our own engine and of other programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.measurement.little_violation import assess
from loadlens.model.facts import Step
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from loadlens.model.quality import LittleTrial, Quality
from tests.unit.diagnose.build import curve, facts, step


def told(users: float, rate: float, mean: float, p50: float | None = None, **more: Any) -> Step:
    """A level as another program reports it: no intervals, times from sending."""
    made = step(users, rate, mean, driver="tool", little="unknown", **more)
    request_class = made.classes[0]
    bare = Estimate("m", "s", mean, None, None, 1, 100, "reported")
    middle = Estimate("m", "s", mean if p50 is None else p50, None, None, 1, 100, "reported")
    service = replace(request_class.service, mean=bare, p50=middle)
    return replace(made, classes=(replace(request_class, service=service),))


def test_a_mean_three_times_what_fits_is_found_and_the_true_one_named() -> None:
    # 24,000/s x 13 ms = 312 in flight, with 100 connections.
    finding = assess(facts(curve(told(100, 24_000.0, 0.013), think=0.0)))

    assert isinstance(finding, Finding)
    assert finding.statement == "Throughput times mean time is 3.12 times 100 users; 1 is possible"
    assert finding.advice == "Take 4.17 ms as the mean: 100 users over throughput."
    assert "3.12 times what fits" in finding.explanation


def test_a_median_that_was_told_as_the_mean_is_recognised() -> None:
    finding = assess(facts(curve(told(100, 24_000.0, 0.013, p50=0.004167), think=0.0)))

    assert isinstance(finding, Finding)
    assert "median" in finding.explanation


@pytest.mark.parametrize(("mean", "is_found"), [(0.0104, False), (0.0106, True), (0.0096, False)])
def test_five_per_cent_are_left_to_rounding(mean: float, is_found: bool) -> None:
    # 10 users at 1,000/s: 10 ms fit.
    assert isinstance(assess(facts(curve(told(10, 1_000.0, mean), think=0.0))), Finding) is is_found


def test_a_long_request_at_the_edge_widens_the_bound() -> None:
    cut = Quality(longest_reported_s=2.0, seconds=10.0)  # 2 x 2 / 10: 40 %

    assert isinstance(assess(facts(curve(told(10, 1_000.0, 0.013, quality=cut), think=0.0))), Absent)


def test_users_who_pause_unsaid_miss_the_same_time_at_every_level() -> None:
    # 20 ms of service, 30 ms of think time that was not reported: X = N / 50 ms.
    pausing = [told(n, n / 0.05, 0.02) for n in (5, 10, 20)]

    answer = assess(facts(curve(*pausing, think=0.0)))

    assert isinstance(answer, Absent)
    assert "30.0 ms" in answer.reason


def test_time_that_is_missing_unevenly_is_no_pause() -> None:
    uneven = [told(5, 100.0, 0.045), told(10, 150.0, 0.03)]  # missing: 5 ms and 36.7 ms

    finding = assess(facts(curve(*uneven, think=0.0)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG


def test_one_level_below_one_leaves_a_pause_possible() -> None:
    finding = assess(facts(curve(told(10, 150.0, 0.03), think=0.0)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_our_own_broken_integral_is_found_and_one_that_holds_is_not() -> None:
    broken = step(8, 100.0, 0.08, little="broken", quality=Quality(little=(LittleTrial(0.71, 0.01),) * 3))
    holds = step(8, 100.0, 0.08, quality=Quality(little=(LittleTrial(1.004, 0.01),) * 3))

    finding = assess(facts(curve(broken)))

    assert isinstance(finding, Finding)
    assert "0.71 times" in finding.statement
    silent = assess(facts(curve(holds)))
    assert isinstance(silent, Absent)
    assert (
        "off by 0.4 % at most, within what requests cut off at the edges allow (up to 1.0 %)" in silent.reason
    )


def test_short_trials_decide_nothing() -> None:
    assert isinstance(assess(facts(curve(step(8, 100.0, 0.08, little="unknown")))), NotAssessed)


@pytest.mark.parametrize(("share", "is_found"), [(0.02, False), (0.005, True)])
def test_failures_count_in_a_rate_and_not_in_a_mean_that_was_told(share: float, is_found: bool) -> None:
    failed = Estimate("f", "share", share, share, share, 3, 1000, "built")

    answer = assess(facts(curve(told(100, 24_000.0, 0.013, failed=failed), think=0.0)))

    assert isinstance(answer, Finding) is is_found
