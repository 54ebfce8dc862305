"""Places that threads hold and wait for, in stacks sampled from the services of `tests/data/stacks`.

Expected numbers are those of the services: so many threads, places and users each.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from loadlens.diagnose import assess
from loadlens.diagnose.code_places import code_evidence
from loadlens.diagnose.observe import limits
from loadlens.measure.services.thread_places import (
    crowd_of,
    handshakes_of,
    locked_of,
    logging_of,
    places_of,
)
from loadlens.model.facts import ConcurrencyLimit, Facts
from loadlens.model.finding import Finding, Grade
from loadlens.model.stacks import TASKS_FROM, Frame, StackSamples, ThreadSample, Wait
from tests.unit.diagnose.build import curve, facts, probe, process, step

DATA = Path(__file__).parents[3] / "data" / "stacks"
USERS = 16
RUNS, MOST_ALARMS = 200, 11  # of 200 with a chance of 0.025 each, 12 or more come once in 200 times


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


def test_workers_that_wait_for_events_while_nothing_is_asked_are_a_pool() -> None:
    stacks = recorded("few_threads")
    samples = tuple(replace(s, wait="events") if s.time_s < 0 else s for s in stacks.samples)

    (threads,) = [p for p in places_of(replace(stacks, samples=samples)) if p.kind == "threads"]

    assert limits.point(threads.bound) == 4


def test_threads_of_two_executors_are_two_pools() -> None:
    stacks = recorded("few_threads")
    at_work = [name for name in {s.thread for s in stacks.samples} if "ThreadPoolExecutor" in name]
    names = {name: f"pool-{number % 2}-thread-{number}" for number, name in enumerate(sorted(at_work))}
    renamed = tuple(replace(s, thread=names.get(s.thread, s.thread)) for s in stacks.samples)

    pools = [p for p in places_of(replace(stacks, samples=renamed)) if p.kind == "threads"]

    assert [limits.point(pool.bound) for pool in pools] == [2, 2]


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


# --- threads that requests wait for elsewhere ---------------------------------------------------------------

READS = Frame("read", "shop", "/app/shop.py", 50, is_own=True)
COLLECTS = Frame("collect", "shop", "/app/shop.py", 60, is_own=True)
FUTURE = Frame("result", "concurrent.futures", "/lib/futures.py", 456)


def with_readers(readers: int, users: int, *, at_work: int) -> StackSamples:
    """Each user's thread waits for some readers, of which so many are at work at a time, in turn."""
    samples = []
    for moment in range(40):
        busy = {(moment + turn) % readers for turn in range(at_work)}
        states: list[tuple[str, int, Wait, tuple[Frame, ...]]] = [
            ("request", user, "lock", (COLLECTS, FUTURE)) for user in range(users)
        ]
        for reader in range(readers):
            states.append(
                ("reader", reader, "timer", (READS,))
                if reader in busy
                else ("reader", reader, "lock", (FUTURE,))
            )
        samples += [
            ThreadSample(moment / 20, 7, "app", 100 * len(kind) + n, f"{kind}-{n}", False, wait, stack)
            for kind, n, wait, stack in states
        ]
    return StackSamples(float(users), True, 0.0, 2.0, tuple(samples), (), (), None)


def test_threads_that_fewer_users_wait_for_are_full_and_known_with_one_user() -> None:
    """8 users keep 10 readers at work; one user takes 4 of them at a time."""
    (pool,) = [
        each
        for each in places_of(with_readers(10, 8, at_work=10), with_readers(10, 1, at_work=4))
        if each.kind == "threads" and limits.point(each.bound) == 10
    ]

    assert limits.point(pool.held) == pytest.approx(10)
    assert limits.point(pool.waiting) == pytest.approx(8)
    assert limits.point(pool.held_alone) == pytest.approx(4)


@pytest.mark.parametrize(("users", "at_work"), [(8, 8), (1, 4)])
def test_more_threads_than_users_that_are_often_free_are_no_limit(users: int, at_work: int) -> None:
    """8 of 10 at work are below 90 %."""
    bounds = [
        limits.point(p.bound)
        for p in places_of(with_readers(10, users, at_work=at_work))
        if p.kind == "threads"
    ]

    assert 10 not in bounds


