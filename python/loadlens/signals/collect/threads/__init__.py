"""Threads of a process: their states from the kernel, their frames from a reader of each language.

A reader reads all threads at a moment. Where only the process itself can say where it is, a profiler samples
it, and hands over what it has at the end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, Protocol

from loadlens.model.stacks import Frame, Stack, Wait

NOT_PERMITTED: Final = "not permitted"
NEAR_NS: Final = 15_000_000  # from a moment to the sample of a profiler that is taken for it


class NotRead(Exception):
    """The frames could not be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Threads:
    """All threads of a process that run code of its language."""

    stacks: Mapping[int, Stack] = field(default_factory=dict)  # by thread id of the system
    names: Mapping[int, str] = field(default_factory=dict)  # as the language knows them
    waits: Mapping[int, Wait] = field(default_factory=dict)  # where the language knows better than the kernel
    running: Mapping[int, bool] = field(default_factory=dict)  # at the moment of the frames, if it is known
    is_all: bool = False  # what the language has in place of threads, with numbers of its own
    tasks: frozenset[int] = frozenset()  # what it has besides, with numbers beyond those of threads


class Reader(Protocol):
    """Reads the threads of one process."""

    is_asked: ClassVar[bool]  # the process itself answers, which takes CPU time from it

    def read(self) -> Threads:
        """Return the frames of every thread; raise NotRead if they cannot be read."""

    def sources(self, frame: Frame) -> Iterator[Path]:
        """Yield where the source of a frame may be, as this machine sees it."""

    def close(self) -> None:
        """End what runs or is open for the reading; it may be called again."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Stacks that a profiler took at moments of its own, on the monotonic clock, ascending."""

    stacks: Mapping[int, Sequence[tuple[int, Stack]]] = field(default_factory=dict)  # by thread id
    names: Mapping[int, str] = field(default_factory=dict)
    only_running: bool = False  # threads that wait have no stack
    near_ns: int = NEAR_NS

    def at(self, tid: int, time_ns: int) -> Stack | None:
        """Return the stack of a thread next to a moment; none if none was taken near it."""
        taken = self.stacks.get(tid, ())
        place = bisect_left(taken, time_ns, key=lambda each: each[0])
        near = [
            each for each in taken[max(0, place - 1) : place + 1] if abs(each[0] - time_ns) <= self.near_ns
        ]
        return min(near, key=lambda each: abs(each[0] - time_ns))[1] if near else None


class Profiler(Protocol):
    """Samples the threads of one process by itself, because they cannot be read at a moment from outside."""

    def begin(self) -> None:
        """Begin to sample; raise NotRead if that cannot be."""

    def end(self) -> Profile:
        """End, and return what was sampled; raise NotRead if it cannot be read."""

    def sources(self, frame: Frame) -> Iterator[Path]:
        """Yield where the source of a frame may be, as this machine sees it."""
