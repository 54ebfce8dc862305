"""A disk as the limit, and what makes a disk busy or a service slow without it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.memory_and_disk.disk_bound import assess
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, estimate, facts, generator, process, step
from tests.unit.diagnose.storing import UNREAD, storage, writes


def test_requests_that_wait_for_their_bytes_are_found() -> None:
    finding = assess(facts(writes()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert "60 % of the time" in finding.statement
    assert "488 KiB" in finding.advice  # 500,000 bytes of a request
    assert "300 /s" in finding.advice


def test_a_service_that_writes_nothing_is_not() -> None:
    answer = assess(facts(writes(0.0)))

    assert isinstance(answer, Absent)


@pytest.mark.parametrize(("stalled", "kind"), [(0.08, Absent), (0.12, Finding)])
def test_a_tenth_of_the_time_is_the_threshold(stalled: float, kind: type) -> None:
    assert isinstance(assess(facts(writes(stalled=stalled, busy=0.5))), kind)


@pytest.mark.parametrize(("busy", "kind"), [(0.8, Absent), (0.9, Finding)])
def test_without_pressure_the_use_of_the_device_decides(busy: float, kind: type) -> None:
    assert isinstance(assess(facts(writes(stalled=None, busy=busy))), kind)


@pytest.mark.parametrize(("waiting", "grade"), [(0.05, Grade.SUSPECTED), (0.5, Grade.STRONG)])
def test_a_device_that_is_busy_while_nobody_waits_for_it_may_write_back(waiting: float, grade: Grade) -> None:
    finding = assess(facts(writes(stalled=0.02, busy=0.95, waiting=waiting)))

    assert isinstance(finding, Finding)
    assert finding.grade is grade


@pytest.mark.parametrize(("waiting", "grade"), [(0.45, Grade.SUSPECTED), (0.55, Grade.STRONG)])
def test_a_sync_within_a_lock_that_is_held_for_longer_is_not_the_limit(waiting: float, grade: Grade) -> None:
    """All tasks are stalled for 13 % of the time: a lock that is held 23 ms and synced for 3 of them."""
    finding = assess(facts(writes(stalled=0.13, waiting=waiting, busy=0.2)))

    assert isinstance(finding, Finding)
    assert finding.grade is grade
    assert finding.statement.startswith("Storage holds everything up 13 % of the time")


def test_a_device_that_is_always_busy_is_named_as_such() -> None:
    finding = assess(facts(writes(stalled=None, busy=0.9)))

    assert isinstance(finding, Finding)
    assert finding.statement.startswith("A device is busy 90 % of the time")


@pytest.mark.parametrize(("blocked", "kind"), [(0.46, Absent), (0.54, Finding)])
def test_threads_that_take_turns_asleep_show_what_the_kernel_does_not_count(
    blocked: float, kind: type
) -> None:
    answer = assess(facts(writes(stalled=0.0, waiting=0.02, busy=0.4, blocked=blocked)))

    assert isinstance(answer, kind)
    if isinstance(answer, Finding):
        assert answer.grade is Grade.STRONG
        assert answer.statement.startswith("Threads sleep until storage has done its part 54 % of the time")
        assert answer.impact == pytest.approx(0.54)


@pytest.mark.parametrize(("asleep", "kind"), [(1.13, Finding), (1.25, Absent)])
def test_threads_that_sleep_for_themselves_do_not_take_turns(asleep: float, kind: type) -> None:
    # Eight that each sleep a tenth of the time: one at least 57 % of it, 1.4 where there is any.
    assert isinstance(assess(facts(writes(stalled=0.0, busy=0.4, blocked=1.0, asleep=asleep))), kind)


@pytest.mark.parametrize(
    ("blocked", "alone", "kind"), [(0.9, 0.9, Finding), (0.9, 1.1, Absent), (0.8, 0.7, Absent)]
)
def test_many_who_sleep_at_once_wait_for_storage_where_each_sleeps_longer(
    blocked: float, alone: float, kind: type
) -> None:
    # Four sleep at 300 /s, 13 ms per request; alone, at 150 /s, so many of one user: 6 or 7.3 ms.
    built = writes(stalled=0.0, busy=0.4, blocked=blocked, asleep=4.0)
    first = replace(built.steps[0], storage=storage(75e6, stalled=0.0, busy=0.4, blocked=0.9, asleep=alone))

    assert isinstance(assess(facts(replace(built, steps=(first, *built.steps[1:])))), kind)


def test_who_sleeps_shows_that_a_busy_device_is_waited_for() -> None:
    unseen = assess(facts(writes(stalled=0.0, waiting=0.02, busy=0.95)))
    seen = assess(facts(writes(stalled=0.0, waiting=0.02, busy=0.95, blocked=0.97)))

    assert isinstance(unseen, Finding)
    assert isinstance(seen, Finding)
    assert (unseen.grade, seen.grade) == (Grade.SUSPECTED, Grade.STRONG)


def test_a_full_machine_may_be_the_limit() -> None:
    built = writes()
    full = replace(built.steps[-1], host_cpu=estimate(3.8, unit="cores"))

    answer = assess(facts(replace(built, steps=(*built.steps[:-1], full))))

    assert isinstance(answer, Absent)
    assert "3.80 of 4 cores" in answer.reason


def test_processors_that_are_busy_are_the_limit_themselves() -> None:
    answer = assess(facts(writes(cores=3.2)))  # of 4

    assert isinstance(answer, Absent)
    assert "80 %" in answer.reason


def test_cpu_that_was_not_read_is_no_room() -> None:
    unread = replace(process(0.4), cpu=UNREAD, occupied=UNREAD)
    built = writes()
    blind = tuple(replace(s, processes=(unread,)) for s in built.steps)

    finding = assess(facts(replace(built, steps=blind)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_a_cache_that_writes_back_now_and_then_is_not_per_request() -> None:
    assert isinstance(assess(facts(writes(more=(1.0, 0.4, 1.7)))), Absent)


def test_throughput_that_still_grows_is_not_limited() -> None:
    assert isinstance(assess(facts(writes(rates=(150.0, 600.0, 1100.0)))), Absent)


def test_pages_that_come_from_storage_are_memorys_doing() -> None:
    answer = assess(facts(writes(faults=30.0)))  # at 300 a second a tenth of a page each

    assert isinstance(answer, Absent)
    assert "pages" in answer.reason


def test_lines_of_a_log_are_not_excluded() -> None:
    finding = assess(facts(writes(4096.0, line=200.0)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_others_who_write_more_are_not_excluded() -> None:
    finding = assess(facts(writes(others=1e9)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_a_late_generator_is_the_cause_itself() -> None:
    built = writes()
    late = tuple(replace(s, generator=generator(verdict="limit")) for s in built.steps)

    assert isinstance(assess(facts(replace(built, steps=late))), Absent)


def test_one_level_alone_leaves_it_suspected() -> None:
    built = writes()

    finding = assess(facts(replace(built, steps=built.steps[-1:])))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_what_cannot_be_read_is_not_assessed_and_says_how() -> None:
    outside = assess(facts(curve(step(1, 5.0, 0.2))))
    unreadable = assess(facts(curve(step(1, 5.0, 0.2, processes=(process(0.3),)))))
    blind = assess(facts(writes(stalled=None, busy=None)))

    assert isinstance(outside, NotAssessed)
    assert "--pid" in outside.reason
    assert isinstance(unreadable, NotAssessed)
    assert "/proc/PID/io" in unreadable.reason
    assert isinstance(blind, NotAssessed)
    assert "/proc/pressure" in blind.reason


def test_rescaled_it_is_the_same() -> None:
    small = assess(facts(writes(5_000.0, rates=(15.0, 30.0, 30.0))))

    assert isinstance(small, Finding)
    assert small.grade is Grade.STRONG
