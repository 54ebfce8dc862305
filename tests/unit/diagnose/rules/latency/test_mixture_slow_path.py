"""A slow path that is the same at every load, and what looks like one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.latency.mixture_slow_path import assess_after
from loadlens.model.facts import Facts, KernelWatch, LabelSplit
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from loadlens.model.shapes import SlowLevel, SlowPath
from tests.unit.diagnose.build import curve, estimate, generator, step
from tests.unit.diagnose.parts import split


def level(
    load: float, requests: int, *, share: float = 0.1, shift: float = 0.3, ratio: float = 31.0
) -> SlowLevel:
    weight = Estimate("w", "share", share, 0.8 * share, 1.2 * share, 1, requests, "built")
    return SlowLevel(load, requests, round(share * requests), weight, estimate(shift), ratio)


def path(**more: Any) -> SlowPath:
    """10 % of the requests of a service of 10 ms take 300 ms longer, seen at one, two and four users."""
    built: dict[str, Any] = {
        "label": "b",
        "request": "POST /b",
        "requests": 1_700,
        "most": 900,
        "met": 0,
        "opening": 7,
        "unseen_s": 0.072,
        "alone": level(1, 300),
        "alone_requests": 300,
        "levels": (level(2, 500), level(4, 900)),
        "weight": Estimate("w", "share", 0.1, 0.09, 0.11, 3, 1_700, "built"),
        "shift": estimate(0.3),
        "is_even": True,
        "together": 0.0,
        "in_answer": 0.0,
    }
    return SlowPath(**{**built, **more})


def record(slow: SlowPath | None = None, *, kernel: KernelWatch | None = None) -> Facts:
    steps = [step(n, n / 0.04, 0.04, kernel=kernel) for n in (1, 2, 4)]
    return Facts(4, (replace(curve(*steps, think=0.0), slow_paths=(slow or path(),)),))


def other(rule: str) -> Finding:
    return Finding(rule, Grade.STRONG, 0.5, "", "1", "", (), (), "", "", curves=("k=1",))


def test_a_share_that_takes_the_same_time_longer_at_every_load_is_found() -> None:
    finding = assess_after(record(), [])

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "10 % of POST /b take 300 ms longer, at 1 to 4 users alike"
    values = {e.signal: (e.value, e.low, e.high) for e in finding.evidence}
    assert values["component.weight"] == (0.1, 0.09, 0.11)
    assert values["component.shift"][0] == 0.3
    assert finding.impact == pytest.approx(0.1 * 0.3 / (0.1 * 0.3 + 0.01))  # 30 of 40 ms


def test_where_requests_queue_the_path_is_a_smaller_part_of_their_time() -> None:
    built = record()
    top = step(16, 100, 0.16)
    queued = replace(built.curves[0], steps=(*built.curves[0].steps, top))

    finding = assess_after(replace(built, curves=(queued,)), [])

    assert isinstance(finding, Finding)
    assert finding.impact == pytest.approx(0.1 * 0.3 / 0.16)


@pytest.mark.parametrize(
    ("mean_s", "is_named"), [(0.31, True), (None, True), (0.011, False)], ids=["timed", "counted", "quick"]
)
def test_the_value_of_a_label_with_the_same_share_is_named(mean_s: float | None, is_named: bool) -> None:
    built = record()
    other_s = None if mean_s is None else 0.01

    def splits(rate: float) -> tuple[LabelSplit, ...]:
        return (split((0.1 * rate, mean_s), (0.9 * rate, other_s)),)

    steps = tuple(replace(each, splits=splits(each.throughput_trials[0])) for each in built.curves[0].steps)

    finding = assess_after(replace(built, curves=(replace(built.curves[0], steps=steps),)), [])

    assert isinstance(finding, Finding)
    assert ('upstream="b" of calls_seconds has this share.' in finding.explanation) is is_named


def test_other_names_and_times_give_the_same_finding() -> None:
    longer = path(
        label="ж",
        request="PUT /ж",
        shift=estimate(3.0),
        alone=level(1, 300, shift=3.0),
        levels=(level(2, 500, shift=3.0),),
        unseen_s=0.72,
    )

    finding = assess_after(record(longer), [])

    assert isinstance(finding, Finding)
    assert finding.impact == pytest.approx(0.75)


def test_one_hill_is_none_and_says_what_was_not_assessed() -> None:
    answer = assess_after(record(path(alone=None, levels=(), weight=None, shift=None)), [])

    assert isinstance(answer, Absent)
    assert answer.reason.startswith("one hill at every load in 1,700 requests; a path of less than 0.5 %")


def test_a_distance_that_grows_with_the_load_is_queueing() -> None:
    grown = path(levels=(level(2, 500, shift=0.4), level(4, 900, shift=0.8)))

    answer = assess_after(record(grown), [])

    assert isinstance(answer, Absent)
    assert "changes with the load" in answer.reason


def test_a_distance_within_a_tenth_is_the_same() -> None:
    assert isinstance(assess_after(record(path(levels=(level(2, 500, shift=0.32),))), []), Finding)
    assert isinstance(assess_after(record(path(levels=(level(2, 500, shift=0.38),))), []), Absent)


def test_a_calm_level_with_one_hill_contradicts_it() -> None:
    assert isinstance(assess_after(record(path(lacking=(8.0,))), []), Absent)


def test_too_few_slow_ones_alone_are_a_suspicion() -> None:
    finding = assess_after(record(path(alone=None, alone_requests=30)), [])

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_probes_that_wait_too_make_it_a_stop_of_everything() -> None:
    answer = assess_after(record(path(together=0.9)), [])

    assert isinstance(answer, Absent)
    assert "a stop, no path" in answer.reason


def test_a_share_that_comes_and_goes_is_no_path() -> None:
    assert isinstance(assess_after(record(path(is_even=False)), []), Absent)


def test_a_lighter_hill_than_a_two_hundredth_is_none() -> None:
    light = path(weight=Estimate("w", "share", 0.004, 0.003, 0.005, 3, 9_000, "built"))

    assert isinstance(assess_after(record(light), []), Absent)


def test_where_nearly_all_are_slow_the_quick_ones_are_the_exception() -> None:
    """3 % of the parcels have no depot and are answered at once."""
    most = path(weight=Estimate("w", "share", 0.97, 0.96, 0.98, 3, 9_000, "built"))

    assert isinstance(assess_after(record(most), []), Absent)


def test_steps_of_queueing_are_no_path() -> None:
    assert isinstance(assess_after(record(path(alone=level(1, 300, ratio=2.0))), []), Absent)


def test_a_quota_that_was_found_explains_it() -> None:
    assert isinstance(assess_after(record(), [other("cgroup.throttled")]), Absent)


def test_pauses_that_were_found_were_left_out_one_by_one() -> None:
    finding = assess_after(record(), [other("pause.periodic")])
    unseen = assess_after(record(path(unseen_s=None, together=0.0)), [other("pause.periodic")])

    assert isinstance(finding, Finding)
    assert isinstance(unseen, Finding)
    assert (finding.grade, unseen.grade) == (Grade.STRONG, Grade.PROBABLE)


@pytest.mark.parametrize(("shift", "expected"), [(0.3, Grade.PROBABLE), (0.06, None)])
def test_others_on_the_machine_make_short_waits_alone(shift: float, expected: Grade | None) -> None:
    levels = (level(2, 500, shift=shift), level(4, 900, shift=shift))
    built = path(shift=estimate(shift), alone=level(1, 300, shift=shift), levels=levels, unseen_s=0.05)

    answer = assess_after(record(built), [other("pause.periodic"), other("host.interference")])

    assert (answer.grade if isinstance(answer, Finding) else None) is expected


def test_only_levels_at_which_it_was_seen_are_named() -> None:
    alone = assess_after(record(path(levels=())), [])
    open_load = record()
    open_load = replace(open_load, curves=(replace(open_load.curves[0], is_closed=False),))
    scheduled = assess_after(open_load, [])

    assert isinstance(alone, Finding)
    assert isinstance(scheduled, Finding)
    assert alone.statement == "10 % of POST /b take 300 ms longer, at 1 user"
    assert scheduled.statement == "10 % of POST /b take 300 ms longer, at 1 to 4 requests/s alike"


@pytest.mark.parametrize(
    ("again", "expected"),
    [(170.0, Absent), (0.0, Finding), (None, Finding)],
    ids=["as many", "none", "not read"],
)
def test_a_retransmission_timer_is_looked_at_in_the_kernel(again: float | None, expected: type) -> None:
    timed = path(shift=estimate(0.2), alone=level(1, 300, shift=0.2), levels=(level(2, 500, shift=0.2),))
    kernel = None if again is None else KernelWatch(None, None, None, again / 3, None)

    assert isinstance(assess_after(record(timed, kernel=kernel), []), expected)


def test_a_wait_within_the_answer_of_a_timers_length_is_tcps() -> None:
    timed = path(
        shift=estimate(0.04),
        alone=level(1, 300, shift=0.04),
        levels=(level(2, 500, shift=0.04),),
        in_answer=0.95,
    )

    assert isinstance(assess_after(record(timed), []), Absent)


def test_a_delay_of_40_ms_before_the_answer_may_be_tcps_behind_the_service() -> None:
    timed = path(shift=estimate(0.04), alone=level(1, 300, shift=0.04), levels=(level(2, 500, shift=0.04),))
    unsent = KernelWatch(None, None, None, 0.0, None)  # a delayed acknowledgement sends nothing again

    finding = assess_after(record(replace(timed, unseen_s=0.03), kernel=unsent), [])

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert next(c.ruled_out for c in finding.counter if c.rival == "TCP's timers") is None


def test_lateness_at_p99_says_nothing_of_a_hundredth_of_the_requests() -> None:
    rare = path(weight=Estimate("w", "share", 0.008, 0.006, 0.01, 3, 9_000, "built"))

    finding = assess_after(record(rare), [])

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert next(c.ruled_out for c in finding.counter if c.rival == "generator") is None


def test_few_requests_and_thinned_logs_are_not_assessed() -> None:
    few = assess_after(record(path(most=150)), [])
    blind = assess_after(Facts(4, (curve(step(1, 20, 0.05)),)), [])

    assert isinstance(few, NotAssessed)
    assert few.reason == "150 requests at one level, needs 200"
    assert isinstance(blind, NotAssessed)


@pytest.mark.parametrize(
    ("late", "grade"),
    [(0.02, Grade.STRONG), (0.1, Grade.PROBABLE), (0.4, None)],
    ids=["in time", "some", "as late"],
)
def test_a_generator_that_was_as_late_explains_it(late: float, grade: Grade | None) -> None:
    built = record()
    steps = tuple(replace(s, generator=generator(lag_p99_s=late)) for s in built.curves[0].steps)

    answer = assess_after(Facts(4, (replace(built.curves[0], steps=steps),)), [])

    assert (answer.grade if isinstance(answer, Finding) else None) is grade


def test_a_machine_that_is_full_at_the_highest_level_says_nothing_of_the_calm_ones() -> None:
    assert isinstance(
        assess_after(record(), [other("colocation.contention"), other("cpu.saturated")]), Finding
    )
