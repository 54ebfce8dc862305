"""Stacks of the threads of the services, at moments of a trial that gives no figures.

Of each thread the kernel says whether it runs, and what it waits for; a reader of its language says in which
code. Without one the kernel also says where the connection leads that a thread waits for. Each different
stack is written once, and each sample refers to it.
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from loadlens.machine.listening_sockets import with_descendants
from loadlens.model.readings import StacksMetrics
from loadlens.model.stacks import Frame, Stack, Wait
from loadlens.signals.collect.monitor import NO_LABELS, Monitor, Row, labels, reading
from loadlens.signals.collect.scene import Root, Scene
from loadlens.signals.collect.threads import (
    NOT_PERMITTED,
    NotRead,
    Profile,
    Profiler,
    Reader,
    Threads,
    beam_frames,
    go_frames,
    go_memory,
    jvm_frames,
    limit_settings,
    native_frames,
    node_frames,
    python_frames,
    waits,
)
from loadlens.signals.collect.threads.waits import State

EVERY_S: Final = 0.05
MOST_CORES: Final = 0.5  # that the sampling may use: beyond it, moments are left out
MOST_TAKEN: Final = 0.02  # cores of a service that its answers may take: beyond it, it is asked less often
RAREST_S: Final = 0.1  # between two moments, so that a trial has enough of them
FIRST_ASKED: Final = 8  # moments, without load, by which the cost of an answer is known
HALF_NS: Final = round(EVERY_S * 5e8)  # of a tick, which may come early
LOOK_AGAIN_S: Final = 0.5  # for processes that a service has started
GIVE_UP_AFTER: Final = 3  # failures of a process without a success
MOST_THREADS: Final = 500  # of a process, at one moment
MOST_LINES: Final = 1000  # of source
LONGEST_LINE: Final = 200
NOTHING: Final = Threads()
NO_PROFILE: Final = Profile()
READERS: Final = (  # for each language
    python_frames.reader_of,
    jvm_frames.reader_of,
    beam_frames.reader_of,
    go_memory.reader_of,
    go_frames.reader_of,  # where the memory may not be read
)
PROFILERS: Final = (node_frames.profiler_of, native_frames.profiler_of)


@dataclass(frozen=True, slots=True)
class Roots:
    """Settings of the stacks monitor."""

    monitor: ClassVar[str] = "stacks"
    processes: tuple[Root, ...]
    hide: tuple[str, ...] = ()  # names whose values are kept nowhere

    @property
    def waits_s(self) -> float:
        """For the programs that read profiles: to end, to print samples and to find lines."""
        return 3 * native_frames.WITHIN_S * len(self.processes)


def wanted(scene: Scene) -> Roots | None:
    """The processes of the services, in a trial that is there for their stacks."""
    roots = tuple(
        Root(p.service, p.replica, p.pid)
        for p in scene.replicas
        if p.pid is not None and p.is_here and p.has_code
    )
    return Roots(roots, scene.hide) if scene.samples_stacks and roots else None


def may_read(pids: Sequence[int]) -> bool:
    """False if no process, nor any that it started, is known to run code of a language that is read.

    Then their threads are sampled all the same, without frames.
    """
    return any(
        not _may_look(pid) or _may_be_read(pid) or _profiler_of(pid) is not None
        for pid in with_descendants(pids)
    )


def _may_be_read(pid: int) -> bool:
    reader, why_not = _reader_of(pid)
    if reader is not None:
        reader.close()
    return reader is not None or bool(why_not)


def _reader_of(pid: int) -> tuple[Reader | None, str]:
    """Return the first reader that fits a process, and why one that would fit cannot read it."""
    why_not = ""
    for find in READERS:
        try:
            reader = find(pid)
        except NotRead as fault:
            why_not = str(fault)
            continue
        if reader is not None:
            return reader, ""
    return None, why_not


def _profiler_of(pid: int) -> Profiler | None:
    profilers = (find(pid) for find in PROFILERS)
    return next((profiler for profiler in profilers if profiler is not None), None)


@dataclass(frozen=True, slots=True)
class _Moment:
    """The states of a process's threads, for which a profiler will know the stacks."""

    time_ns: int
    states: Mapping[int, State]