# --- a lock behind a call ----------------------------------------------------------------------------------

MOMENTS = 40
State = tuple[Wait, tuple[Frame, ...]]  # of a thread at a moment
HANDLER = Frame("book", "shop", "/app/shop.py", 3, is_own=True)
CHECK: State = "timer", (HANDLER, Frame("check", "shop", "/app/shop.py", 20, is_own=True))
QUERY: State = "socket", (replace(HANDLER, line=5), Frame("execute", "driver", "/lib/driver.py", 70))
POLL: State = "timer", (replace(HANDLER, line=5),)  # a driver that sleeps until it tries again
LABEL: State = "timer", (replace(HANDLER, line=6), Frame("label", "shop", "/app/shop.py", 30, is_own=True))
EARLIER: State = "timer", (replace(HANDLER, line=4), *LABEL[1][1:])
ELSEWHERE: State = "timer", (replace(HANDLER, file="/app/other.py", line=9),)


def at_moments(*moments: Sequence[State], stay: int = 1, tasks: bool = False) -> StackSamples:
    """Return what threads did at moments a tenth of a second apart, each for so many moments in a row."""
    first = TASKS_FROM if tasks else 0
    samples = tuple(
        ThreadSample(moment / 10, 7, "service", tid, f"worker-{tid}", False, wait, stack)
        for moment, threads in enumerate(moments, 1)
        for place, (wait, stack) in enumerate(threads)
        for tid in [first + (place + moment // stay) % len(threads)]
    )
    return StackSamples(USERS, True, 0.0, (len(moments) + 1) / 10, samples, (), (), None)


def behind_a_call(stacks: StackSamples) -> list[ConcurrencyLimit]:
    return [place for place in places_of(stacks) if place.kind == "lock"]


def test_a_row_that_one_thread_at_a_time_gets_past_is_a_lock() -> None:
    threads = [*[CHECK] * 5, *[QUERY] * 10, LABEL]

    (lock,) = behind_a_call(at_moments(*[threads] * MOMENTS))

    assert limits.point(lock.held) == pytest.approx(1)
    assert limits.point(lock.waiting) == pytest.approx(10)
    assert lock.waiting is not None
    assert "driver.execute, at book() shop.py:5" in lock.waiting.name
    assert "label() shop.py:30" in lock.held.name


BARE: State = "lock", (replace(HANDLER, line=5),)


def test_a_lock_that_is_polled_has_threads_that_sleep_and_one_that_is_past_them() -> None:
    # at 34 of 40 moments: between two holders it is free until a thread looks again
    held, free = [*[CHECK] * 5, *[POLL] * 10, LABEL], [*[CHECK] * 5, *[POLL] * 11]

    (lock,) = behind_a_call(at_moments(*[held] * 34, *[free] * 6))

    assert limits.point(lock.held) == pytest.approx(34 / 40)
    assert limits.point(lock.waiting) == pytest.approx((34 * 10 + 6 * 11) / 40)
    assert lock.waiting is not None
    assert "threads waiting at book() shop.py:5" in lock.waiting.name


def test_who_holds_a_lock_is_past_it_whatever_others_do_meanwhile() -> None:
    # Of 16 threads 9 wait for the lock and one has it; 6 have not come to it, and wait for a call before.
    seen = places_of(at_moments(*[[*[CHECK] * 6, *[BARE] * 9, LABEL]] * MOMENTS))
    (lock,) = [place for place in seen if place.kind == "lock"]

    assert limits.point(lock.held) == pytest.approx(1)
    assert limits.point(lock.waiting) == pytest.approx(9)
    assert "threads past it, most at label() shop.py:30" in lock.held.name


@pytest.mark.parametrize("past", [0, 29])
def test_a_place_past_a_wait_that_is_often_empty_is_no_lock(past: int) -> None:
    # 29 of 40 moments are below three quarters
    inside, outside = [*[POLL] * 15, LABEL], [POLL] * 16

    assert behind_a_call(at_moments(*[inside] * past, *[outside] * (MOMENTS - past))) == []


def test_a_lock_that_is_polled_is_the_limit_with_both_lines() -> None:
    held, free = [*[CHECK] * 3, *[POLL] * 12, LABEL], [*[CHECK] * 3, *[POLL] * 13]
    stacks = at_moments(*[held] * 11, *[free] * 2)  # 11 of 13 moments: 0.846

    root = next(f for f in diagnosed(stacks, at_once=1, call_s=0.02) if f.explained_by is None)
    waiting, holding = code_evidence([stacks], [], is_full=True).places

    assert (root.rule, root.grade) == ("db.lock", Grade.PROBABLE)
    assert "lets 50.0 /s through; 12.2 wait for it" in root.statement  # (11 x 12 + 2 x 13) / 13
    assert (waiting.function, waiting.line) == ("book", 5)
    assert (holding.kind, holding.function, holding.line) == ("holds", "label", 30)
    assert holding.text.startswith(
        "the one thread that is past it sleeps at label() shop.py:30, called from "
    )
    assert "book() shop.py:6" in holding.text


@pytest.mark.parametrize("wait", [QUERY, POLL])
def test_threads_that_do_not_wait_for_each_other_hold_no_lock(wait: State) -> None:
    # Each of 16 threads is past the wait for a sixteenth of the time: one on average, as with a lock.
    rng = random.Random(20)
    alarms = 0
    for _ in range(RUNS):
        moments = [rng.choices([LABEL, wait, CHECK], [1, 10, 5], k=USERS) for _ in range(MOMENTS)]
        alarms += bool(behind_a_call(at_moments(*moments)))

    assert alarms <= MOST_ALARMS


@pytest.mark.parametrize("stay", [5, 10])
def test_threads_that_stay_where_they_are_are_not_taken_for_as_many_as_there_can_be(stay: int) -> None:
    rng = random.Random(22)
    alarms = 0
    for _ in range(RUNS):
        drawn = [rng.choices([LABEL, POLL, CHECK], [1, 10, 5], k=USERS) for _ in range(MOMENTS // stay + 1)]
        moments = [threads for threads in drawn for _ in range(stay)][:MOMENTS]
        alarms += bool(behind_a_call(at_moments(*moments, stay=len(moments) + 1)))

    assert alarms <= MOST_ALARMS


@pytest.mark.parametrize(("stay", "is_known"), [(9, True), (12, False)])
def test_who_has_a_lock_for_long_is_known_after_five_of_them(stay: int, is_known: bool) -> None:
    held = [*[POLL] * 10, LABEL]  # 40 moments hold the ends of four times nine, of three times twelve

    assert bool(behind_a_call(at_moments(*[held] * MOMENTS, stay=stay))) == is_known


@pytest.mark.parametrize(("busy", "is_seen"), [(6, True), (8, False)])
def test_tasks_of_a_loop_that_is_busy_may_wait_for_what_is_there(busy: int, is_seen: bool) -> None:
    stacks = at_moments(*[[*[CHECK] * 12, *[QUERY] * 4]] * MOMENTS, tasks=True)
    loop = (
        ThreadSample(s, 7, "service", 7, "MainThread", run := moment % 10 < busy, "" if run else "events", ())
        for moment in range(1, MOMENTS + 1)
        for s in [moment / 10]
    )

    crowd = crowd_of(replace(stacks, samples=(*stacks.samples, *loop)))

    assert (crowd is not None) == is_seen
    if crowd is not None:
        assert (crowd.plural, crowd.line) == ("tasks", "shop.py:20")


def test_tasks_are_no_pool_of_threads() -> None:
    few = at_moments(*[[CHECK] * 8] * MOMENTS, stay=MOMENTS + 1)
    tasks = at_moments(*[[CHECK] * 8] * MOMENTS, stay=MOMENTS + 1, tasks=True)

    assert [place.kind for place in places_of(few)] == ["threads"]
    assert places_of(tasks) == ()


@pytest.mark.parametrize("other", [CHECK, EARLIER, ELSEWHERE])
def test_a_thread_that_is_not_past_the_call_holds_nothing(other: State) -> None:
    assert behind_a_call(at_moments(*[[*[QUERY] * 15, other]] * MOMENTS)) == []


def test_two_that_are_past_a_call_are_no_lock() -> None:
    assert behind_a_call(at_moments(*[[*[QUERY] * 14, LABEL, LABEL]] * MOMENTS)) == []


TAKE: State = "lock", (replace(HANDLER, line=5), Frame("get", "queue", "/lib/queue.py", 171))


def places(stacks: StackSamples) -> list[ConcurrencyLimit]:
    return [place for place in places_of(stacks) if place.kind == "unknown"]


def test_places_that_are_handed_out_by_own_code_are_counted_by_those_past_the_wait() -> None:
    # A queue of the standard library serves as a pool; a third thread has just come while threads were read.
    usual, moving = (
        [*[CHECK] * 5, *[TAKE] * 9, LABEL, LABEL],
        [*[CHECK] * 5, *[TAKE] * 8, LABEL, LABEL, LABEL],
    )

    (pool,) = places(at_moments(*[usual] * 35, *[moving] * 5))

    assert limits.point(pool.held) == pytest.approx((35 * 2 + 5 * 3) / 40)
    assert limits.point(pool.waiting) == pytest.approx((35 * 9 + 5 * 8) / 40)
    assert pool.bound is not None
    assert limits.point(pool.bound) == 2
    assert pool.waiting is not None
    assert "queue.get, at book() shop.py:5" in pool.waiting.name


def test_threads_that_wait_for_work_of_their_own_hold_no_places() -> None:
    # Each of 16 threads waits for an answer or reads it, a sixth of the time: now none is past it, now five.
    rng = random.Random(21)
    alarms = 0
    for _ in range(RUNS):
        moments = [rng.choices([LABEL, TAKE, CHECK], [3, 10, 5], k=USERS) for _ in range(MOMENTS)]
        alarms += bool(places_of(at_moments(*moments)))

    assert alarms <= MOST_ALARMS


# --- a crowd -----------------------------------------------------------------------------------------------


def test_most_threads_that_wait_at_one_line_are_a_crowd() -> None:
    crowd = crowd_of(at_moments(*[[*[QUERY] * 12, *[CHECK] * 4]] * MOMENTS))

    assert crowd is not None
    assert crowd.waiting == pytest.approx(12)
    assert crowd.at_work == pytest.approx(16)
    assert crowd.line == "shop.py:5"


def test_a_crowd_that_waits_for_a_lock_is_one_for_a_place() -> None:
    lock: State = "lock", (replace(HANDLER, line=9),)

    crowd, of_calls = (crowd_of(at_moments(*[[state] * 16] * MOMENTS)) for state in (lock, QUERY))

    assert crowd is not None
    assert crowd.is_for_place
    assert of_calls is not None
    assert not of_calls.is_for_place


@pytest.mark.parametrize(
    "threads",
    [
        [*[QUERY] * 8, *[CHECK] * 8],
        [QUERY],
        [*[("", QUERY[1])] * 12, *[CHECK] * 4],
        [*[("events", QUERY[1])] * 16],
    ],
    ids=["half and half", "one", "they run", "loops"],
)
def test_threads_that_are_here_and_there_or_compute_are_no_crowd(threads: Sequence[State]) -> None:
    stacks = at_moments(*[threads] * MOMENTS)
    running = tuple(replace(s, is_running=not s.wait) for s in stacks.samples)

    assert crowd_of(replace(stacks, samples=running)) is None


@pytest.mark.parametrize(
    ("calls", "limiter"),
    [
        (("send", "acquire"), "aiolimiter.leakybucket.acquire"),
        (("send", "recv"), ""),
        (("send",), ""),
    ],
)
def test_a_crowd_in_a_function_that_limits_a_rate_says_so(calls: tuple[str, ...], limiter: str) -> None:
    files = {"acquire": "aiolimiter.leakybucket", "recv": "socket"}
    frames = tuple(Frame(name, files[name], f"/lib/{name}.py", 5) for name in calls[1:])
    delayed: State = "other", (replace(HANDLER, line=5), *frames)

    crowd = crowd_of(at_moments(*[[*[delayed] * 12, *[CHECK] * 4]] * MOMENTS))

    assert crowd is not None
    assert crowd.limiter == limiter


@pytest.mark.parametrize(
    ("module", "file", "logs"),
    [
        ("logging", "/lib/logging/__init__.py", True),
        ("ch.qos.logback.core.OutputStreamAppender", "OutputStreamAppender.java", True),
        ("log", "/go/src/log/log.go", True),
        ("log/slog", "/go/src/log/slog/logger.go", True),
        ("", "/app/node_modules/winston/lib/logger.js", True),
        ("logistics", "/lib/logistics.py", False),
        ("login.views", "/lib/login/views.py", False),
        ("socket", "/lib/socket.py", False),
    ],
)
@pytest.mark.parametrize("state", ["lock", ""])
def test_threads_that_log_for_most_of_the_time_are_seen_with_the_line(
    module: str, file: str, logs: bool, state: Wait
) -> None:
    """Also where a handler of the service's own writes what the library hands to it."""
    handler = replace(HANDLER, function="emit", line=90)
    stack = (replace(HANDLER, line=5), Frame("info", module, file, 7))
    waiting: State = state, stack
    writing: State = "socket", (*stack, handler)

    seen = logging_of(at_moments(*[[*[waiting] * 11, writing, *[CHECK] * 4]] * MOMENTS))

    assert (seen is not None) == logs
    if seen is not None:
        assert seen.inside == pytest.approx(12)
        assert seen.at_work == pytest.approx(16)
        assert seen.line.endswith(":5")
        assert seen.function.endswith("info")


@pytest.mark.parametrize(
    ("module", "function", "begins"),
    [
        ("ssl", "SSLSocket.do_handshake", True),
        ("asyncio.sslproto", "SSLProtocol._do_handshake", True),
        ("crypto/tls", "(*Conn).HandshakeContext", True),
        ("sun.security.ssl.SSLSocketImpl", "startHandshake", True),
        ("websockets.server", "ServerProtocol.handshake", False),
        ("ssl", "SSLSocket.read", False),
    ],
)
@pytest.mark.parametrize("of_16", [8, 4])
def test_begins_of_tls_connections_that_compute_are_seen_with_their_share(
    module: str, function: str, begins: bool, of_16: int
) -> None:
    """Half of the threads on a CPU are enough, and a quarter are not; no own code is needed."""
    begin: State = "", (Frame(function, module, "/lib/ssl.py", 7),)
    works: State = "", (HANDLER,)

    stacks = at_moments(*[[*[begin] * of_16, *[works] * (16 - of_16)]] * MOMENTS)
    seen = handshakes_of(replace(stacks, samples=tuple(replace(s, is_running=True) for s in stacks.samples)))

    assert (seen is not None) == (begins and of_16 == 8)
    if seen is not None:
        assert seen.share == pytest.approx(0.5)
        assert seen.function == f"{module}.{function}"


def test_a_thread_that_only_writes_what_others_log_does_not_count() -> None:
    library = Frame("_monitor", "logging.handlers", "/lib/logging/handlers.py", 7)
    writing: State = "socket", (library, replace(HANDLER, function="emit", line=90))

    assert logging_of(at_moments(*[[writing] * 16] * MOMENTS)) is None


def test_half_of_the_threads_in_a_log_are_not_most_of_them() -> None:
    stack = (replace(HANDLER, line=5), Frame("info", "logging", "/lib/logging/__init__.py", 7))
    logs: State = "lock", stack

    assert logging_of(at_moments(*[[*[logs] * 8, *[CHECK] * 8]] * MOMENTS)) is None


def test_threads_that_are_there_without_load_too_are_no_crowd() -> None:
    stacks = at_moments(*[[QUERY] * USERS] * MOMENTS)
    idle = tuple(replace(s, time_s=s.time_s - 100) for s in stacks.samples)

    assert crowd_of(replace(stacks, samples=(*idle, *stacks.samples))) is None


# --- what rules make of them -------------------------------------------------------------------------------


def diagnosed(stacks: StackSamples, *, at_once: int, call_s: float = 0.05) -> tuple[Finding, ...]:
    """Return what is found where stacks go with a curve of the service's own physics."""
    rate = at_once / call_s
    levels = [
        replace(
            step(users, min(users, at_once) / call_s, max(call_s, users / rate)),
            processes=(process(0.1),),
            probes=(probe(0.001),),
        )
        for users in (1, 2, 4, 8, USERS)
    ]
    levels[-1] = replace(levels[-1], places=places_of(stacks))
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
    shown = [f for f in diagnosed(recorded(name), at_once=at_once, call_s=call_s) if f.explained_by is None]

    assert [f.rule for f in shown if f.grade >= Grade.PROBABLE] == [rule]
    assert shown[0].grade is Grade.PROBABLE  # one trial of stacks is no more


def test_threads_that_wait_for_a_slow_service_are_not_the_limit() -> None:
    # 4 threads, and a service behind that takes one call at a time: throughput says 1 at once, not 4
    rules = {f.rule for f in diagnosed(recorded("few_threads"), at_once=1)}

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


# --- threads that are locked -------------------------------------------------------------------------------


def held_up(*threads: tuple[Wait, tuple[Frame, ...], int]) -> StackSamples:
    """Samples before a load and during it: what each thread waits for, where, and from which of 30 on."""
    samples = tuple(
        ThreadSample(-0.5 + 0.05 * moment, 7, "bank", tid, f"worker-{tid}", False, wait, stack)
        for moment in range(30)
        for tid, (wait, stack, begins) in enumerate(threads)
        if moment >= begins
    )
    return StackSamples(USERS, True, 0.0, 1.0, samples, (), (), None)


def own(line: int) -> Frame:
    return Frame("both", "bank", "bank.py", line, is_own=True)


def test_threads_that_wait_for_a_lock_also_while_nothing_is_asked_are_locked() -> None:
    (pair, third) = (own(40),), (own(42),)
    seen = locked_of(held_up(("lock", pair, 0), ("lock", third, 0), ("lock", pair, 0), ("lock", pair, 15)))

    assert seen is not None
    assert seen.threads == 3  # the last came with the load
    assert seen.places == ("at both() bank.py:40", "at both() bank.py:42")


def test_threads_that_wait_for_work_are_not_locked() -> None:
    queue = Frame("get", "queue", "queue.py", 171)
    idle = (own(12), queue, Frame("wait", "threading", "threading.py", 327))

    assert locked_of(held_up(("lock", idle, 0), ("lock", idle, 0), ("lock", idle, 0))) is None
    assert locked_of(held_up(("events", (own(9),), 0), ("events", (own(9),), 0))) is None
    assert locked_of(held_up(("lock", (own(40),), 0))) is None  # one may be a worker of another kind


def test_workers_that_wait_bare_and_move_under_load_are_not_locked() -> None:
    """`queue.SimpleQueue.get` has no frame: who waits in it looks like one that waits for a lock."""
    idle = held_up(("lock", (own(12),), 0), ("lock", (own(12),), 0))
    at_work = tuple(
        replace(sample, wait="timer", stack=(own(13),)) if sample.time_s > 0.2 and sample.tid < 2 else sample
        for sample in idle.samples
    )

    assert locked_of(idle) is not None  # under a load that they do nothing of
    assert locked_of(replace(idle, samples=at_work)) is None


# --- own code that a library calls under its lock -----------------------------------------------------------


def test_a_holder_may_be_in_own_code_that_a_library_calls_where_the_others_wait() -> None:
    """A logger calls a handler of the service under its lock: one thread sends, the others wait to log."""
    log = Frame("track", "app", "app.py", 22, is_own=True)
    handle = Frame("handle", "logging", "logging/__init__.py", 978)
    send = Frame("send", "app", "app.py", 9, is_own=True)
    samples = tuple(
        ThreadSample(
            0.05 * moment,
            7,
            "app",
            tid,
            f"worker-{tid}",
            False,
            "socket" if tid == moment % 8 else "lock",
            (log, handle, send) if tid == moment % 8 else (log, handle),
        )
        for moment in range(20)
        for tid in range(8)
    )

    (lock,) = (
        place
        for place in places_of(StackSamples(USERS, True, 0.0, 1.0, samples, (), (), None))
        if place.kind == "lock"
    )

    assert limits.point(lock.held) == pytest.approx(1.0)
    assert limits.point(lock.waiting) == pytest.approx(7.0)
    assert "send() app.py:9" in lock.held.name
