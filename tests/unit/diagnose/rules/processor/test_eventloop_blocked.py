"""The rule fires on a loop that computes, and stays silent on everything that looks like one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.observe.curve_signals import accepts_signal
from loadlens.diagnose.rules.processor.eventloop_blocked import ID, assess
from loadlens.model.facts import ConnectionWatch, KernelWatch, Step
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from loadlens.model.workload import MISSING_PAGE
from tests.unit.diagnose.build import (
    UNWATCHED,
    blocked,
    curve,
    facts,
    found,
    generator,
    probe,
    process,
    step,
)


def test_a_loop_that_computes_is_found_with_its_rate_and_what_a_probe_pays() -> None:
    finding = found(assess(facts(blocked(0.2))))

    assert finding.rule == ID
    assert finding.grade is Grade.STRONG
    assert "5.00 /s per process" in finding.statement  # 1 / 0.2 s
    assert "a takes 3.65 s" in finding.statement  # 20 / 5 - 0.15 - 0.2 of waiting, + 2 ms
    assert len(finding.statement) <= 90


def test_a_page_that_the_lab_made_up_is_shown_as_a_missing_one() -> None:
    def as_missing(level: Step) -> Step:
        probes = (
            replace(each, label=MISSING_PAGE, request="GET /loadlens-no-such-path") for each in level.probes
        )
        return replace(level, probes=tuple(probes))

    built = blocked(0.2)
    finding = found(assess(facts(replace(built, steps=tuple(map(as_missing, built.steps))))))

    assert "a missing page takes 3.65 s" in finding.statement
    assert "a missing page (404) takes 3.65 s" in finding.explanation
    assert not any("no-such-path" in each.text for each in finding.evidence)


def test_users_a_process_bears_are_demand_plus_think_over_demand() -> None:
    assert "From 1.8 users per process on" in found(assess(facts(blocked(0.2)))).explanation  # 0.35 / 0.2


def test_two_processes_bear_twice_as_many_and_each_is_named() -> None:
    finding = found(assess(facts(blocked(0.2, k=2))))

    assert "From 1.8 users per process on" in finding.explanation
    assert "each of 2 working processes" in finding.evidence[0].text


def test_processes_that_already_use_all_cores_are_said_to() -> None:
    finding = found(assess(facts(replace(blocked(0.2, k=4), cores_allotted=4.0), cores=8)))

    assert "cores are full as well" in finding.explanation


def test_a_request_that_queues_twice_is_still_a_blocked_loop_and_its_passes_are_told() -> None:
    finding = found(assess(facts(blocked(0.2, passes=2.0))))

    assert finding.grade is Grade.STRONG
    assert any("queue 2.0 times" in text for text in finding.unknown)


def test_one_trial_a_case_is_never_more_than_probable() -> None:
    assert found(assess(facts(blocked(0.2, trials=1)))).grade is Grade.PROBABLE


def test_generator_and_service_that_fill_their_cores_keep_it_at_probable() -> None:
    shared = blocked(0.2, k=2, generator=generator(cpu_cores=0.2))

    assert found(assess(facts(shared, cores=2))).grade is Grade.PROBABLE
    assert found(assess(facts(replace(shared, shares_cores=False), cores=2))).grade is Grade.STRONG


def test_more_processes_than_cores_share_them_and_are_occupied_all_the_same() -> None:
    crowded = tuple(process(0.5, waiting=0.48, label=f"p{i}") for i in range(4))

    assert isinstance(assess(facts(blocked(0.2, processes=crowded), cores=2)), Finding)


@pytest.mark.parametrize(
    ("why", "bent"),
    [
        ("occupied 0.02", {"processes": (process(0.02),)}),  # a lock, or a pool of threads that wait
        (
            "does 12 % of its process's work",
            {"processes": (process(0.95, hot=8),)},
        ),  # threads that share the cores
        ("0.09 of what", {"probes": (probe(0.002 + 0.09 * 3.65, delayed=0.9),)}),  # the kernel switches
        ("30 % of probes", {"probes": (probe(1.5, delayed=0.3),)}),  # pauses hold up few
        ("sent late", {"probes": (probe(3.65, late=True),)}),
    ],
)
def test_a_near_miss_stays_silent_and_says_the_number(why: str, bent: dict[str, Any]) -> None:
    answer = assess(facts(blocked(0.2, **bent)))

    assert isinstance(answer, Absent)
    assert why in answer.reason


def test_a_database_that_computes_for_a_loop_is_none() -> None:
    """At a third of a core it would be the working process that computes least."""
    store = replace(process(0.3), service="store", is_called=True)

    assert isinstance(assess(facts(blocked(0.2, processes=(process(1.0), store)))), Finding)


def test_with_an_open_load_or_few_users_nothing_is_said_of_connections() -> None:
    kernel = KernelWatch(None, None, 0.0, 0.0, 0.0, unaccepted=50.0)
    full = blocked(0.2, kernel=kernel)
    few = replace(full, steps=(full.steps[0], replace(full.steps[1], kernel=kernel)))

    assert accepts_signal(replace(full, is_closed=False), full.steps[-1], 1, 0.2) == []
    assert accepts_signal(few, few.steps[-1], 2, 0.2) == []  # 5 users, of whom 2 are served


def test_a_process_without_load_at_the_highest_level_answers_probes_at_once() -> None:
    """Few connections over three loops: two have all of them, a third of the probes meets the third."""
    loops = (process(1.0, label="p0"), process(1.0, label="p1"), process(0.001, label="p2"))
    uneven = blocked(0.2, k=3, processes=loops, probes=(probe(2.6, delayed=0.66),))

    assert isinstance(assess(facts(uneven)), Finding)
    assert isinstance(assess(facts(replace(uneven, steps=(uneven.steps[0], uneven.steps[2])))), Absent)


def test_threads_of_one_process_that_want_several_cores_are_no_loop() -> None:
    """A core that many threads share: none of them is hot but one, by chance."""
    shared = (process(0.98, waiting=6.5, hot=1),)

    answer = assess(facts(blocked(0.2, processes=shared)))

    assert isinstance(answer, Absent)
    assert "want 7.5 cores" in answer.reason


def test_work_below_two_milliseconds_is_not_told_from_fair_sharing() -> None:
    answer = assess(facts(blocked(0.001, think=0.001)))

    assert isinstance(answer, Absent)
    assert "1.00 ms" in answer.reason


def test_a_late_generator_only_keeps_it_from_being_strong_when_the_probe_was_in_time() -> None:
    late = generator(verdict="late", lag_p99_s=0.5)

    assert found(assess(facts(blocked(0.2, generator=late)))).grade is Grade.PROBABLE


def test_a_generator_that_waited_for_a_core_but_sent_in_time_is_ruled_out() -> None:
    waited = generator(verdict="starved", lag_p99_s=0.0009)  # limit 1 ms

    assert found(assess(facts(blocked(0.2, generator=waited)))).grade is Grade.STRONG


@pytest.mark.parametrize(
    ("missing", "bent"),
    [("needs a probe", {"probes": ()}), ("needs the CPU", {"processes": ()})],
)
def test_a_missing_signal_is_named_with_how_to_get_it(missing: str, bent: dict[str, Any]) -> None:
    whole = blocked(0.2)

    answer = assess(facts(replace(whole, steps=tuple(replace(level, **bent) for level in whole.steps))))

    assert isinstance(answer, NotAssessed)
    assert missing in answer.reason


def test_without_the_cpu_of_a_request_it_is_not_assessed() -> None:
    full = step(20, 5.0, 3.85, probes=(probe(3.65),), processes=(process(1.0),))

    assert isinstance(assess(facts(curve(full, work=UNWATCHED))), NotAssessed)


def test_unread_threads_leave_it_suspected_and_the_words_say_may() -> None:
    finding = found(assess(facts(blocked(0.2, processes=(process(1.0, hot=None),)))))

    assert finding.grade is Grade.SUSPECTED
    assert "may block" in finding.statement


def test_the_curve_with_the_fewest_processes_speaks_and_the_scope_names_all() -> None:
    single = blocked(0.2)
    two = replace(blocked(0.2, k=2), label="k=2")

    finding = found(assess(facts(two, single)))

    assert finding.curves == ("k=2", "k=1")
    assert "5.00 /s per process" in finding.statement


@pytest.mark.parametrize(("busiest", "kind"), [(0.67, Finding), (0.66, Absent)])
def test_a_helper_beside_the_loop_does_not_hide_it(busiest: float, kind: type) -> None:
    """A collector or a compiler of the runtime is hot as well; threads that share the work are no helpers."""
    helped = (replace(process(1.1, hot=2), busiest_thread=busiest),)

    assert isinstance(assess(facts(blocked(0.2, processes=helped))), kind)


@pytest.mark.parametrize(
    ("waiting", "bound", "kind"),
    [
        (9.0, None, Finding),
        (10.0, None, Absent),
        (5.0, 5.0, Finding),
        (6.0, 5.0, Absent),
        (6.0, 128.0, Finding),
    ],
)
def test_a_process_that_serves_one_connection_at_a_time_is_no_loop(
    waiting: float, bound: float | None, kind: type
) -> None:
    """Of 20 users one is served; a loop would have accepted the 19 others. A queue of 5 holds one more."""
    kernel = KernelWatch(None, bound, 0.0, 0.0, 0.0, unaccepted=waiting)

    assert isinstance(assess(facts(blocked(0.2, kernel=kernel))), kind)


@pytest.mark.parametrize(("served", "kind"), [(1, Absent), (2, Absent), (3, Finding), (20, Finding)])
def test_a_loop_that_accepts_one_connection_a_round_serves_several_in_turns(served: int, kind: type) -> None:
    """Node's does: 19 of 20 wait, and the others are served one after the other; a worker would have one."""
    kernel = KernelWatch(None, None, 0.0, 0.0, 0.0, unaccepted=19.0)
    used = ConnectionWatch(opened=20, closed_by_server=0, answered=300, lasting=20, served=served)

    assert isinstance(assess(facts(blocked(0.2, kernel=kernel, connections=used))), kind)