class Pause:
    """Time between two samples of a process that answers itself, by the CPU time that an answer takes.

    The cost is measured at the first moments, which are without load: a median, other work included.
    """

    def __init__(self) -> None:
        self._cpu_s: list[float] = []
        self._due_ns = 0

    def is_over(self, now_ns: int, cpu_s: Callable[[], float]) -> bool:
        """Return true if a process is to be sampled now."""
        if len(self._cpu_s) < FIRST_ASKED:
            self._cpu_s.append(cpu_s())
            return True
        if now_ns < self._due_ns:
            return False
        each_s = statistics.median(after - before for before, after in itertools.pairwise(self._cpu_s))
        self._due_ns = now_ns + round(min(RAREST_S, each_s / MOST_TAKEN) * 1e9) - HALF_NS
        return True


class _Process:
    """A process with a reader or a profiler of its language, if there is one."""

    def __init__(self, pid: int, owner: Root) -> None:
        self.pid = pid
        self.failures: Counter[str] = Counter()
        self.labels: dict[str, str | int] = {
            "service": owner.service,
            "replica": owner.replica,
            "pid": pid,
            "process": _name(f"/proc/{pid}"),
        }
        if not _may_look(pid):
            self.failures[NOT_PERMITTED] += 1
        self.reader, why_not = _reader_of(pid)
        if why_not:
            self.failures[why_not] += 1
        self.profiler = None if self.reader is not None else _profiler_of(pid)
        self._sources = self.profiler
        self.moments: list[_Moment] = []  # that wait for the profiler
        self.pause = Pause()
        self._was_read = False
        self._begin()

    def _begin(self) -> None:
        try:
            if self.profiler is not None:
                self.profiler.begin()
        except NotRead as fault:
            self.failures[str(fault)] += 1
            self.profiler = None

    def profile(self) -> Profile:
        """End the profiler, and return what it sampled; nothing if it cannot be read, or was ended."""
        profiler, self.profiler = self.profiler, None
        try:
            return NO_PROFILE if profiler is None else profiler.end()
        except NotRead as fault:
            self.failures[str(fault)] += 1
            return NO_PROFILE

    def close(self) -> None:
        """End the reader, or the profiler if it still runs."""
        self.profile()
        if self.reader is not None:
            self.reader.close()

    def sources(self, frame: Frame) -> Iterator[Path]:
        """Yield where the source of a frame may be."""
        for each in (self.reader, self._sources):
            if each is not None:
                yield from each.sources(frame)

    @property
    def is_asked(self) -> bool:
        """True if the process itself answers where its threads are."""
        return self.reader is not None and self.reader.is_asked

    def cpu_s(self) -> float:
        """Return the CPU time of its threads that are there."""
        return waits.cpu_s(self.pid)

    def name_of(self, tid: int) -> str:
        """Return the name that a thread has for the system."""
        return _name(f"/proc/{self.pid}/task/{tid}")

    def read(self) -> Threads:
        """Return what is known of its code; nothing if it could not be read."""
        if self.reader is None or (not self._was_read and self.failures.total() >= GIVE_UP_AFTER):
            return NOTHING
        try:
            threads = self.reader.read()
        except NotRead as fault:
            self.failures[str(fault)] += 1
            return NOTHING
        self._was_read = True
        return threads


