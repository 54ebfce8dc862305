"""A quota that stops the service, quotas that do not, and what else would look the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.processor.cgroup_throttled import assess
from loadlens.model.facts import Curve, QuotaWatch
from loadlens.model.finding import (
    Absent,
    Estimate,
    Finding,
    Grade,
    NotAssessed,
    NotMeasured,
)
from loadlens.model.quality import Quality
from tests.unit.diagnose.build import curve, estimate, facts, generator, process, step

UNREAD = NotMeasured("cpu", "not read")


def share(point: float, *, half: float = 0.02) -> Estimate:
    return Estimate(
        "cpu.throttled", "share", point, max(0.0, point - half), min(1.0, point + half), 3, 40, "built"
    )


def quota(
    throttled: float = 0.8, *, cores: float | None = 0.4, used: float = 0.39, held: float = 1.0
) -> QuotaWatch:
    return QuotaWatch(
        "g", cores, 0.1, estimate(used, unit="cores"), share(throttled), estimate(held, unit="cores")
    )


def throttled(*, trials: int = 3, watch: QuotaWatch | None = None, **last: object) -> Curve:
    """A request takes 2 ms of CPU and the quota allows 200 per second: 0.4 cores by 2 ms."""
    host = {"host_cpu": estimate(0.6, unit="cores")}
    steps = [
        step(1, 150.0, 0.004, trials=trials, quotas=(quota(0.0, used=0.3, held=0.001),), **host),
        step(8, 200.0, 0.04, trials=trials, quotas=(watch or quota(),), **{**host, **last}),
    ]
    return curve(*steps, think=0.0, work=estimate(0.002))


def test_a_quota_that_is_used_up_is_found_with_its_size() -> None:
    finding = assess(facts(throttled()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "80 % of the periods end with a quota of 0.4 cores used up"
    size = next(evidence for evidence in finding.evidence if evidence.signal == "quota.cores")
    assert size.value == 0.4
    assert size.low == pytest.approx(0.4 - 1e-5)  # as the kernel rounds it, to a microsecond a period
    assert size.high == pytest.approx(0.4 + 1e-5)
    assert "400 /s" in finding.advice  # 0.8 cores by 2 ms


def test_one_trial_bears_no_more_than_probable() -> None:
    finding = assess(facts(throttled(trials=1)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


@pytest.mark.parametrize(("stopped", "grade"), [(0.10, Grade.SUSPECTED), (0.20, Grade.PROBABLE)])
def test_one_or_two_stops_in_a_short_trial_are_suspected_at_most(stopped: float, grade: Grade) -> None:
    # Two seconds have twenty periods of 0.1 s: two of them, and four.
    watch = quota(stopped)
    finding = assess(facts(throttled(trials=1, watch=watch, quality=Quality(seconds=2.0))))

    assert isinstance(finding, Finding)
    assert finding.grade is grade


@pytest.mark.parametrize("held", [0.02, 0.0])
def test_a_quota_far_above_the_use_that_holds_nothing_back_is_none(held: float) -> None:
    assert isinstance(assess(facts(throttled(watch=quota(0.06, cores=2.0, used=0.4, held=held)))), Absent)


def test_bursts_that_empty_a_quota_which_is_large_on_average_count() -> None:
    finding = assess(facts(throttled(watch=quota(0.3, cores=0.8, used=0.4, held=0.2))))

    assert isinstance(finding, Finding)


@pytest.mark.parametrize(("stopped", "kind"), [(0.04, Absent), (0.06, Finding)])
def test_a_twentieth_of_the_periods_is_the_threshold(stopped: float, kind: type) -> None:
    assert isinstance(assess(facts(throttled(watch=quota(stopped)))), kind)


def test_a_quota_as_large_as_the_machine_is_no_limit_of_its_own() -> None:
    answer = assess(facts(throttled(watch=quota(0.5, cores=4.0, used=3.9)), cores=4))

    assert isinstance(answer, Absent)
    assert "4" in answer.reason


def test_on_a_full_machine_it_is_probable_at_most() -> None:
    finding = assess(facts(throttled(host_cpu=estimate(3.9, unit="cores"))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_a_generator_at_its_limit_is_the_cause_itself() -> None:
    assert isinstance(assess(facts(throttled(generator=generator(verdict="limit")))), Absent)


def test_a_late_generator_stops_no_period() -> None:
    late = generator(verdict="late", lag_p99_s=181e-6, lag_limit_s=100e-6)

    finding = assess(facts(throttled(generator=late)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_an_unread_quota_leaves_it_to_what_was_held_back() -> None:
    finding = assess(facts(throttled(watch=quota(0.5, cores=None, used=0.4, held=0.3))))

    assert isinstance(finding, Finding)
    assert "its quota" in finding.statement


def test_without_a_figure_of_use_it_is_suspected() -> None:
    finding = assess(facts(throttled(watch=replace(quota(), used=UNREAD))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_without_groups_it_says_what_would_decide() -> None:
    from_outside = assess(facts(curve(step(1, 5.0, 0.2))))
    watched = assess(facts(curve(step(1, 5.0, 0.2, processes=(process(0.3),)))))

    assert isinstance(from_outside, NotAssessed)
    assert "--pid" in from_outside.reason
    assert isinstance(watched, NotAssessed)
    assert "cpu.stat" in watched.reason
