"""Places where threads of a service wait under load, and where those are that they wait for, from stacks.

Threads are a resource like those that gauges show: so many are there, and so many are at work. So is what
they wait for in their own process: the threads that wait are its line, and the others at work hold it.
The kernel shows that a thread waits for a lock; the function of a library shows that it waits for a
connection.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Final, Literal

import numpy as np

from loadlens.estimate.distributions import binomial_at_least, chi2_tail
from loadlens.measure import figures
from loadlens.measure.thresholds import LOOP_HELD, ONE_HOLDER, SAMPLED_HOLDER
from loadlens.model.facts import ConcurrencyLimit, Crowd, Gauge, Handshakes, Locked, Logging
from loadlens.model.finding import Estimate
from loadlens.model.stacks import MAIN, Frame, Stack, StackSamples, ThreadSample, Wait, plural_of

AT_REST: Final = 0.5  # threads at a place without load over those with it, from which it is no work
FEWEST_MOMENTS: Final = 10
FEWEST_STAYS: Final = 5  # of mean length, from which it counts that as many are there at all moments
AT_FRONT: Final = (
    0.5  # of the samples at a place: states are read around the frames, and may be of another one
)
COME_AND_GO: Final = 2  # threads seen in all over those at a moment: beyond it, requests bring their own
CHANCE: Final = 0.025  # that threads which do not wait for each other are past a wait as evenly
MOST: Final = 0.5  # of the threads at work, from which they are a crowd
HANDSHAKING: Final = 1 / 3  # of the computing, from which it is worth a finding
SEVERAL: Final = 2.0  # threads at once
FILLED: Final = 0.9  # of the samples of some threads, from which these are always at work
MOST_USERS: Final = 0.8  # of the users, from which requests wait there
USUAL: Final = 95  # percentile of a count: one moment in twenty may fall between two holders
BLOCKED: Final[tuple[Wait, ...]] = ("timer", "socket", "storage", "process")  # work, though no code is read
STILL: Final[tuple[Wait, ...]] = ("lock", "file lock", "interpreter", "other")  # or just woken, in its place
QUEUES: Final[tuple[Wait, ...]] = ("lock", "events", "connections")  # where threads wait for work, too
CALLS: Final[tuple[Wait, ...]] = ("socket", "timer")  # for a lock elsewhere, or for one that is polled
Kind = Literal["lock", "pool", "unknown"]  # unknown: places, one or several

# Functions of libraries in which a thread waits until it gets one of a limited number of something: the
# module of Python, the class of the JVM or the package of Go, and the function.
_WAITING: Final[Mapping[Kind, frozenset[tuple[str, str]]]] = {
    "pool": frozenset(
        {
            ("DBConnection.Holder", "checkout_call"),  # of Elixir
            ("NimblePool", "checkout!"),
            ("poolboy", "checkout"),
            ("sqlalchemy.pool.impl", "_do_get"),
            ("psycopg_pool.pool", "getconn"),
            ("psycopg_pool.base", "getconn"),
            ("urllib3.connectionpool", "_get_conn"),
            ("psycopg_pool.pool_async", "getconn"),
            ("asyncpg.pool", "_acquire_impl"),
            ("aiomysql.pool", "_acquire"),
            ("aiopg.pool", "_acquire"),
            ("aiohttp.connector", "_wait_for_available_connection"),
            ("httpcore._async.connection_pool", "wait_for_connection"),
            ("httpcore._sync.connection_pool", "wait_for_connection"),
            ("redis.connection", "get_connection"),
            ("redis.asyncio.connection", "get_connection"),
            ("pymongo.pool", "_get_conn"),
            ("pymongo.synchronous.pool", "_get_conn"),
            ("pymongo.asynchronous.pool", "_get_conn"),
            ("dbutils.pooled_db", "connection"),
            ("oracledb.pool", "acquire"),
            ("database/sql", "conn"),
            ("github.com/jackc/puddle/v2", "Acquire"),
            ("github.com/redis/go-redis/v9/internal/pool", "waitTurn"),
            ("com.zaxxer.hikari.util.ConcurrentBag", "borrow"),
            ("org.apache.commons.pool2.impl.GenericObjectPool", "borrowObject"),
            ("org.apache.tomcat.jdbc.pool.ConnectionPool", "borrowConnection"),
            ("com.alibaba.druid.pool.DruidDataSource", "getConnectionInternal"),
            ("com.mchange.v2.resourcepool.BasicResourcePool", "awaitAvailable"),
            ("io.agroal.pool.ConnectionPool", "getConnection"),
            ("org.apache.http.pool.AbstractConnPool", "getPoolEntryBlocking"),
            ("org.apache.http.impl.conn.PoolingHttpClientConnectionManager", "leaseConnection"),
        }
    ),
    "lock": frozenset(
        {
            ("gen_server", "call"),  # of the BEAM: a process answers one after the other
            ("gen_statem", "call"),
            ("GenServer", "call"),
            ("java.util.concurrent.locks.ReentrantLock", "lock"),
            ("java.util.concurrent.locks.ReentrantLock", "tryLock"),
            ("java.util.concurrent.locks.ReentrantReadWriteLock$WriteLock", "lock"),
            ("java.util.concurrent.locks.ReentrantReadWriteLock$ReadLock", "lock"),
            ("java.util.concurrent.locks.StampedLock", "writeLock"),
            ("sync", "Lock"),  # of Go
            ("sync", "RLock"),
        }
    ),
    "unknown": frozenset(
        {
            ("threading", "acquire"),  # of a semaphore: a lock of Python has no frame
            ("asyncio.locks", "acquire"),
            ("anyio._core._synchronization", "acquire"),
            ("anyio._backends._asyncio", "acquire"),
            ("anyio._backends._asyncio", "acquire_on_behalf_of"),
            ("java.util.concurrent.Semaphore", "acquire"),
            ("java.util.concurrent.Semaphore", "tryAcquire"),
            ("golang.org/x/sync/semaphore", "Acquire"),
            ("", "chan send"),  # of Go, as a semaphore is made
        }
    ),
}

# Functions of libraries that delay what exceeds a rate.
_LIMITERS: Final = frozenset(
    {
        ("aiolimiter.leakybucket", "acquire"),
        ("asyncio_throttle.throttler", "acquire"),
        ("pyrate_limiter.limiter", "try_acquire"),
        ("pyrate_limiter.limiter", "try_acquire_async"),
        ("ratelimit.decorators", "wrapper"),
        ("golang.org/x/time/rate", "WaitN"),
        ("golang.org/x/time/rate", "wait"),
        ("go.uber.org/ratelimit", "Take"),
        ("com.google.common.util.concurrent.RateLimiter", "acquire"),
        ("io.github.resilience4j.ratelimiter.RateLimiter", "waitForPermission"),
        ("io.github.resilience4j.ratelimiter.internal.AtomicRateLimiter", "acquirePermission"),
        ("io.github.bucket4j.AbstractBucket", "consume"),
    }
)

# Libraries that log: modules of Python and the BEAM, packages of the JVM and Go, folders of Node.
_LOGS: Final = re.compile(
    r"(logging|loguru|structlog|java\.util\.logging|org\.slf4j|ch\.qos\.logback|org\.apache\.log4j"
    r"|org\.apache\.logging|org\.jboss\.log\w+|log|log/slog|go\.uber\.org/zap|github\.com/rs/zerolog"
    r"|github\.com/sirupsen/logrus|Logger|logger\w*)([./$].*)?"
)
_HANDSHAKE: Final = re.compile(r"(ssl|tls).*handshake", re.IGNORECASE)  # in a function's full name
_LOGS_OF_NODE: Final = re.compile(
    r"node:internal/console/|/node_modules/(winston|pino|bunyan|log4js|loglevel|sonic-boom)/"
)


@dataclass(frozen=True, slots=True)
class At:
    """A sample of a thread in own code."""

    sample: ThreadSample
    depth: int  # of the innermost own frame in the stack

    @property
    def own(self) -> Frame:
        return self.sample.stack[self.depth]

    @property
    def own_stack(self) -> tuple[Frame, ...]:
        """Frames of own code, outermost first."""
        return tuple(frame for frame in self.sample.stack if frame.is_own)

    @property
    def line(self) -> tuple[str, int]:
        return self.own.file, self.own.line

    @property
    def moment(self) -> tuple[int, float]:
        return self.sample.pid, self.sample.time_s

    @property
    def thread(self) -> tuple[int, int]:
        return self.sample.pid, self.sample.tid

    @property
    def place(self) -> tuple[str, str, int]:
        """File and function, and the line if it waits there."""
        is_computing = self.sample.is_running or self.sample.wait == "interpreter"
        return self.own.file, self.own.function, 0 if is_computing else self.own.line

    @property
    def within(self) -> tuple[Frame, ...]:
        """Frames that the own code is in, outermost first: of libraries, if it is the innermost own code."""
        return self.sample.stack[self.depth + 1 :]

    @property
    def call(self) -> str:
        """Function of a library that the own code is in; empty: none with a frame."""
        return self.within[0].name if self.within and not self.within[0].is_own else ""

    @property
    def caller(self) -> Frame | None:
        """Own function that called this one."""
        outer = self.sample.stack[: self.depth]
        return next((frame for frame in reversed(outer) if frame.is_own and frame.function != MAIN), None)


@dataclass(frozen=True, slots=True)
class Work:
    """The threads of a level of load that are at work: in own code, where they are not without load."""

    loaded: tuple[ThreadSample, ...]
    moments: Mapping[int, int]  # of each process: how often it was sampled
    at: tuple[At, ...]

    def at_once(self, samples: Iterable[At]) -> float:
        """Return how many threads are there at a moment, on average."""
        return sum(1 / self.moments[at.sample.pid] for at in samples)


@dataclass(frozen=True, slots=True)
class Line:
    """Threads that wait for something of their own process, and the others at work, which may have it."""

    kind: Kind
    function: str  # of a library, that waits; empty: none with a frame
    waiting: tuple[At, ...]
    others: tuple[At, ...]  # at moments when some thread waits
    are_past: bool = False  # the others are further on in the code than those that wait


def work_of(stacks: StackSamples) -> Work:
    """Return what is at work in the samples of a level."""
    loaded = tuple(s for s in _of_known_waits(stacks) if stacks.begin_s <= s.time_s <= stacks.end_s)
    idle = [s for s in stacks.samples if s.time_s < 0]
    moments, in_code = _moments(loaded), list(_in_own_code(loaded))
    at_rest = _per_moment(list(_in_own_code(idle)), _moments(idle))
    with_load = _per_moment(in_code, moments)
    at = tuple(at for at in in_code if at_rest[at.line] < AT_REST * with_load[at.line])
    return Work(loaded, moments, at)


def _of_known_waits(stacks: StackSamples) -> Iterator[ThreadSample]:
    """Return the samples without tasks of a busy loop, unless these wait for a lock.

    What the others wait for may have come already: a loop that computes does not look.
    """
    loops = {(s.pid, s.tid) for s in stacks.samples if s.wait == "events"}
    loaded = [s for s in stacks.samples if stacks.begin_s <= s.time_s <= stacks.end_s]
    seen = Counter((s.pid, s.tid) for s in loaded if (s.pid, s.tid) in loops)
    busy = Counter((s.pid, s.tid) for s in loaded if (s.pid, s.tid) in loops and s.wait != "events")
    full = {pid for (pid, tid), count in seen.items() if busy[pid, tid] >= LOOP_HELD * count}
    return (s for s in stacks.samples if not s.is_task or s.wait == "lock" or s.pid not in full)


def line_of(work: Work) -> Line | None:
    """Return the line that most threads wait in, of locks, pools and semaphores; none: there is none.

    Loops are left out: a thread that waits for events of many sockets has no place in a line of threads.
    """
    loops = {(s.pid, s.tid) for s in work.loaded if s.wait == "events"}
    at_work = [at for at in work.at if at.thread not in loops]
    return _in_process(at_work) or _told_by_holders(at_work, ("lock",)) or _told_by_holders(at_work, CALLS)


def _in_process(at_work: Sequence[At]) -> Line | None:
    """Return the line of what the kernel or the function of a library shows that threads wait for."""
    waits = {id(at): wait for at in at_work if (wait := _waits_for(at)) is not None}
    if not waits:
        return None
    kind, function = Counter(waits.values()).most_common(1)[0][0]
    there = Counter((at.own, at.within) for at in at_work)
    at_front = Counter((at.own, at.within) for at in at_work if waits.get(id(at)) == (kind, function))
    fronts = {place for place, count in at_front.items() if count >= AT_FRONT * there[place]}
    waiting = [at for at in at_work if (at.own, at.within) in fronts and at.sample.wait in STILL]
    moments = {at.moment for at in waiting}
    if len(moments) < FEWEST_MOMENTS:
        return None
    inside = {id(at) for at in waiting} | waits.keys()
    others = [at for at in at_work if id(at) not in inside and at.moment in moments]
    past = _steadily_past([at for at in at_work if id(at) not in inside], waiting)
    is_held = past and (kind != "lock" or len(past) <= ONE_HOLDER * len(moments))
    return Line(kind, function, tuple(waiting), tuple(past if is_held else others), are_past=bool(is_held))


def _told_by_holders(at_work: Sequence[At], kinds: tuple[Wait, ...]) -> Line | None:
    """Return the line at the place where most threads wait, if as many as there can be are always past it.

    They wait for each other within the process, in code of which the function does not say for what; or for a
    socket, or sleep until they try again, as those do that want to write to an embedded database: behind a
    call, one at a time gets past.
    """
    waits = Counter((at.moment[0], at.place) for at in at_work if at.sample.wait in kinds)
    if not waits:
        return None
    pid, place = waits.most_common(1)[0][0]
    own = [at for at in at_work if at.moment[0] == pid]
    waiting = [at for at in own if at.place == place and not at.sample.is_running]
    past = _steadily_past(own, waiting)
    is_several = len(past) > ONE_HOLDER * len({at.moment for at in waiting})
    if not past or (is_several and kinds == CALLS):
        return None
    function = Counter(at.call for at in waiting).most_common(1)[0][0]
    return Line("unknown" if is_several else "lock", function, tuple(waiting), tuple(past), are_past=True)


def _steadily_past(at_work: Sequence[At], waiting: Sequence[At]) -> list[At]:
    """Return the threads that are past the place where most of some wait, if they are always as many.

    They are further on in the function that waits, in one that it calls, or in own code that a library calls
    where the others wait.

    Threads that do not wait for each other would be past it by chance: now none, now several. The index of
    dispersion (Fisher) of their number at the moments with a wait, against a binomial distribution, says how
    likely it is that chance is as even. A thread that stays for several moments makes their number even by
    itself, so only as many moments count as there are stays of mean length in them.
    """
    front = Counter(at.own_stack for at in waiting).most_common(1)[0][0]
    moments = {at.moment for at in waiting}
    there = [at for at in at_work if at.moment in moments]
    past = [at for at in there if _is_past(at.own_stack, front)]
    held = Counter(at.moment for at in past)
    line, mean = len(waiting) / len(moments), len(past) / len(moments)
    threads = max(len(there) / len(moments), line + mean)  # also if the line is not in `at_work`
    if len(moments) < FEWEST_MOMENTS or mean < SAMPLED_HOLDER or threads <= mean:
        return []
    spread = sum((held[moment] - mean) ** 2 for moment in moments) / (mean * (1 - mean / threads))
    stay = _mean_stay(past, moments)
    alone = len(moments) / stay
    is_even = alone >= FEWEST_STAYS and 1 - chi2_tail(spread / stay, alone - 1) <= CHANCE
    return past if is_even else []


def _mean_stay(there: Sequence[At], moments: Iterable[tuple[int, float]]) -> float:
    """Return for how many moments in a row a thread is at a place on average."""
    order = {moment: number for number, moment in enumerate(sorted(moments))}
    seen = {(at.thread, order[at.moment]) for at in there}
    begun = sum((thread, number - 1) not in seen for thread, number in seen)
    return len(seen) / begun


def _is_past(stack: tuple[Frame, ...], front: tuple[Frame, ...]) -> bool:
    """True if own code is further on in the function that led to a call, or in one that the call leads to."""
    for frame, other in zip(stack, front, strict=False):
        if frame != other:
            return (frame.function, frame.file) == (other.function, other.file) and frame.line > other.line
    return len(stack) > len(front)


def places_of(stacks: StackSamples, light: StackSamples | None = None) -> tuple[ConcurrencyLimit, ...]:
    """Return the threads of a service, and what they wait for in their own process, as places.

    Args:
        stacks: Of the highest level.
        light: With one user; none: not sampled.
    """
    if not stacks.is_closed:
        return ()
    work = work_of(stacks)
    line = line_of(work)
    alone = {} if light is None else {name: pool.held for name, pool in _pools(work_of(light), light)}
    pools = (
        replace(pool, held_alone=alone.get(name))
        for name, pool in _pools(work, stacks)
        if _is_full(pool, stacks.load)
    )
    return (*pools, *(() if line is None else _place_of(line, work)))


def crowd_of(stacks: StackSamples) -> Crowd | None:
    """Return the line of own code where most threads at work wait, several at once; none: there is none.

    Event loops are left out: one that waits in a call holds many requests.
    """
    work = work_of(stacks)
    loops = {(s.pid, s.tid) for s in work.loaded if s.wait == "events"}
    own = [at for at in work.at if at.thread not in loops]
    waiting = [at for at in own if not at.sample.is_running and at.sample.wait != "interpreter"]
    if not stacks.is_closed or not waiting:
        return None
    line, count = Counter(at.line for at in waiting).most_common(1)[0]
    there = [at for at in waiting if at.line == line]
    mean, at_work = work.at_once(there), work.at_once(own)
    is_seen = len({at.sample.time_s for at in there}) >= FEWEST_MOMENTS
    if not is_seen or mean < SEVERAL or binomial_at_least(count, len(own), MOST) > CHANCE:
        return None
    for_places = sum(_waits_for(at) is not None for at in there)
    for_threads = sum(at.sample.wait == "lock" and not at.sample.is_task for at in there)
    name = f"{PurePosixPath(line[0]).name}:{line[1]}"
    plural = plural_of([at.sample for at in there])
    limiters = Counter(_limiter_of(at) for at in there)
    limiter, delayed = limiters.most_common(1)[0]
    return Crowd(
        mean,
        at_work,
        name,
        plural,
        is_for_place=for_places > MOST * len(there),
        limiter=limiter if delayed > MOST * len(there) else "",
        is_for_threads=for_threads > MOST * len(there),
    )


def logging_of(stacks: StackSamples) -> Logging | None:
    """Return the threads that log, if most of those at work do; none: they do not.

    Own code calls the library: a thread that only writes what others log has none around it.
    """
    work = work_of(stacks)
    inside = [(at, place) for at in work.at if (place := _log_call(at.sample.stack)) is not None]
    if not stacks.is_closed or len({at.sample.time_s for at, _ in inside}) < FEWEST_MOMENTS:
        return None
    if binomial_at_least(len(inside), len(work.at), MOST) > CHANCE:
        return None
    (file, line, function), _ = Counter(place for _, place in inside).most_common(1)[0]
    there = [at for at, _ in inside]
    mean, at_work = work.at_once(there), work.at_once(work.at)
    plural = plural_of([at.sample for at in there])
    return Logging(mean, at_work, function, f"{PurePosixPath(file).name}:{line}", plural)


def handshakes_of(stacks: StackSamples) -> Handshakes | None:
    """Return the functions that begin TLS connections; none: less than a third of the computing is theirs."""
    loaded = (s for s in stacks.samples if stacks.begin_s <= s.time_s <= stacks.end_s)
    on_cpu = [s for s in loaded if s.is_running]
    inside = [
        (s.time_s, frame.name)
        for s in on_cpu
        if (frame := next((f for f in reversed(s.stack) if _HANDSHAKE.search(f.name)), None)) is not None
    ]
    if len({time_s for time_s, _ in inside}) < FEWEST_MOMENTS:
        return None
    if binomial_at_least(len(inside), len(on_cpu), HANDSHAKING) > CHANCE:
        return None
    return Handshakes(len(inside) / len(on_cpu), Counter(name for _, name in inside).most_common(1)[0][0])


def _log_call(stack: Stack) -> tuple[str, int, str] | None:
    """Return the own line that calls a library which logs, and its function; none: none does."""
    for outer, inner in pairwise(stack):
        is_log = not inner.is_own and (_LOGS.fullmatch(inner.module) or _LOGS_OF_NODE.search(inner.file))
        if outer.is_own and is_log:
            return outer.file, outer.line, inner.name
    return None


def _limiter_of(at: At) -> str:
    """Return the function of a library that limits a rate, which a thread is in; empty: none."""
    delaying = (f for f in at.within if (f.module, f.function.rpartition(".")[2]) in _LIMITERS)
    return next((frame.name for frame in delaying), "")


def locked_of(stacks: StackSamples) -> Locked | None:
    """Return the threads that wait for a lock at one place before the load and during it; none: hardly any.

    They stand there since an earlier load: a thread that waits for work is elsewhere when there is some.
    """
    moments = _moments(stacks.samples)
    before = Counter(s.pid for s in stacks.samples if s.time_s < 0)
    seen = Counter(
        (at.thread, at.own)
        for at in _in_own_code(stacks.samples)
        if (_waits_for(at) or ("", ""))[0] == "lock"
    )
    places = Counter(
        own
        for (thread, own), count in seen.items()
        if before[thread[0]] and count == moments[thread[0]] >= FEWEST_MOMENTS
    )
    if places.total() < SEVERAL:
        return None
    return Locked(places.total(), tuple(f"at {text_of(own)}" for own, _ in places.most_common()))


# --- threads ----------------------------------------------------------------------------------------------


def _is_full(pool: ConcurrencyLimit, users: float) -> bool:
    """True if there are fewer threads than users, or requests that wait elsewhere take several each."""
    held, count = (0.0 if gauge is None else figures.point(gauge.mean) for gauge in (pool.held, pool.bound))
    waiting = 0.0 if pool.waiting is None else figures.point(pool.waiting.mean)
    return count < users or (held >= FILLED * count and waiting >= MOST_USERS * users)


def _pools(work: Work, stacks: StackSamples) -> Iterator[tuple[tuple[str, str], ConcurrencyLimit]]:
    """Yield pools of threads with their names: those of one name, of all processes that work."""
    # Workers may wait for events as well while nothing is asked.
    loops = {(s.pid, s.tid) for s in work.loaded if s.wait == "events"}
    at_rest = {_functions(s) for s in stacks.samples if s.time_s < 0}
    busy = {(at.thread, at.sample.time_s) for at in work.at}
    workers = {thread for thread, _ in busy}
    was_read = _read_while_they_wait(work.loaded)
    legible = {(s.pid, s.tid) for s in work.loaded if s.stack and s.pid in was_read}
    read_at = {(s.pid, s.time_s) for s in work.loaded if s.stack}
    pools: dict[tuple[str, str], list[ThreadSample]] = {}
    for sample in work.loaded:
        is_legible = (sample.pid, sample.time_s) in read_at or sample.pid not in was_read
        if is_legible and not sample.is_task and (sample.pid, sample.tid) not in loops:
            pools.setdefault((sample.process, pool_name(sample)), []).append(sample)
    blind = _blocked(stacks, {(s.pid, s.tid) for s in stacks.samples if s.stack and s.pid in was_read})
    for s in work.loaded:
        thread = s.pid, s.tid
        is_between = thread in workers and s.wait not in QUEUES and _functions(s) not in at_rest
        if is_between or (thread in blind and s.wait in BLOCKED):
            busy.add((thread, s.time_s))
    workers |= blind
    for name, members in pools.items():
        pids = {pid for pid, _ in {(s.pid, s.tid) for s in members} & workers}
        seen = legible | blind
        own = [s for s in members if s.pid in pids and (s.pid, s.tid) in seen]
        moments = _moments(own)
        if moments.total() < FEWEST_MOMENTS:
            continue
        count = round(sum(1 / moments[s.pid] for s in own))
        at_work = Counter((s.pid, s.time_s) for s in own if ((s.pid, s.tid), s.time_s) in busy)
        is_lasting = len({(s.pid, s.tid) for s in own}) <= COME_AND_GO * count
        held = _gauge("threads at work:", at_work, moments)
        if not count or not is_lasting:
            continue
        waiting = _others_waiting(work, members, moments)
        bound = Gauge("threads:", _mean("threads:", float(count), len(own)), float(count))
        yield name, ConcurrencyLimit("threads", held, waiting, bound=bound, seen_in="stacks")


def _others_waiting(work: Work, members: Sequence[ThreadSample], moments: Mapping[int, int]) -> Gauge | None:
    """Return the other threads of the same processes that wait within the process; none: there is none."""
    own = {(s.pid, s.tid) for s in members}
    waiting = Counter(
        at.moment
        for at in work.at
        if at.moment[0] in moments and at.thread not in own and at.sample.wait in ("lock", "other")
    )
    return _gauge("threads that wait meanwhile:", waiting, moments) if waiting else None


def _functions(sample: ThreadSample) -> tuple[str, ...]:
    return tuple(frame.name for frame in sample.stack)


def pool_name(sample: ThreadSample) -> str:
    """Name of a thread without its last number, which counts threads; numbers before it count pools."""
    return re.sub(r"\d+(?!.*\d)", "", sample.thread)


def _read_while_they_wait(samples: Sequence[ThreadSample]) -> set[int]:
    """Return the processes whose frames were read, without those that are sampled on a CPU only."""
    waiting = [s for s in samples if not s.is_running]
    unread = {s.pid for s in waiting if not s.stack} - {s.pid for s in waiting if s.stack}
    return {s.pid for s in samples if s.stack} - unread


def _blocked(stacks: StackSamples, legible: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return threads without frames that are blocked under load most of the time, and hardly ever without.

    Several of them in one process are a pool of threads for calls that block.
    """
    seen: Counter[tuple[int, int, bool]] = Counter()
    blocked: Counter[tuple[int, int, bool]] = Counter()
    for s in stacks.samples:
        is_loaded = stacks.begin_s <= s.time_s <= stacks.end_s
        if (s.pid, s.tid) not in legible and (is_loaded or s.time_s < 0):
            seen[s.pid, s.tid, is_loaded] += 1
            blocked[s.pid, s.tid, is_loaded] += s.wait in BLOCKED
    working = set()
    for pid, tid, is_loaded in seen:
        with_load, idle = (pid, tid, True), (pid, tid, False)
        share = blocked[with_load] / (seen[with_load] or 1)
        if is_loaded and share >= AT_REST and blocked[idle] < AT_REST * share * (seen[idle] or 1):
            working.add((pid, tid))
    several = Counter(pid for pid, _ in working)
    return {(pid, tid) for pid, tid in working if several[pid] > 1}