class StacksMonitor(Monitor):
    """The monitor."""

    name = "stacks"
    settings = Roots

    def __init__(self) -> None:
        self._roots: tuple[Root, ...] = ()
        self._hide: tuple[str, ...] = ()
        self._processes: dict[int, _Process] = {}
        self._sampled: dict[int, _Process] = {}  # those that ended, too
        self._looked_ns = 0
        self._began_ns = 0
        self._spent_s = 0.0
        self._stacks: dict[Stack, int] = {}  # with their numbers
        self._written = 0  # of them

    def open(self, spec: Roots) -> None:
        """Take the processes."""
        self._roots, self._hide = spec.processes, spec.hide
        self._began_ns = time.monotonic_ns()
        self._spent_s = _cpu_s()

    def close(self) -> None:
        """End the readers, and the profilers that still run."""
        for process in self._sampled.values():
            process.close()

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Sample every thread once, unless the sampling takes too much; at the end, what is said once."""
        if not last and self._cores(now_ns) <= MOST_CORES:
            self._look(now_ns)
            for process in self._processes.values():
                if not process.is_asked or process.pause.is_over(now_ns, process.cpu_s):
                    yield from self._sample(process)
        if last:
            for process in self._sampled.values():
                yield from self._profiled(process)
                process.close()  # only now is known what its programs took
        yield from self._new_stacks()
        if last:
            yield from self._failures()
            yield from self._lines()
        yield reading(StacksMetrics.sampling_cpu_s, NO_LABELS, _cpu_s() - self._spent_s)
        if last:
            yield from self._settings()

    def _cores(self, now_ns: int) -> float:
        """Return the CPU time that the sampling took, per second; of the first second in full."""
        return (_cpu_s() - self._spent_s) / max(1.0, (now_ns - self._began_ns) / 1e9)

    def _look(self, now_ns: int) -> None:
        """Add processes that the services have started, and drop those that ended."""
        if self._processes and now_ns - self._looked_ns < LOOK_AGAIN_S * 1e9:
            return
        self._looked_ns = now_ns
        present: dict[int, Root] = {}
        for root in self._roots:
            for pid in sorted(with_descendants([root.pid])):
                present.setdefault(pid, root)
        for pid in self._processes.keys() - present.keys():
            ended = self._processes.pop(pid)
            if ended.reader is not None:
                ended.reader.close()
        for pid, root in present.items():
            if pid not in self._processes and os.path.isdir(f"/proc/{pid}"):
                self._sampled[pid] = self._processes[pid] = _Process(pid, root)

    def _sample(self, process: _Process) -> Iterator[Row]:
        """Yield each thread; its state is read before its frames and after them, which takes some time."""
        before = {} if process.reader is None else _states(process.pid)
        threads = process.read()
        after = {} if threads.is_all else _states(process.pid)
        if process.reader is None:
            after = waits.with_other_ends(process.pid, after)  # at once: a connection may be for one call
        time_ns = time.monotonic_ns()
        if process.profiler is not None:
            process.moments.append(_Moment(time_ns, after))
            return
        for tid in sorted(threads.stacks.keys() | after.keys())[:MOST_THREADS]:
            states = [each[tid] for each in (before, after) if tid in each]
            if states or threads.is_all or tid in threads.tasks:
                yield self._row(process, tid, states, threads, time_ns)

    def _profiled(self, process: _Process) -> Iterator[Row]:
        """Yield each thread at the moments of a process that was profiled."""
        profile = process.profile()
        tids = {tid for moment in process.moments for tid in moment.states}
        names = {tid: profile.names.get(tid) or process.name_of(tid) for tid in tids}
        for moment in process.moments:
            for tid, state in moment.states.items():
                is_sampled = state.is_running or not profile.only_running
                stack = profile.at(tid, moment.time_ns) if is_sampled else None
                threads = Threads({} if stack is None else {tid: stack}, names)
                yield self._row(process, tid, [state], threads, moment.time_ns)
        process.moments.clear()

    def _row(
        self, process: _Process, tid: int, states: Sequence[State], threads: Threads, time_ns: int
    ) -> Row:
        """Return one thread at a moment, with its states around it."""
        is_running = threads.running[tid] if tid in threads.running else states[-1].is_running
        stack = threads.stacks.get(tid)
        if is_running:
            wait: Wait = ""
        else:
            is_own = threads.is_all or tid in threads.tasks
            wait = threads.waits[tid] if is_own else _wait(states, threads.waits.get(tid))
        own = labels(
            **process.labels,
            tid=tid,
            thread=threads.names.get(tid) or process.name_of(tid),
            wait=wait,
            to=states[-1].to if states else "",
            stack=self._stacks.setdefault(stack, len(self._stacks) + 1) if stack else "",
        )
        return reading(StacksMetrics.thread_sample, own, int(is_running), time_ns)

    def _new_stacks(self) -> Iterator[Row]:
        for stack, number in list(self._stacks.items())[self._written :]:
            text = "\n".join(frame.text for frame in stack)
            yield reading(StacksMetrics.stack_frames, labels(id=number, frames=text), len(stack))
        self._written = len(self._stacks)

    def _failures(self) -> Iterator[Row]:
        for process in self._sampled.values():
            for why, count in process.failures.items():
                yield reading(StacksMetrics.stack_failures, labels(**process.labels, why=why), count)

    def _lines(self) -> Iterator[Row]:
        """Yield the lines of the service's own code that threads were at."""
        own = {frame: None for stack in self._stacks for frame in stack if frame.is_own and frame.line > 0}
        by_file: dict[str, dict[int, Frame]] = {}
        for frame in list(own)[:MOST_LINES]:
            by_file.setdefault(frame.file, {})[frame.line] = frame
        for file, at in by_file.items():
            frame = next(iter(at.values()))
            paths = (path for process in self._processes.values() for path in process.sources(frame))
            for line, text in _source(paths, at).items():
                yield reading(StacksMetrics.source_line, labels(file=file, line=line, text=text), 1)

    def _settings(self) -> Iterator[Row]:
        """Yield the lines that may set a limit of the service."""
        processes = list(self._processes.values())
        frames = {f.file: f for stack in self._stacks for f in stack if f.is_own}
        own = [path for frame in frames.values() for each in processes for path in each.sources(frame)]
        for each in limit_settings.lines([process.pid for process in processes], own, self._hide):
            text = labels(file=each.file, line=each.line, text=each.text)
            yield reading(StacksMetrics.setting_line, text, 1)


