"""The rule fires where processes fill one core each and leave others idle, and stays silent elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.processor.cpu_one_core import assess_after
from loadlens.model.facts import Curve
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import (
    after_loops,
    blocked,
    curve,
    estimate,
    facts,
    found,
    generator,
    process,
    step,
)

WORK_S = 0.001


def one_at_a_time(
    *, count: int = 1, hot: int | None = 1, trials: int = 3, work_s: float = WORK_S, **last: Any
) -> Curve:
    """Threads that take turns to compute 1 ms per request: X = min(N, count) / D."""
    steps = []
    for users in (1, 4, 16, 64):
        busy = min(float(users), float(count))
        rate = busy / WORK_S
        each = tuple(process(0.98 * busy / count, hot=hot, label=f"p{n}") for n in range(count))
        at = step(users, rate, users / rate, trials=trials, processes=each)
        steps.append(replace(at, host_cpu=estimate(count + 0.1, unit="cores")))
    steps[-1] = replace(steps[-1], **last)
    return curve(*steps, work=estimate(0.98 * work_s, trials=trials), think=0.0)


def ask(built: Curve, *, cores: int = 4) -> Finding | Absent | NotAssessed:
    return assess_after(facts(built, cores=cores), ())


@pytest.mark.parametrize(
    ("hot", "grade"),
    [(0, Grade.PROBABLE), (1, Grade.STRONG), (16, Grade.PROBABLE), (None, Grade.PROBABLE)],
)
def test_a_process_that_fills_one_of_four_cores_is_found_however_many_threads_take_turns(
    hot: int | None, grade: Grade
) -> None:
    """Several that compute as much as one core may do so by chance, and wait for something else."""
    finding = found(ask(one_at_a_time(hot=hot)))

    assert finding.grade is grade
    assert finding.statement.startswith(
        "The process computes on one core at a time, and that core is full: 1,000 /s"
    )
    assert "each brings 1,020 /s, 4 cores at most 4,082 /s" in finding.advice  # 1 / 0.98 ms, 4 / 0.98 ms


def test_three_such_processes_on_four_cores_are_found_and_four_are_full_cores() -> None:
    assert isinstance(ask(one_at_a_time(count=3)), Finding)
    assert isinstance(ask(one_at_a_time(count=4)), Absent)


@pytest.mark.parametrize(
    "last",
    [
        {"processes": (process(0.84),)},  # limit 0.85 of a core
        {"processes": (process(1.3, hot=2),)},  # limit 1.25: threads compute side by side
        # of 4 cores 3.48 are wanted, limit 3.4, and all programs use as many
        {"processes": (process(0.98, waiting=2.5),), "host_cpu": estimate(3.48, unit="cores")},
    ],
    ids=["idle", "two at once", "waits for cores"],
)
def test_what_is_no_full_core_of_each_process_is_absent(last: dict[str, Any]) -> None:
    assert isinstance(ask(one_at_a_time(**last)), Absent)


def test_threads_that_wait_for_a_core_each_time_they_hand_over_leave_cores_idle() -> None:
    busy: dict[str, Any] = {
        "processes": (process(0.98, waiting=2.5),),
        "host_cpu": estimate(1.1, unit="cores"),
    }

    assert isinstance(ask(one_at_a_time(**busy)), Finding)


def test_threads_that_want_more_cores_than_there_are_must_fill_one() -> None:
    busy: dict[str, Any] = {
        "processes": (process(0.88, waiting=3.0),),
        "host_cpu": estimate(1.1, unit="cores"),
    }

    answer = ask(one_at_a_time(work_s=0.0009, **busy))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


@pytest.mark.parametrize(
    ("work_s", "expected"),
    [
        (0.00075, None),
        (0.00080, Grade.SUSPECTED),
        (0.00095, Grade.STRONG),
        (0.00123, Grade.SUSPECTED),
        (0.0014, None),
    ],
)
def test_the_cpu_time_of_a_request_must_fill_the_core_at_this_rate(
    work_s: float, expected: Grade | None
) -> None:
    """1,000 requests/s of 0.98 x work: 0.735, 0.784, 0.931, 1.205 and 1.37 cores."""
    answer = ask(one_at_a_time(work_s=work_s))

    assert (answer.grade if isinstance(answer, Finding) else None) is expected


@pytest.mark.parametrize(("high_s", "grade"), [(0.00086, Grade.PROBABLE), (0.00084, Grade.SUSPECTED)])
def test_the_interval_of_the_cpu_time_may_reach_the_core(high_s: float, grade: Grade) -> None:
    """0.80 ms of 1,000 requests/s fill 0.80 of a core; the limit is 0.85."""
    built = one_at_a_time()
    work = replace(estimate(0.0008), low=0.0007, high=high_s)

    assert found(ask(replace(built, work=work, work_all=work))).grade is grade


def test_threads_that_do_less_the_more_they_are_still_fill_the_core() -> None:
    """The best level shows what the CPU time of a request allows."""
    less = (0.7 / WORK_S,) * 3

    finding = found(ask(one_at_a_time(completed_trials=less, throughput_trials=less)))

    assert finding.grade >= Grade.PROBABLE


def one_of_two(*busy: float) -> Curve:
    """A process that waits for another one, which uses so much of a core at each level: X = busy / D."""
    steps = []
    for users, used in zip((1, 4, 16, 64), busy, strict=True):
        rate = used / WORK_S
        both = (process(used, hot=1, label="b"), process(0.4 * used, hot=1, label="a"))
        at = step(users, rate, users / rate, processes=both)
        steps.append(replace(at, host_cpu=estimate(1.4 * used + 0.1, unit="cores")))
    return curve(*steps, work=estimate(1.4 * WORK_S), think=0.0)


def test_the_only_full_process_of_several_is_named_where_it_is_full_on_the_whole_plateau() -> None:
    finding = found(ask(one_of_two(0.2, 0.7, 0.98, 0.98), cores=2))

    assert finding.grade >= Grade.PROBABLE
    assert finding.statement.startswith("One of 2 processes (")
    assert "1.00 ms of CPU per request fill 1 core" in finding.evidence[4].text
    assert isinstance(ask(one_of_two(0.2, 0.7, 0.98, 0.88), cores=2), Absent)  # 0.9 at each level
    assert isinstance(ask(one_of_two(0.2, 0.5, 0.7, 0.98), cores=2), Absent)


def helped(
    *threads: float, helpers: float = 0.5, occupied: float = 0.97, host: float = 1.55, rates: Any = None
) -> Curve:
    """One thread, which uses so much of a core at each level, and helpers with half a core: X = busy / D."""
    steps = []
    for users, thread, of in zip((1, 2, 4, 8), threads, rates or threads, strict=True):
        each = replace(
            process(thread + helpers, waiting=0.6, hot=5),
            busiest_thread=thread / (thread + helpers),
            busiest_occupied=occupied,
        )
        at = step(users, of / WORK_S, users * WORK_S / of, processes=(each,))
        steps.append(replace(at, host_cpu=estimate(host, unit="cores")))
    return curve(*steps, work=estimate(0.6 * WORK_S), think=0.0, cores_allotted=2.0)


def test_a_full_thread_is_named_whatever_the_collectors_of_its_runtime_compute_on_other_cores() -> None:
    """1.38 of 2 cores in all, as a server of one thread does with garbage that four others collect."""
    finding = found(ask(helped(0.5, 0.8, 0.88, 0.88), cores=2))

    assert finding.grade is Grade.PROBABLE
    assert finding.statement.startswith("One thread does most of the work, and is full: 880 /s")
    # 0.8 cores of the thread at 800/s; with 0.5 of 0.88 + 0.5 cores besides: 2 cores / 1.57 ms.
    assert "each brings 1,000 /s, 2 cores at most 1,275 /s" in finding.advice


@pytest.mark.parametrize(
    "built",
    [
        pytest.param(helped(0.5, 0.7, 0.8, 0.8), id="the thread has time: limit 0.85"),
        pytest.param(helped(0.5, 0.8, 0.88, 0.88, helpers=0.9), id="others do more than it"),
        pytest.param(helped(0.88, 0.88, 0.88, 0.88, rates=(0.1, 0.3, 0.88, 0.88)), id="it spins at any rate"),
        pytest.param(helped(0.5, 0.8, 0.88, 0.88, host=1.8), id="the machine is full"),
    ],
)
def test_a_thread_with_helpers_that_is_not_full_or_not_alone_is_no_limit(built: Curve) -> None:
    assert isinstance(ask(built, cores=2), Absent)


def test_a_thread_that_neither_computes_nor_waits_for_a_core_nearly_all_the_time_is_suspected() -> None:
    finding = found(ask(helped(0.5, 0.8, 0.88, 0.88, occupied=0.89), cores=2))

    assert finding.grade is Grade.SUSPECTED


def test_more_computing_with_more_users_leaves_it_open() -> None:
    *lower, top = one_at_a_time().steps
    growing = replace(one_at_a_time(), steps=(*lower, replace(top, processes=(process(1.15, hot=0),))))

    assert found(ask(growing)).grade is Grade.PROBABLE


def test_a_blocked_event_loop_is_named_as_such() -> None:
    """It computes 200 ms per request, and every probe waits: the other rule says more."""
    assert isinstance(after_loops(assess_after, blocked()), Absent)


def test_a_late_generator_leaves_it_probable() -> None:
    late = generator(verdict="late", lag_p99_s=0.02)

    assert found(ask(one_at_a_time(generator=late))).grade is Grade.PROBABLE


def test_unwatched_processes_are_not_assessed() -> None:
    assert isinstance(ask(curve(step(1, 10, 0.1), step(4, 10, 0.4), think=0.0)), NotAssessed)
