"""Standstills at no period, and what else makes some."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.latency.pause_aperiodic import assess_after
from loadlens.model.facts import Facts, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.shapes import Standstill
from tests.unit.diagnose.build import curve
from tests.unit.diagnose.standing import IRREGULAR, regular, run


def other(rule: str, *, grade: Grade = Grade.STRONG, curve: str = "k=1") -> Finding:
    return Finding(rule, grade, 0.5, "", "1", "", (), (), "", "", curves=(curve,))


def test_pauses_at_random_are_found() -> None:
    finding = assess_after(run(IRREGULAR, 0.3), [])

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "Nothing is answered for 300 ms, 15 times in 50 s"
    length = next(e for e in finding.evidence if e.signal == "pause.length")
    assert length.value == pytest.approx(0.3)
    share = next(e for e in finding.evidence if e.signal == "pause.share")
    assert share.value == pytest.approx(15 * 0.3 / 50)
    # Garwood (1936): of 15 that were counted 8.40 to 24.74 are to be expected
    assert share.low == pytest.approx(8.40 * 0.3 / 50, rel=0.01)
    assert share.high == pytest.approx(24.74 * 0.3 / 50, rel=0.01)


def test_other_times_give_the_same_finding() -> None:
    finding = assess_after(run([3 * at for at in IRREGULAR], 0.9, scale=3.0), [])

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG


def test_pauses_at_a_period_are_the_other_rules() -> None:
    assert isinstance(assess_after(run(regular(2.3), 0.3), []), Absent)


@pytest.mark.parametrize("rule", ["eventloop.blocked", "threads.pool-limit", "db.pool", "cgroup.throttled"])
def test_what_was_found_and_makes_gaps_explains_them(rule: str) -> None:
    answer = assess_after(run(IRREGULAR, 0.3), [other(rule)])

    assert isinstance(answer, Absent)
    assert rule in answer.reason


def test_a_machine_that_others_used_is_judged_in_these_trials_alone() -> None:
    # 1 % of the machine's time at some level is a finding, and explains no second without an answer.
    assert isinstance(assess_after(run(IRREGULAR, 0.3), [other("host.interference")]), Finding)


def test_one_at_the_same_moment_of_each_trial_is_the_trials() -> None:
    # A trial begins every 14 s; the moments differ by 0.1 s, and then by far more.
    same = assess_after(run([2.0, 16.1, 30.0, 44.1], 0.3, lives=True), [])
    apart = assess_after(run([2.0, 19.1, 36.0, 43.1], 0.3, lives=True), [])

    assert isinstance(same, Absent)
    assert isinstance(apart, Finding)


def test_readings_of_metrics_at_their_beginning_make_them_a_suspicion() -> None:
    built = run([at for at in IRREGULAR if at > 56], 0.3)
    (watch,) = built.dense[0].standstills
    begins = tuple(stop.begin_s for stop in watch.stops)
    read = replace(built.dense[0], standstills=(replace(watch, scrapes_s=begins),))

    finding = assess_after(replace(built, dense=(read,)), [])

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_a_mere_suspicion_or_another_curves_cause_explains_nothing() -> None:
    suspected = other("eventloop.blocked", grade=Grade.SUSPECTED)

    assert isinstance(assess_after(run(IRREGULAR, 0.3), [suspected]), Finding)
    assert isinstance(assess_after(run(IRREGULAR, 0.3), [other("eventloop.blocked", curve="k=9")]), Finding)


def test_a_full_processor_at_the_highest_levels_explains_nothing_at_the_light_ones() -> None:
    assert isinstance(assess_after(run(IRREGULAR, 0.3), [other("cpu.saturated")]), Finding)


def test_gaps_where_requests_queue_do_not_count() -> None:
    crowded = [at for at in IRREGULAR if 14 < at < 52]  # the levels beyond one user

    answer = assess_after(run(crowded, 0.3, queued=True), [])

    assert isinstance(answer, Absent)
    assert answer.reason.startswith("no stretch of 85.0 ms or more")


def test_short_gaps_are_the_machines() -> None:
    assert isinstance(assess_after(run(IRREGULAR, 0.07), []), Absent)


def test_three_pauses_are_a_suspicion() -> None:
    finding = assess_after(run(IRREGULAR[:3], 0.3), [])

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED
    assert "at no period" not in finding.explanation


def test_a_single_pause_is_nothing() -> None:
    answer = assess_after(run(IRREGULAR[:1], 0.3), [])

    assert isinstance(answer, Absent)
    assert answer.reason.startswith("one stretch of 302 ms")


def with_stop(watched: Step, length: float) -> Step:
    """The same trial with a stretch of that length in its middle."""
    (watch,) = watched.standstills
    middle = (watch.begin_s + watch.end_s) / 2
    return replace(
        watched, standstills=(replace(watch, stops=(Standstill(middle, middle + length, False),)),)
    )


def test_short_gaps_of_other_trials_make_it_no_surer() -> None:
    four = [1.0, 2.1, 5.9, 6.6]  # all in the first trial, which alone supports no more than probable
    steps = run(four, 0.3, dense=False).curves[0].steps
    built = Facts(4, (curve(steps[0], with_stop(steps[1], 0.06), with_stop(steps[2], 0.06), think=0.0),))

    finding = assess_after(built, [])

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_a_busy_neighbour_is_not_excluded() -> None:
    built = run(IRREGULAR, 0.3)
    crowded = [replace(s, other_cores=1.5) for s in built.curves[0].steps]

    finding = assess_after(Facts(4, (replace(built.curves[0], steps=tuple(crowded)),), (), built.dense), [])

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


@pytest.mark.parametrize(
    ("steal", "expected"),
    [(0.01, Finding), (0.02, Finding), (0.04, Absent)],
    ids=["little", "some", "as long"],
)
def test_time_that_other_machines_took_in_the_dense_look_explains_them(steal: float, expected: type) -> None:
    # Four of 0.302 s in 10 s of 4 cores: 0.03 of these is as long.
    built = run([at for at in IRREGULAR if at > 56], 0.3)
    looked = tuple(replace(s, steal=steal) for s in built.dense)

    answer = assess_after(replace(built, dense=looked), [])

    assert isinstance(answer, expected)
    others = [c for c in getattr(answer, "counter", ()) if c.rival == "other machines on the host"]
    assert [c.ruled_out for c in others] == {0.01: [True], 0.02: [None], 0.04: []}[steal]


def test_a_trial_that_would_have_shown_long_standstills_alone_is_not_counted() -> None:
    built = run([], 0.3, trials=1)
    (watch,) = built.curves[0].steps[0].standstills
    blunt = replace(built.curves[0].steps[0], standstills=(replace(watch, shortest_s=0.55),))

    answer = assess_after(replace(built, curves=(replace(built.curves[0], steps=(blunt,)),)), [])

    assert isinstance(answer, Absent)
    assert answer.reason.startswith("no stretch of 85.0 ms or more without an answer in 10 s at a light load")


def test_stretches_shorter_than_any_trial_would_show_are_no_finding() -> None:
    built = run(IRREGULAR, 0.3)

    def blunt(step: Step) -> Step:
        return replace(step, standstills=tuple(replace(w, shortest_s=0.55) for w in step.standstills))

    curves = tuple(replace(curve, steps=tuple(map(blunt, curve.steps))) for curve in built.curves)
    answer = assess_after(replace(built, curves=curves, dense=tuple(map(blunt, built.dense))), [])

    assert isinstance(answer, Absent)


def test_without_rows_of_requests_nothing_is_assessed() -> None:
    assert isinstance(assess_after(Facts(4, ()), []), NotAssessed)
