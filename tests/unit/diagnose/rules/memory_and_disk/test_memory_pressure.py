"""Memory that is short, and what makes a service read pages without that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.memory_and_disk.memory_pressure import assess
from loadlens.model.facts import Curve, MemoryWatch, Step
from loadlens.model.finding import Absent, Estimate, Figure, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, estimate, facts, generator, process, step
from tests.unit.diagnose.storing import UNREAD, rate, share, storage

PAGE = 4096
USERS = (1, 8, 16)
RATES = (100.0, 700.0, 800.0)


def level(users: float, per_s: float, response: float, **asked: Any) -> Step:
    """One level: `pages` a request from storage, which sleeps for them for a share `asleep` of its time."""
    pages, asleep, trials = asked["pages"], asked["asleep"], asked["trials"]
    shown: dict[str, Figure] = {
        name: UNREAD
        if asked[name] is None
        else (rate if name in ("swapped_in", "at_bound") else share)(asked[name])
        for name in ("swapped_in", "waiting", "own_waiting", "at_bound")
    }
    again = asked["again"] if asked["again"] is not None else 1.0
    memory = MemoryWatch(
        faults=tuple((pages or 0.0) * factor for factor in asked["over"]),
        later=asked["later"],
        again=UNREAD if asked["again"] is None else rate((pages or 0.0) * per_s * again),
        bound_bytes=asked["bound_bytes"],
        held=asked["held"],
        **shown,
    )
    watch = replace(
        storage(asked["written"], faults=None if pages is None else pages * per_s),
        read=rate((pages or 0.0) * per_s * PAGE),
        blocked_threads=UNREAD
        if asleep is None
        else estimate(max(asleep, 1e-9) * per_s * response, unit="threads"),
    )
    return step(
        users,
        per_s,
        response,
        trials=trials,
        storage=watch,
        memory=memory,
        processes=(process(0.4),),
        **asked["more"],
    )


def pages(
    each: float | tuple[float | None, ...] | None = 4.0, *, rates: tuple[float, ...] = RATES, **asked: Any
) -> Curve:
    """1, 8 and 16 users of a service whose control group is at its bound of 32 MiB."""
    built: dict[str, Any] = {
        "asleep": 0.3,
        "again": 1.0,
        "later": 1.0,
        "over": (1.0, 1.0, 1.0),
        "written": 0.0,
        "trials": 3,
        "waiting": 0.0,
        "own_waiting": None,
        "swapped_in": 0.0,
        "at_bound": 20.0,
        "held": 0.001,
        "bound_bytes": 32.0 * 2**20,
        "more": {},
        **asked,
    }
    all_of = each if isinstance(each, tuple) else (each,) * len(rates)
    return curve(
        *(
            level(users, per_s, users / per_s, **{**built, "pages": read})
            for users, per_s, read in zip(USERS, rates, all_of, strict=True)
        ),
        think=0.0,
    )


def graded(built: Curve) -> Grade | None:
    answer = assess(facts(built))
    assert not isinstance(answer, NotAssessed)
    return answer.grade if isinstance(answer, Finding) else None


def test_requests_that_wait_for_dropped_pages_are_found() -> None:
    finding = assess(facts(pages()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "Memory is short: a request waits for 4 pages, 30 % of the time"
    assert finding.impact == pytest.approx(0.3)
    assert "32.0 MiB" in finding.advice


def test_many_pages_are_written_out() -> None:
    finding = assess(facts(pages(128.0)))

    assert isinstance(finding, Finding)
    assert "for 128 pages" in finding.statement


def test_a_service_without_faults_is_silent() -> None:
    answer = assess(facts(pages(0.0)))

    assert isinstance(answer, Absent)
    assert "0 pages" in answer.reason


@pytest.mark.parametrize(("each", "grade"), [(0.009, None), (0.011, Grade.STRONG)])
def test_a_page_for_a_hundred_requests_is_the_threshold(each: float, grade: Grade | None) -> None:
    assert graded(pages(each)) is grade


@pytest.mark.parametrize(("asleep", "grade"), [(0.045, None), (0.055, Grade.STRONG)])
def test_a_twentieth_of_the_time_must_be_waited(asleep: float, grade: Grade | None) -> None:
    assert graded(pages(asleep=asleep)) is grade


def test_the_level_at_which_most_is_waited_speaks() -> None:
    """At 16 users threads wait for processors most of the time, and for pages less."""
    built = pages()
    crowded = pages(asleep=0.04).steps[-1]

    finding = assess(facts(replace(built, steps=(*built.steps[:-1], crowded))))

    assert isinstance(finding, Finding)
    assert finding.explanation.startswith("At 8 users") or finding.explanation.startswith("At 1 users")


@pytest.mark.parametrize(("waiting", "grade"), [(0.04, None), (0.065, Grade.STRONG)])
def test_what_the_kernel_counts_of_waiting_stands_for_sleep(waiting: float, grade: Grade | None) -> None:
    assert graded(pages(asleep=0.0, waiting=waiting)) is grade


def test_sleep_that_nobody_looked_at_leaves_it_suspected() -> None:
    assert graded(pages(asleep=None, waiting=None)) is Grade.SUSPECTED


@pytest.mark.parametrize(("again", "grade"), [(0.45, None), (0.55, Grade.STRONG), (None, Grade.SUSPECTED)])
def test_pages_must_have_been_there_before(again: float | None, grade: Grade | None) -> None:
    assert graded(pages(again=again)) is grade


@pytest.mark.parametrize(("later", "grade"), [(0.45, None), (0.55, Grade.STRONG)])
def test_faults_that_fade_within_a_trial_are_of_a_cold_cache(later: float, grade: Grade | None) -> None:
    assert graded(pages(later=later)) is grade


@pytest.mark.parametrize(
    ("over", "grade"),
    [((1.0, 0.7, 0.45), None), ((1.0, 0.7, 0.55), Grade.STRONG), ((1.0, 9.0, 2.0), Grade.STRONG)],
)
def test_faults_that_fade_from_trial_to_trial_are_too(over: tuple[float, ...], grade: Grade | None) -> None:
    assert graded(pages(over=over)) is grade


@pytest.mark.parametrize(("top", "grade"), [(1.8, None), (2.2, Grade.STRONG)])
def test_faults_that_fade_up_to_the_highest_load_are_too(top: float, grade: Grade | None) -> None:
    """At one user and at 8 a request fetches 4 pages; at 16 no request waits for them any more."""
    built = pages((4.0, 4.0, top), asleep=0.3)
    last = built.steps[-1]
    assert last.storage is not None
    quiet = replace(last, storage=replace(last.storage, blocked_threads=rate(0.0)))

    assert graded(replace(built, steps=(*built.steps[:-1], quiet))) is grade


def test_one_trial_and_one_level_cannot_tell_whether_it_fades() -> None:
    built = pages(over=(1.0,), later=None, trials=1)

    finding = assess(facts(replace(built, steps=built.steps[-1:])))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert any(rival.rival == "cold cache" and rival.ruled_out is None for rival in finding.counter)


@pytest.mark.parametrize(
    ("held", "grade"), [(0.45, Grade.SUSPECTED), (0.55, Grade.STRONG), (None, Grade.SUSPECTED)]
)
def test_without_a_bound_the_service_must_hold_the_memory_itself(held: float | None, grade: Grade) -> None:
    assert graded(pages(at_bound=0.0, held=held)) is grade


@pytest.mark.parametrize(("written", "grade"), [(2.9e6, Grade.STRONG), (3.7e6, Grade.PROBABLE)])
def test_other_bytes_may_be_what_threads_sleep_for(written: float, grade: Grade) -> None:
    # 1 page a request at 800 /s: 3.28 MB/s come back, and as much is written at the threshold of a half.
    assert graded(replace(pages(1.0, written=written), steps=pages(1.0, written=written).steps[-1:])) is grade


@pytest.mark.parametrize(
    ("signs", "asleep", "grade"),
    [
        ({"waiting": 0.2}, 0.0, None),  # others wait, and requests do not
        ({"waiting": 0.2}, 0.3, Grade.SUSPECTED),
        ({"waiting": 0.2}, None, Grade.SUSPECTED),
        ({"waiting": 0.04}, 0.3, None),
        ({"swapped_in": 5.0}, 0.3, Grade.SUSPECTED),
        ({"swapped_in": 0.5}, 0.3, None),
        ({"swapped_in": 5.0}, 0.0, None),
    ],
)
def test_a_machine_that_others_fill_is_suspected_at_most(
    signs: dict[str, Any], asleep: float | None, grade: Grade | None
) -> None:
    assert graded(pages(0.0, asleep=asleep, at_bound=None, **signs)) is grade


@pytest.mark.parametrize(("own", "grade"), [(0.04, None), (0.065, Grade.STRONG)])
def test_a_group_whose_threads_make_room_needs_no_faults(own: float, grade: Grade | None) -> None:
    assert graded(pages(0.0, asleep=0.0, own_waiting=own)) is grade


def test_a_late_generator_is_the_cause_itself() -> None:
    assert graded(pages(more={"generator": generator(verdict="limit")})) is None


def test_two_trials_say_little_of_the_next() -> None:
    assert graded(pages(trials=2)) is Grade.PROBABLE


def test_what_cannot_be_read_is_not_assessed_and_says_how() -> None:
    outside = assess(facts(curve(step(1, 5.0, 0.2))))
    blind = assess(facts(pages(None, waiting=None)))

    assert isinstance(outside, NotAssessed)
    assert "--pid" in outside.reason
    assert isinstance(blind, NotAssessed)
    assert "/proc/PID/stat" in blind.reason


@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_faster_and_slower_it_is_the_same(scale: float) -> None:
    usual, scaled = (
        assess(facts(pages(rates=tuple(factor * rate for rate in RATES)))) for factor in (1.0, scale)
    )

    assert isinstance(usual, Finding)
    assert isinstance(scaled, Finding)
    assert (scaled.grade, scaled.statement) == (usual.grade, usual.statement)


@pytest.mark.parametrize(("asleep", "explained_by"), [(0.45, None), (0.6, "memory.pressure")])
def test_a_plateau_is_its_doing_where_most_of_the_time_is_waited(
    asleep: float, explained_by: str | None
) -> None:
    verdict = diagnose.assess(facts(pages(rates=(400.0, 800.0, 800.0), asleep=asleep)))

    assessed = {finding.rule: finding for finding in verdict.findings}
    assert "memory.pressure" in assessed
    assert "disk.bound" not in assessed
    assert assessed["saturation.plateau"].explained_by == explained_by


def test_a_curve_that_is_named_otherwise_gives_the_same() -> None:
    usual = assess(facts(pages()))
    renamed = assess(facts(replace(pages(), label="Fall", costliest="x")))

    assert isinstance(usual, Finding)
    assert isinstance(renamed, Finding)
    assert (renamed.grade, renamed.statement, renamed.curves) == (usual.grade, usual.statement, ("Fall",))


def test_intervals_that_reach_below_leave_it_probable() -> None:
    built = pages(0.011)
    wide = tuple(
        replace(s, storage=replace(s.storage, major_faults=replace(s.storage.major_faults, low=0.0)))
        for s in built.steps
        if s.storage is not None and isinstance(s.storage.major_faults, Estimate)
    )

    assert graded(replace(built, steps=wide)) is Grade.PROBABLE