def _may_look(pid: int) -> bool:
    """False for a process of another user, whose language is not even known."""
    try:
        os.readlink(f"/proc/{pid}/exe")
    except PermissionError:
        return False
    except OSError:
        pass  # it ended
    return True


def _states(pid: int) -> dict[int, State]:
    """Return the state of each thread of a process; nothing if it ended."""
    try:
        tids = sorted(map(int, os.listdir(f"/proc/{pid}/task")))[:MOST_THREADS]
    except OSError:
        return {}
    states = ((tid, waits.state_of(pid, tid)) for tid in tids)
    return {tid: state for tid, state in states if state is not None}


def _wait(states: Sequence[State], of_language: Wait | None) -> Wait:
    """Return what a thread waits for; `other` if the states around its frames differ.

    A language knows what its locks stand for, and by its frames whether a thread waits for one. The lock of
    an interpreter is waited for a few milliseconds at a time.
    """
    if of_language == "lock":
        return of_language
    seen = {state.wait for state in states if not state.is_running}
    wait: Wait = seen.pop() if len(seen) == 1 else "other"
    if of_language is None or wait != "lock":
        return wait
    has_timeout = any(state.has_timeout for state in states)
    return of_language if of_language != "interpreter" or has_timeout else wait


def _source(paths: Iterable[Path], wanted_lines: Mapping[int, Frame]) -> dict[int, str]:
    """Return lines of the first of some files that can be read; empty if none can."""
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as source:
                return {
                    number: text.strip()[:LONGEST_LINE]
                    for number, text in enumerate(source, 1)
                    if number in wanted_lines
                }
        except OSError:
            continue
    return {}


def _cpu_s() -> float:
    """CPU time of this process and of the programs that it called."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _name(path: str) -> str:
    try:
        with open(f"{path}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        return ""