# --- what they wait for ------------------------------------------------------------------------------------


def _waits_for(at: At) -> tuple[Kind, str] | None:
    """Return what a thread waits for by the library's function, or a lock by the kernel; none: neither."""
    is_elsewhere = at.sample.wait in BLOCKED  # such as opening a connection
    for kind, functions in _WAITING.items():
        for frame in reversed(() if is_elsewhere else at.within):
            if (frame.module, frame.function.rpartition(".")[2]) in functions:
                return kind, frame.name
    is_bare = not at.within and not at.sample.is_running
    return ("lock", "") if is_bare and at.sample.wait in ("lock", "file lock") else None


def _place_of(line: Line, work: Work) -> Iterator[ConcurrencyLimit]:
    """Yield the line as a place that is held: by the others at work, at most."""
    moments = Counter(pid for pid, _ in {at.moment for at in line.waiting})
    holders = Counter(at.moment for at in line.others)
    if not holders:
        return  # they are in no code that was read: how many there are is not known
    where = f"in {line.function}, {_common(line.waiting)}" if line.function else _common(line.waiting)
    plural = plural_of([at.sample for at in line.waiting])
    held = _gauge(f"{plural} past it, most {_common(line.others)}:", holders, moments)
    waiting = _gauge(f"{plural} waiting {where}:", Counter(at.moment for at in line.waiting), work.moments)
    most = sum(_usual(holders, moments, pid) for pid in moments)
    if line.are_past:  # always as many, but for threads that moved while they were read
        most = float(round(sum(count / moments[pid] for (pid, _), count in holders.items())))
    bound = Gauge("most at once:", _mean("most", most, len(line.others)), most) if most else None
    yield ConcurrencyLimit(
        line.kind,
        held,
        waiting,
        bound=None if line.kind == "lock" else bound,
        seen_in="stacks",
        program=_program_of(line.waiting),
    )


