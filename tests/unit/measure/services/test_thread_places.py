"""Places that threads hold and wait for, in stacks sampled from the services of `tests/data/stacks`.

Expected numbers are those of the services: so many threads, places and users each.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from loadlens.diagnose import assess
from loadlens.diagnose.code_places import code_evidence
from loadlens.diagnose.observe import limits
from loadlens.measure.services.thread_places import places_of
from loadlens.model.facts import ConcurrencyLimit, Facts
from loadlens.model.finding import Finding, Grade
from loadlens.model.stacks import Frame, StackSamples, ThreadSample
from tests.unit.diagnose.build import curve, facts, probe, process, step

DATA = Path(__file__).parents[3] / "data" / "stacks"
USERS = 16


def recorded(name: str) -> StackSamples:
    kept = json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))
    stacks = {int(number): tuple(map(Frame.of, frames)) for number, frames in kept["stacks"].items()}
    samples = tuple(
        ThreadSample(at, 7, "service", tid, thread, bool(running), wait, stacks[stack])
        for at, tid, thread, running, wait, stack in kept["samples"]
    )
    return StackSamples(kept["users"], True, kept["begin_s"], kept["end_s"], samples, (), (), None)


def of_kind(name: str, kind: str) -> list[ConcurrencyLimit]:
    return [place for place in places_of(recorded(name)) if place.kind == kind]


def lines(name: str) -> list[ConcurrencyLimit]:
    return [place for place in places_of(recorded(name)) if limits.has_waiters(place)]


@pytest.mark.parametrize("name", ["few_threads", "in_executor", "jvm_few_threads"])
def test_a_full_pool_of_four_threads_is_seen_with_its_size(name: str) -> None:
    (threads,) = of_kind(name, "threads")

    assert limits.point(threads.bound) == 4
    assert limits.point(threads.held) == pytest.approx(4, rel=0.1)
    assert lines(name) == []


@pytest.mark.parametrize("name", ["locked", "jvm_lock", "jvm_monitor"])
def test_a_lock_has_one_holder_and_the_other_threads_wait(name: str) -> None:
    (lock,) = of_kind(name, "lock")

    assert limits.point(lock.held) == pytest.approx(1, abs=0.2)  # sometimes the next one has just woken
    assert limits.point(lock.waiting) == pytest.approx(USERS - 1, rel=0.1)


@pytest.mark.parametrize(
    ("name", "kind", "function"),
    [
        ("pooled", "pool", "QueuePool._do_get"),
        ("few_places", "unknown", "Semaphore.acquire"),
        ("jvm_places", "unknown", "Semaphore.acquire"),
    ],
)
def test_three_places_are_seen_with_the_line_before_them(name: str, kind: str, function: str) -> None:
    (pool,) = lines(name)

    assert pool.kind == kind
    assert limits.point(pool.bound) == 3
    assert limits.point(pool.held) == pytest.approx(3, rel=0.1)
    assert limits.point(pool.waiting) == pytest.approx(USERS - 3, rel=0.1)
    assert pool.waiting is not None
    assert function in pool.waiting.name
    assert "call()" in pool.held.name


@pytest.mark.parametrize("name", ["idle_threads", "enough_threads"])
def test_threads_that_are_free_or_as_many_as_users_are_no_limit(name: str) -> None:
    for threads in of_kind(name, "threads"):
        assert (limits.point(threads.held) or 0) < limits.TAKEN_UP * (limits.point(threads.bound) or 0)
    assert lines(name) == []


def test_threads_that_compute_wait_for_no_place() -> None:
    assert lines("computing") == []


# --- what rules make of them -------------------------------------------------------------------------------


def diagnosed(name: str, *, at_once: int, call_s: float = 0.05) -> tuple[Finding, ...]:
    """Return what is found where the stacks of a service go with a curve of its own physics."""
    rate = at_once / call_s
    levels = [
        replace(
            step(users, min(users, at_once) / call_s, max(call_s, users / rate)),
            processes=(process(0.1),),
            probes=(probe(0.001),),
        )
        for users in (1, 2, 4, 8, USERS)
    ]
    levels[-1] = replace(levels[-1], places=places_of(recorded(name)))
    built: Facts = facts(curve(*levels, think=0.0))
    return assess(built).findings


@pytest.mark.parametrize(
    ("name", "at_once", "call_s", "rule"),
    [
        ("few_threads", 4, 0.05, "threads.pool-limit"),
        ("in_executor", 4, 0.05, "threads.pool-limit"),
        ("jvm_few_threads", 4, 0.05, "threads.pool-limit"),
        ("locked", 1, 0.02, "db.lock"),
        ("jvm_lock", 1, 0.02, "db.lock"),
        ("jvm_monitor", 1, 0.02, "db.lock"),
        ("pooled", 3, 0.05, "db.pool"),
        ("few_places", 3, 0.05, "db.pool"),
        ("jvm_places", 3, 0.05, "db.pool"),
    ],
)
def test_the_limit_is_named_and_no_other(name: str, at_once: int, call_s: float, rule: str) -> None:
    shown = [f for f in diagnosed(name, at_once=at_once, call_s=call_s) if f.explained_by is None]

    assert [f.rule for f in shown if f.grade >= Grade.PROBABLE] == [rule]
    assert shown[0].grade is Grade.PROBABLE  # one trial of stacks is no more


def test_threads_that_wait_for_a_slow_service_are_not_the_limit() -> None:
    # 4 threads, and a service behind that takes one call at a time: throughput says 1 at once, not 4
    rules = {f.rule for f in diagnosed("few_threads", at_once=1)}

    assert "threads.pool-limit" not in rules


@pytest.mark.parametrize("name", ["pooled", "few_places", "locked", "jvm_places"])
def test_the_line_that_waits_and_the_line_that_holds_are_both_named(name: str) -> None:
    evidence = code_evidence([recorded(name)], [], is_full=True)

    waiting, holding = evidence.places

    assert waiting.kind == "works"
    assert waiting.function != "call"
    assert (holding.kind, holding.function) == ("holds", "call")


def test_two_places_are_named_where_neither_holds_most() -> None:
    """As many hold as wait: the first place has half of the samples."""
    stacks = recorded("few_places")
    holders = {s.tid for s in stacks.samples if any(f.function == "call" for f in s.stack)}
    by_moment: dict[float, list[ThreadSample]] = {}
    for sample in stacks.samples:
        by_moment.setdefault(sample.time_s, []).append(sample)
    kept = []
    for members in by_moment.values():
        inside = [s for s in members if any(f.function == "call" for f in s.stack)]
        kept += [*inside, *[s for s in members if s not in inside][: len(inside)]]

    evidence = code_evidence([replace(stacks, samples=tuple(kept))], [], is_full=True)

    assert holders
    assert [place.kind for place in evidence.places] == ["works", "holds"]
