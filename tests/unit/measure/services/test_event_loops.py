"""Event loops in stacks that were sampled from real services.

`loop_waits` is a FastAPI service under uvloop whose database driver does not give way: a search waits 250 ms
without it, and about 41 ms in it. 32 users that begin together hold the loop for 32 x 41 of 32 x 41 + 250 ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from loadlens.measure.services.event_loops import loops_of
from loadlens.model.facts import LoopWatch
from loadlens.model.stacks import CLIENT, Frame, StackSamples, ThreadSample, Wait
from tests.unit.measure.services.test_thread_places import recorded


def test_a_loop_that_waits_for_a_driver_is_seen_with_call_and_line() -> None:
    (loop,) = loops_of(recorded("loop_waits"))

    assert loop.held.point == pytest.approx(32 * 0.041 / (32 * 0.041 + 0.25), abs=0.05)
    assert loop.waiting.point == pytest.approx(1, abs=0.05)
    assert loop.others is not None
    assert loop.others.point == 0
    assert loop.call == "psycopg.connection.Connection.execute"
    assert loop.line == "Store.search() store.py:17"


@pytest.mark.parametrize("name", ["few_threads", "locked", "pooled", "jvm_lock", "jvm_few_threads"])
def test_threads_are_no_loops(name: str) -> None:
    assert loops_of(recorded(name)) == ()


def test_a_loop_that_hands_calls_to_threads_is_free() -> None:
    assert all(loop.held.point < 0.5 for loop in loops_of(recorded("in_executor")))


# --- by the kernel's view alone ----------------------------------------------------------------------------

MOMENTS = 30
STORE = "10.0.0.7:5432"
State = tuple[Wait, str]  # what a thread waits for, and the other end of the connection; runs: empty
CALLS: State = "socket", STORE
READS: State = "socket", CLIENT
EVENTS: State = "events", "epoll 3"
OTHERS: State = "events", "epoll 4"
PARKED: State = "lock", ""
RUNS: State = "", ""
SLEEPS: State = "timer", ""
Threads = Mapping[str, State]  # by name


def seen(idle: Sequence[Threads], loaded: Sequence[Threads], stack: tuple[Frame, ...] = ()) -> StackSamples:
    """Return samples of one process: of moments without load, and of others, a tenth of a second apart."""
    names = dict.fromkeys(name for each in (*idle, *loaded) for name in each)
    numbers = {name: tid for tid, name in enumerate(names, 7)}
    samples = tuple(
        ThreadSample(
            at / 10 + 0.05, 7, "svc", numbers[name], name.split("/")[0], not wait, wait, stack, to=other_end
        )
        for first, moments in ((-len(idle), idle), (0, loaded))
        for at, threads in enumerate(moments, first)
        for name, (wait, other_end) in threads.items()
    )
    return StackSamples(16, True, 0.0, MOMENTS / 10, samples, (), (), None)


def two(first: State, second: State) -> Threads:
    return {"worker-1/1": first, "worker-2/2": second}


AT_REST = [two(EVENTS, PARKED)] * 10
HELD = [two(CALLS, CALLS)] * 27 + [two(EVENTS, PARKED)] * 3


def the_only(stacks: StackSamples) -> LoopWatch:
    (loop,) = loops_of(stacks)
    return loop


def test_two_loops_in_a_call_that_blocks_are_seen_without_frames() -> None:
    loop = the_only(seen(AT_REST, HELD))

    assert (loop.count, loop.call, loop.line) == (2, f"a blocking call to {STORE}", "")
    assert loop.held.point == pytest.approx(27 / 30)
    assert loop.waiting.point == 1
    assert loop.others is None


def test_loops_with_events_of_their_own_are_no_pool() -> None:
    loop = the_only(seen([two(EVENTS, OTHERS)] * 10, [two(CALLS, CALLS)] * MOMENTS))

    assert (loop.count, loop.held.point) == (2, 1)


def test_a_loop_that_sleeps_is_held_and_one_that_computes_does_not_wait() -> None:
    asleep = the_only(seen(AT_REST, [two(SLEEPS, SLEEPS)] * MOMENTS))
    mixed = the_only(seen(AT_REST, [two(RUNS, CALLS), two(RUNS, RUNS), two(RUNS, CALLS)] * 10))

    assert (asleep.held.point, asleep.waiting.point, asleep.call) == (1, 1, "a sleep")
    assert mixed.held.point == 1
    assert mixed.waiting.point == pytest.approx(20 / 60)


def test_one_of_several_threads_of_a_name_may_be_the_only_loop() -> None:
    # threads that a program starts have its name: one accepts calls, another one is asleep
    others = {"svc/accepts": ("connections", ""), "svc/parked": PARKED}
    idle: Threads = {"svc/main": EVENTS, **others}
    loaded: Threads = {"svc/main": CALLS, **others}

    assert the_only(seen([idle] * 10, [loaded] * MOMENTS)).count == 1


@pytest.mark.parametrize(
    ("idle", "loaded"),
    [
        (
            {"svc/main": EVENTS, **{f"svc/{n}": PARKED for n in range(8)}},
            {"svc/main": EVENTS, **{f"svc/{n}": CALLS for n in range(8)}},
        ),
        (two(EVENTS, PARKED), {**two(EVENTS, PARKED), **{f"worker-{n}/{n}": CALLS for n in range(3, 9)}}),
        ({"svc/main": ("connections", "")}, {f"svc/{n}": READS for n in range(8)}),
        (two(EVENTS, OTHERS), two(READS, READS)),
        (two(EVENTS, OTHERS), two(EVENTS, CALLS)),
        (two(EVENTS, EVENTS), two(CALLS, CALLS)),
        (two(("events", ""), ("events", "")), two(CALLS, CALLS)),
        (two(EVENTS, PARKED), two(RUNS, EVENTS)),
        ({"loop/1": EVENTS, "pool/2": PARKED}, {"loop/1": EVENTS, "pool/2": CALLS}),
        (two(PARKED, PARKED), two(CALLS, CALLS)),
        (two(SLEEPS, SLEEPS), two(SLEEPS, SLEEPS)),
    ],
    ids=[
        *("acceptor", "threads for calls", "thread per connection", "reads from clients", "half is free"),
        *("pool with a poller", "not known", "nginx", "loop and pool", "pool", "sleeps without load"),
    ],
)
def test_near_misses_are_no_held_loops(idle: Threads, loaded: Threads) -> None:
    assert loops_of(seen([idle] * 10, [loaded] * MOMENTS)) == ()


def test_a_loop_that_is_mostly_free_is_not_held() -> None:
    # 10 of 30 moments with a thread that waits for events: more than 30 %
    assert loops_of(seen(AT_REST, [two(CALLS, CALLS)] * 20 + [two(EVENTS, CALLS)] * 10)) == ()


def test_too_few_moments_say_nothing() -> None:
    assert loops_of(seen(AT_REST, HELD[:9])) == ()


def test_a_process_whose_frames_were_read_is_judged_by_them() -> None:
    frame = Frame("handle", "shop", "/app/shop.py", 3, is_own=True)

    assert loops_of(seen(AT_REST, HELD, (frame,))) == ()