def _program_of(samples: Sequence[At]) -> str:
    """Return the one process that some samples are of, with its file: `python app.py`; empty: several."""
    names = {(at.sample.process, PurePosixPath(at.own.file).name) for at in samples}
    return " ".join(names.pop()) if len({at.moment[0] for at in samples}) == 1 == len(names) else ""


def _common(samples: Sequence[At]) -> str:
    """The line that most of some samples are at: `at book() main.py:36`."""
    own = Counter((at.own.function, at.own.file, at.own.line) for at in samples)
    function, file, number = own.most_common(1)[0][0]
    return f"at {text_of(Frame(function, '', file, number))}"


def text_of(frame: Frame) -> str:
    """Function and line, without the path: `book() main.py:36`."""
    named = "" if frame.function == MAIN else f"{frame.function}() "
    return f"{named}{PurePosixPath(frame.file).name}:{frame.line}"


# --- counts ------------------------------------------------------------------------------------------------


def _gauge(name: str, counts: Counter[tuple[int, float]], moments: Mapping[int, int]) -> Gauge:
    """Return a count of threads at moments as the mean over them, the processes added up."""
    mean = sum(count / moments[pid] for (pid, _), count in counts.items())
    return Gauge(name, _mean(name, mean, counts.total()), float(max(counts.values(), default=0)))