def test_connections_of_probes_that_come_while_a_loop_computes_wait_as_well() -> None:
    """3,000 probes while 300 requests of 0.2 s are served one after the other: 10 during each."""
    long = blocked(0.2, kernel=KernelWatch(None, None, 0.0, 0.0, 0.0, unaccepted=10.0))
    often = replace(long.steps[-1].probes[0], count=3_000)
    steps = (*long.steps[:-1], replace(long.steps[-1], probes=(often,)))

    assert isinstance(assess(facts(replace(long, steps=steps))), Finding)


def test_threads_that_take_turns_to_compute_are_no_loop() -> None:
    """A thread that accepts is hot, forty that do the work in turns are not: each does a fortieth."""
    shared = (replace(process(0.98, hot=1), busiest_thread=0.08),)

    answer = assess(facts(blocked(0.2, processes=shared)))

    assert isinstance(answer, Absent)
    assert "8.0 % of its process's work" in answer.reason


def test_a_probe_that_was_sent_in_time_speaks_before_a_late_one() -> None:
    late = replace(probe(3.9, late=True), label="z")

    finding = found(assess(facts(blocked(0.2, probes=(probe(3.65), late)))))

    assert "a takes 3.65 s" in finding.statement


def test_nothing_is_said_of_ends_that_nobody_knows() -> None:
    busy = process(1.0)
    single = replace(
        busy, occupied=Estimate("o", "cores", 1.0, None, None, 1, 0, "difference of two readings")
    )

    text = found(assess(facts(blocked(0.2, processes=(single,))))).evidence[0].text

    assert text == "the working process is occupied 1.00 of the time (limit 0.85)"


def test_a_level_at_which_no_probe_waited_is_not_told_as_endless() -> None:
    built = blocked(0.2, passes=2.0)
    quiet = replace(built.steps[1], probes=(probe(0.001, idle=0.002),))

    finding = found(assess(facts(replace(built, steps=(built.steps[0], quiet, built.steps[2])))))

    assert any("queue 2.0 times" in text for text in finding.unknown)
    assert not any("inf" in text for text in finding.unknown)
