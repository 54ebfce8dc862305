"""A loop that waits in a call: one at a time passes, and a probe waits as long as the load."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.waiting import threads_pool_limit
from loadlens.diagnose.rules.waiting.eventloop_waits import ID, assess
from loadlens.model.facts import Curve, KernelWatch, LoopWatch
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import facts
from tests.unit.diagnose.waiting import waiting

# One loop, 30 ms of it for each request, 210 ms elsewhere: 33.3/s, and 8 requests under way at the knee.


def share(point: float) -> Estimate:
    return Estimate("any", "share", point, None, None, 1, 40, "built")


def watched(held: float = 0.98, in_call: float = 1.0, others: float = 0.0, **more: Any) -> Curve:
    built = waiting(**{"hold_s": 0.03, "base_s": 0.21, "size": 1, "coupling": 1.0, "exports": None, **more})
    loop = LoopWatch(
        "python", 1, share(held), share(in_call), share(others), "db.Conn.execute", "find() a.py:7"
    )
    return replace(built, steps=(*built.steps[:-1], replace(built.steps[-1], loops=(loop,))))


def test_a_loop_that_waits_is_named_with_the_call_and_the_time_that_it_takes() -> None:
    answer = assess(facts(watched()))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE  # samples of one trial have no interval
    assert answer.statement == "The event loop waits in Conn.execute for 30.0 ms each: 33.3 /s"
    assert "find() a.py:7" in answer.advice


def test_loops_whose_code_is_not_read_are_named_by_the_other_end_of_the_call() -> None:
    built = watched(size=2, hold_s=0.05)
    loop = LoopWatch("svc", 2, share(0.9), share(1.0), None, "a blocking call to 10.0.0.7:5432", "")
    answer = assess(facts(replace(built, steps=(*built.steps[:-1], replace(built.steps[-1], loops=(loop,))))))

    assert isinstance(answer, Finding)
    assert answer.statement == (
        "2 event loops wait in a blocking call to 10.0.0.7:5432 for 50.0 ms each: 40.0 /s"  # 2 / 50 ms
    )
    assert answer.advice.startswith("Make this call asynchronous")


def test_the_loops_of_all_processes_share_the_rate() -> None:
    built = watched(size=4, hold_s=0.1)  # 4 / 100 ms: 40/s
    loop = replace(built.steps[-1].loops[0], held=share(0.95))
    loops = (loop, *(replace(loop, held=share(held)) for held in (0.96, 0.9, 0.85, 0.1)))
    answer = assess(facts(replace(built, steps=(*built.steps[:-1], replace(built.steps[-1], loops=loops)))))

    assert isinstance(answer, Finding)
    assert answer.statement == "4 event loops wait in Conn.execute for 100 ms each: 40.0 /s"
    assert any("each of 4 event loops" in e.text and "at 85 %" in e.text for e in answer.evidence), (
        "the least"
    )


def test_a_loop_that_computes_and_waits_in_turn_is_named_with_both() -> None:
    answer = assess(facts(watched(in_call=0.4, cpu=0.6)))

    assert isinstance(answer, Finding)
    assert answer.statement == "The event loop waits in Conn.execute, or computes, for 30.0 ms each: 33.3 /s"
    assert "at 40 % of the moments" in answer.explanation
    assert answer.advice.endswith("That frees 40 % of its time.")


@pytest.mark.parametrize(("unaccepted", "kind"), [(15.0, Finding), (16.0, Absent)])
def test_a_process_that_serves_one_connection_at_a_time_is_no_loop(unaccepted: float, kind: type) -> None:
    built = watched()  # 32 users at the top, of whom one is served
    kernel = KernelWatch(None, None, 0.0, 0.0, 0.0, unaccepted=unaccepted)

    assert isinstance(
        assess(facts(replace(built, steps=(*built.steps[:-1], replace(built.steps[-1], kernel=kernel))))),
        kind,
    )


def test_it_is_the_limit_and_no_pool_of_threads_is_accused() -> None:
    given = facts(watched())

    assert diagnose.assess(given).findings[0].rule == ID
    assert isinstance(threads_pool_limit.assess(given), Absent)


@pytest.mark.parametrize(
    "built",
    [
        watched(held=0.5),  # free at every other moment
        watched(in_call=0.14, cpu=0.84),  # it computes
        watched(held=0.84, in_call=0.4),  # it computes at most moments, and is free at some
        watched(others=4.0),  # the calls are made on other threads
        watched(coupling=0.05),  # others do not wait
    ],
    ids=["free", "computing", "not full", "threads", "probe"],
)
def test_near_misses_are_silent(built: Curve) -> None:
    assert isinstance(assess(facts(built)), Absent)


def test_without_samples_it_says_what_is_missing() -> None:
    built = watched()
    answer = assess(facts(replace(built, steps=tuple(replace(step, loops=()) for step in built.steps))))

    assert isinstance(answer, NotAssessed)
    assert "stacks" in answer.reason