def _mean(name: str, point: float, samples: int) -> Estimate:
    """Return a figure of one trial: without an interval."""
    return Estimate(name, "threads", point, None, None, 1, samples, "mean over moments")


def _usual(counts: Counter[tuple[int, float]], moments: Mapping[int, int], pid: int) -> float:
    """Return how many there are at once in a process, but for one of twenty moments."""
    seen = [count for (own, _), count in counts.items() if own == pid]
    return float(np.percentile([*seen, *[0] * (moments[pid] - len(seen))], USUAL, method="lower"))


def _in_own_code(samples: Iterable[ThreadSample]) -> Iterator[At]:
    for sample in samples:
        depth = next((i for i in reversed(range(len(sample.stack))) if sample.stack[i].is_own), None)
        if depth is not None:
            yield At(sample, depth)


def _moments(samples: Iterable[ThreadSample]) -> Counter[int]:
    """Return how often each process was sampled."""
    return Counter(pid for pid, _ in {(sample.pid, sample.time_s) for sample in samples})


def _per_moment(samples: Sequence[At], moments: Mapping[int, int]) -> Counter[tuple[str, int]]:
    """Return the mean number of threads at each line, over all processes."""
    means: Counter[tuple[str, int]] = Counter()
    for at in samples:
        means[at.line] += 1 / moments[at.sample.pid]  # type: ignore[assignment]
    return means
