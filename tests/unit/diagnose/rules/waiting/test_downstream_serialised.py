"""A line that no gauge names, by probe, CPU and the curve; rates are by the bounds of a closed loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.waiting import downstream_serialised
from loadlens.model.facts import Curve, FailureMode, QuotaWatch, Step
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from loadlens.model.shapes import Spacing
from tests.unit.diagnose.build import UNWATCHED, blocked, estimate, facts, process
from tests.unit.diagnose.parts import split
from tests.unit.diagnose.waiting import probe, renamed, waiting


def answer(built: Curve) -> Finding | Absent | NotAssessed:
    return downstream_serialised.assess_after(facts(built), [])


def assessed(built: Curve) -> Finding:
    finding = answer(built)
    assert isinstance(finding, Finding)
    return finding


def silence(built: Curve) -> str:
    absent = answer(built)
    assert isinstance(absent, Absent)
    return absent.reason


def with_probe(built: Curve, mean: float = 0.002, **more: Any) -> Curve:
    steps = tuple(replace(s, probes=(probe(mean, **more),)) for s in built.steps)
    return replace(built, steps=steps)


def test_a_probe_that_does_not_wait_beside_a_full_service_that_does_not_compute() -> None:
    finding = assessed(waiting(0.02))

    assert finding.grade is Grade.PROBABLE
    expected = (
        "Requests wait in a line, in the service or behind it: 50.0 /s, 1.5 at work at once"  # 50/s x 30 ms
    )
    assert finding.statement == expected
    assert finding.impact == pytest.approx(1 - 0.03 / 0.64)


@pytest.mark.parametrize(("failed", "grade"), [(0.09, Grade.PROBABLE), (0.11, Grade.SUSPECTED)])
def test_where_a_tenth_of_the_requests_fail_the_line_is_only_suspected(failed: float, grade: Grade) -> None:
    built = waiting(0.02)
    *lower, top = built.steps
    assert top.issued is not None
    failing = replace(top, failed_count=round(failed * top.issued))

    assert assessed(replace(built, steps=(*lower, failing))).grade is grade


@pytest.mark.parametrize(
    ("spacing", "is_apart"),
    [
        (Spacing(0, 73), True),  # 0.95 ** 73 = 0.024
        (Spacing(0, 71), False),  # 0.95 ** 71 = 0.026
        (Spacing(118, 300), False),  # exponential times: 1 - exp(-1/2) = 39 %
        (Spacing(), False),
    ],
)
def test_answers_that_keep_apart_passed_one_at_a_time(spacing: Spacing, is_apart: bool) -> None:
    finding = assessed(waiting(0.02, spacing=spacing))

    expected = "Requests pass one at a time, 20.0 ms each: 50.0 /s"
    assert (finding.statement == expected) is is_apart
    assert any(e.signal == "answers.apart" for e in finding.evidence) is is_apart


def test_from_outside_the_whole_machine_speaks_for_the_cpu() -> None:
    assert assessed(waiting(0.02, watched=False)).grade is Grade.PROBABLE
    busy = assessed(waiting(0.02, watched=False, cpu=1.0))  # a process computes, which one is not known
    assert busy.grade is Grade.SUSPECTED


def test_elsewhere_nothing_is_known_of_the_cpu() -> None:
    away = replace(waiting(0.02, watched=False), is_here=False)

    assert assessed(away).grade is Grade.SUSPECTED


def test_other_names_and_times_give_the_same_finding() -> None:
    before = assessed(waiting(0.02))

    assert assessed(renamed(waiting(0.02))).grade is before.grade
    assert assessed(waiting(0.2, base_s=0.1)).impact == pytest.approx(before.impact)


def test_a_probe_that_waits_with_the_load_is_behind_the_same_line() -> None:
    assert "1.00 of what b waits" in silence(waiting(0.02, coupling=1.0))


@pytest.mark.parametrize(("coupling", "is_found"), [(0.15, False), (0.25, False), (0.0, True)])
def test_probes_that_wait_a_little_are_held_up_and_decide_nothing(coupling: float, is_found: bool) -> None:
    assert isinstance(answer(waiting(0.02, coupling=coupling)), Finding) is is_found


def test_the_lowest_level_of_the_plateau_decides_where_threads_fill_up_later() -> None:
    built = waiting(0.02)
    late = replace(built.steps[-1], probes=(probe(0.4, delayed=1.0),))

    assert isinstance(answer(replace(built, steps=(*built.steps[:-1], late))), Finding)


def test_threads_that_share_a_core_hold_up_too_many_probes() -> None:
    shared = with_probe(waiting(0.02, watched=False), mean=0.03, delayed=0.4)

    assert isinstance(answer(shared), Absent)


@pytest.mark.parametrize(("at_rest", "is_found"), [(0.35, True), (0.1, False)])
def test_probes_that_others_hold_up_at_any_load_are_not_counted(at_rest: float, is_found: bool) -> None:
    """Of the probes 40 % are held up under load: 5 % more than at the lightest load, or 30 %."""
    built = with_probe(waiting(0.02), mean=0.002, delayed=0.4)
    first = replace(built.steps[0], probes=(probe(0.002, delayed=at_rest),))

    assert isinstance(answer(replace(built, steps=(first, *built.steps[1:]))), Finding) is is_found


def test_computing_and_waiting_for_a_core_are_no_line() -> None:
    assert "computes" in silence(waiting(0.02, processes=(process(0.5, waiting=5.0, hot=8),)))


@pytest.mark.parametrize(
    ("machine", "grade", "words"),
    [
        (1.5, Grade.SUSPECTED, "the CPU of 1 of 2 processes was not read"),
        (0.5, Grade.PROBABLE, "1 of 2 processes were not read, they and other programs use 0.40 of 4"),
    ],
)
def test_cpu_that_was_not_read_is_no_room_unless_the_machine_is_idle(
    machine: float, grade: Grade, words: str
) -> None:
    """A trial shorter than two readings: the process is known, what it computed is not."""
    unread = replace(process(0.05), cpu=UNWATCHED, occupied=UNWATCHED)

    host = estimate(machine, unit="cores")
    finding = assessed(waiting(0.02, host_cpu=host, processes=(process(0.05), unread)))

    assert finding.grade is grade
    assert any(words in e.text for e in finding.evidence)


@pytest.mark.parametrize(("program", "grade"), [("postgres", Grade.PROBABLE), ("worker", Grade.SUSPECTED)])
def test_a_process_of_a_moment_is_like_those_of_its_program(program: str, grade: Grade) -> None:
    """Of a database's processes some begin or end in the trial: the others show what they do."""
    read = replace(process(0.05), program="postgres")
    unread = replace(process(0.05), cpu=UNWATCHED, occupied=UNWATCHED, program=program)

    host = estimate(1.5, unit="cores")
    finding = assessed(waiting(0.02, host_cpu=host, processes=(read, unread)))

    assert finding.grade is grade


