"""Event loops that are in requests under load, from stacks: one thread for many requests.

A loop's thread waits for events of many sockets without load, and a library that runs loops is below its
frames. Under load it should be back there whenever a request waits; a call that does not give way keeps it.

Where no frames are read, threads of one name are known as loops by what they do: each waits for events of
its own, or one of them for those of all and the others for their turn to do so. Under load hardly any does,
because they are in calls that block. Threads that wait for the same events at the same moment are a pool. An
acceptor in front of a pool of threads would still wait for events, and so would a runtime that hands such
calls to further threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from loadlens.measure.services.thread_places import AT_REST, FEWEST_MOMENTS, At, pool_name, text_of, work_of
from loadlens.measure.thresholds import LOOP_HELD
from loadlens.model.facts import LoopWatch
from loadlens.model.finding import Estimate
from loadlens.model.stacks import CLIENT, StackSamples, ThreadSample, Wait

# Packages whose frames lie below those of every request: libraries that run event loops.
_LIBRARIES: Final = (
    *("asyncio", "uvloop", "trio", "curio", "gevent", "eventlet", "tornado.ioloop", "twisted.internet"),
    *("aiohttp.web", "sanic.server"),  # on uvloop these are all that shows of the loop
    *("io.netty.channel", "io.vertx.core", "org.xnio.nio"),
)
_RUNTIMES: Final = ("node", "bun", "deno")  # programs whose main thread is a loop
_BLOCKS: Final[tuple[Wait, ...]] = (
    "socket",
    "timer",
)  # also a thread that does nothing else, as without load
_GIVES_WAY: Final[tuple[Wait, ...]] = ("", "events", "interpreter")  # or computes, if it has the interpreter


# Calls that block, by what a thread waits for in them.
_CALLS: Final[Mapping[Wait, str]] = {"socket": "a blocking call", "timer": "a sleep"}


def loops_of(stacks: StackSamples) -> tuple[LoopWatch, ...]:
    """Return the loops of each process that are in requests at any moment, the most occupied first."""
    if not stacks.is_closed:
        return ()
    loops = {(s.pid, s.tid) for s in stacks.samples if _is_loop(s)}
    loops &= {(s.pid, s.tid) for s in stacks.samples if s.wait == "events"}
    work = work_of(stacks)
    watches = [
        _watch(pid, {at.thread for at in work.at} & loops, work.at, moments)
        for pid, moments in work.moments.items()
        if moments >= FEWEST_MOMENTS and any(at.thread in loops and at.sample.pid == pid for at in work.at)
    ]
    watches += _without_frames(stacks)
    return tuple(sorted(watches, key=lambda loop: loop.held.point, reverse=True))


def _without_frames(stacks: StackSamples) -> Iterator[LoopWatch]:
    """Yield the loops of each process whose threads were seen by the kernel alone while they wait."""
    read = {s.pid for s in stacks.samples if s.stack and not s.is_running}
    idle: dict[tuple[int, str], list[ThreadSample]] = {}
    loaded: dict[tuple[int, str], list[ThreadSample]] = {}
    for sample in stacks.samples:
        is_loaded = stacks.begin_s <= sample.time_s <= stacks.end_s
        if sample.pid not in read and (is_loaded or sample.time_s < 0):
            (loaded if is_loaded else idle).setdefault((sample.pid, pool_name(sample)), []).append(sample)
    for pool, with_load in loaded.items():
        at_rest = idle.get(pool, [])
        events = [s for s in with_load if s.wait == "events"]
        for_events = {s.tid for s in (*at_rest, *events) if s.wait == "events"}
        in_turn = {s.tid for s in at_rest if s.wait == "lock"} & _mostly_blocked(with_load)
        within = [s for s in with_load if s.tid in for_events | in_turn]
        moments = len({s.time_s for s in within})
        is_rest = _blocked_share(at_rest) < AT_REST * _blocked_share(within)
        is_held = len({s.time_s for s in events}) <= (1 - LOOP_HELD) * moments
        is_shared = _share_events([*at_rest, *with_load])
        if for_events and is_rest and is_held and not is_shared and moments >= FEWEST_MOMENTS:
            yield _watch_without_frames(within)


def _share_events(samples: Sequence[ThreadSample]) -> bool:
    """True if two threads waited at one moment for the same events, or it is not known for which."""
    at = Counter((s.time_s, s.to) for s in samples if s.wait == "events")
    return max(at.values(), default=0) > 1


def _mostly_blocked(samples: Sequence[ThreadSample]) -> set[int]:
    by_thread: dict[int, list[ThreadSample]] = {}
    for sample in samples:
        by_thread.setdefault(sample.tid, []).append(sample)
    return {tid for tid, own in by_thread.items() if _blocked_share(own) >= AT_REST}


def _blocked_share(samples: Sequence[ThreadSample]) -> float:
    return sum(map(_is_blocked, samples)) / (len(samples) or 1)


def _is_blocked(sample: ThreadSample) -> bool:
    """True for a thread in a call that blocks, other than one that reads from or writes to a client."""
    return sample.wait in _BLOCKS and sample.to != CLIENT


def _watch_without_frames(samples: Sequence[ThreadSample]) -> LoopWatch:
    """Return what loops do of which no code was read."""
    blocked = [s for s in samples if _is_blocked(s)]
    within = len(blocked) + sum(s.is_running for s in samples)
    (wait, to), _ = Counter((s.wait, s.to) for s in blocked).most_common(1)[0] if blocked else (("", ""), 0)
    return LoopWatch(
        samples[0].process,
        len({s.tid for s in samples}),
        _share("moments in a request", within / len(samples), len(samples)),
        _share("moments in a call", len(blocked) / (within or 1), within),
        None,
        _CALLS.get(wait, "") + (f" to {to}" if to else ""),
        "",
    )


def _is_loop(sample: ThreadSample) -> bool:
    if sample.process in _RUNTIMES and sample.pid == sample.tid:
        return True
    return any(_is_of(frame.module) for frame in sample.stack)


def _is_of(module: str) -> bool:
    return any(module == library or module.startswith(f"{library}.") for library in _LIBRARIES)


def _watch(pid: int, loops: set[tuple[int, int]], at_work: Sequence[At], moments: int) -> LoopWatch:
    """Return what the loops of a process do at its moments."""
    own = [at for at in at_work if at.sample.pid == pid and not at.sample.is_task]
    within = [at for at in own if at.thread in loops]
    waiting = [at for at in within if not at.sample.is_running and at.sample.wait not in _GIVES_WAY]
    count = len({at.thread for at in within})
    held, others = len(within) / (count * moments), (len(own) - len(within)) / moments
    share = len(waiting) / len(within)
    places = Counter((at.call, text_of(at.own)) for at in waiting or within)
    call, line = places.most_common(1)[0][0]
    return LoopWatch(
        within[0].sample.process,
        count,
        _share("moments in a request", held, count * moments),
        _share("moments in a call", share, len(within)),
        _share("threads at work", others, moments),
        call,
        line,
    )


def _share(metric: str, point: float, samples: int) -> Estimate:
    """Return a figure of one trial: without an interval."""
    return Estimate(metric, "share", point, None, None, 1, samples, "share of moments")