@pytest.mark.parametrize(("used", "grade"), [(0.8, Grade.PROBABLE), (1.0, Grade.SUSPECTED)])
def test_a_full_thread_may_hide_among_helpers(used: float, grade: Grade) -> None:
    """A quarter of 4 cores: a loop next to its collector, or threads of which a lock lets one compute."""
    built = waiting(0.02, processes=(process(used, hot=8),))

    assert assessed(built).grade is grade


def test_a_process_that_computes_on_several_cores_hides_no_full_thread() -> None:
    assert assessed(waiting(0.02, processes=(process(1.6, hot=8),))).grade is Grade.PROBABLE


def test_a_quota_that_stops_the_service_is_no_line() -> None:
    share = Estimate("t", "share", 0.3, 0.25, 0.35, 3, 0, "built")
    quota = QuotaWatch("q", 0.5, 0.1, UNWATCHED, share, UNWATCHED)

    assert "its quota stops it in 30 % of the periods" in silence(waiting(0.02, quotas=(quota,)))


def test_a_full_machine_is_no_line() -> None:
    assert "full machine" in silence(waiting(0.02, host_cpu=estimate(3.7, unit="cores")))


def test_what_the_hypervisor_takes_leaves_a_machine_full_with_less() -> None:
    """3.5 of 4 cores are used and a twentieth of the machine, 0.2 cores, is stolen: 3.6 fill it."""
    nearly = estimate(3.5, unit="cores")

    assert isinstance(answer(waiting(0.02, host_cpu=nearly)), Finding)
    assert "0.20 are stolen" in silence(waiting(0.02, host_cpu=nearly, steal=0.05))


def refusing(built: Curve, *, after_s: float, status: int = 503) -> Curve:
    top: Step = built.steps[-1]
    mode = FailureMode("b", "unexpected_status", status, 900, after_s, 0.9, 0.6)
    return replace(built, steps=(*built.steps[:-1], replace(top, failures=(mode,), failed_count=900)))


def test_who_is_refused_at_once_does_not_wait() -> None:
    assert "refusals" in silence(refusing(waiting(0.02), after_s=0.001))


def test_a_time_out_after_a_long_wait_is_no_refusal() -> None:
    assert isinstance(answer(refusing(waiting(0.02), after_s=0.55)), Finding)
    assert isinstance(answer(refusing(waiting(0.02), after_s=0.55, status=500)), Finding)


def test_a_breaker_refuses_with_another_status() -> None:
    """30 % of the requests are answered 502 within 1 ms, half of the successes within 600."""
    assert "refused with 502" in silence(refusing(waiting(0.02), after_s=0.001, status=502))


def test_slow_errors_hide_no_fast_refusals_beside_them() -> None:
    """900 of 3,000 end with 502 after a long wait, 100 more with 503 at once: 3.3 % are refused."""
    built = refusing(waiting(0.02), after_s=0.55, status=502)
    (slow,) = built.steps[-1].failures
    both = (slow, replace(slow, status=503, count=100, median_s=0.001))
    top = replace(built.steps[-1], failures=both)

    assert "3.3 % of the requests are refused with 503" in silence(
        replace(built, steps=(*built.steps[:-1], top))
    )


def test_fast_errors_that_were_there_without_load_turn_nobody_away() -> None:
    """12 of 400 with one user, 3 %; 900 of 3,000 at the highest load, or 150: 5 %, less than twice."""
    built = refusing(waiting(0.02, base_s=0.03), after_s=0.001, status=500)
    (mode,) = built.steps[-1].failures

    def errors(count: int) -> Curve:
        first = replace(built.steps[0], failures=(replace(mode, count=12),))
        top = replace(built.steps[-1], failures=(replace(mode, count=count),))
        return replace(built, steps=(first, *built.steps[1:-1], top))

    assert built.steps[0].issued == 1200
    assert "refused with 500" in silence(errors(900))
    assert isinstance(answer(errors(50)), Finding)


@pytest.mark.parametrize(("size", "grade"), [(16_000.0, Grade.PROBABLE), (17_000.0, Grade.SUSPECTED)])
def test_large_answers_that_were_not_timed_may_fill_a_link(size: float, grade: Grade) -> None:
    assert assessed(waiting(0.02, answer_bytes=size)).grade is grade


def test_large_answers_that_came_at_once_fill_no_link() -> None:
    built = waiting(0.02, answer_bytes=17_000.0)
    quick = replace(built.steps[-1].classes[0], transfer=estimate(0.001))
    timed = replace(built, steps=(*built.steps[:-1], replace(built.steps[-1], classes=(quick,))))

    assert assessed(timed).grade is Grade.STRONG


def test_answers_that_take_their_time_on_the_way_are_no_line() -> None:
    built = waiting(0.02)
    slow = replace(built.steps[-1].classes[0], transfer=estimate(0.5))

    assert "slow transfer" in silence(
        replace(built, steps=(*built.steps[:-1], replace(built.steps[-1], classes=(slow,))))
    )


def test_what_a_gauge_names_is_found_by_its_name_alone() -> None:
    verdict = diagnose.assess(facts(waiting(0.02, size=4, exports="pool")))

    named = {finding.rule: finding for finding in verdict.findings}
    assert "db.pool" in named
    assert "downstream.serialised" not in named
    assert named["saturation.plateau"].explained_by == "db.pool"
    assert any(a.rule == "downstream.serialised" and a.reason == "named: db.pool" for a in verdict.absent)


def test_a_blocked_loop_is_no_line_behind_the_service() -> None:
    assert isinstance(answer(blocked(0.2)), Absent)


def test_without_a_probe_or_with_one_that_asks_what_the_load_asks_it_is_open() -> None:
    none = replace(waiting(0.02), steps=tuple(replace(s, probes=()) for s in waiting(0.02).steps))
    same = with_probe(waiting(0.02), request="POST /b")

    for built, words in ((none, "needs a probe:"), (same, "of another kind")):
        lack = answer(built)
        assert isinstance(lack, NotAssessed)
        assert words in lack.reason


def test_without_a_level_of_one_user_waits_are_not_known() -> None:
    assert isinstance(answer(waiting(0.02, users=(4, 8, 16, 32))), NotAssessed)


def test_a_service_that_still_grows_has_no_line() -> None:
    assert "no plateau" in silence(waiting(0.02, size=64))


def test_one_trial_a_level_is_enough_to_say_it() -> None:
    assert assessed(waiting(0.02, trials=1)).grade is Grade.PROBABLE


def with_calls(built: Curve, others_per_request: float) -> Curve:
    """Each request makes one call that waits for the place, 20 ms when alone, and others that take 5 ms."""
    steps = []
    for level in built.steps:
        rate = level.throughput_trials[0]
        call_s = level.load / rate - 0.01
        steps.append(replace(level, splits=(split((rate, call_s), (others_per_request * rate, 0.005)),)))
    return replace(built, steps=tuple(steps))


def test_the_step_of_every_request_where_they_wait_is_named_by_its_label() -> None:
    built = with_calls(waiting(0.02), 1.0)

    finding = assessed(built)

    assert finding.statement == 'Requests wait at upstream="b": 50.0 /s'
    # 32 users at 50/s: 640 ms, of which 10 ms are before the call.
    assert "takes 630 ms, 20.0 ms at the lightest load, the others 5.00 ms" in evidence_of(
        finding, "label.step"
    )
    assert "part.full" not in [each.rule for each in diagnose.assess(facts(built)).findings]


def test_a_label_that_names_the_load_and_the_probe_is_no_step() -> None:
    finding = assessed(with_calls(waiting(0.02), 0.1))

    assert "in a line, in the service or behind it" in finding.statement


def evidence_of(finding: Finding, signal: str) -> str:
    return next(each.text for each in finding.evidence if each.signal == signal)
