"""Frames of the threads of a Python process, read by py-spy from outside; the process is not changed."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final

from loadlens.model.plain import Unreadable, read
from loadlens.model.stacks import Frame, Stack, Wait
from loadlens.signals.collect.threads import NOT_PERMITTED, NotRead, Threads, python_tasks
from loadlens.signals.collect.threads.python_code import frame_of

WITHIN_S: Final = 3.0
LOOK_AGAIN_S: Final = 0.5
_WAITING: Final = ("threading.py", "queue.py")  # code of these waits for locks of its own


@dataclass(frozen=True, slots=True)
class _Frame:
    name: str
    filename: str
    line: int


@dataclass(frozen=True, slots=True)
class _Thread:
    os_thread_id: int | None
    thread_name: str | None
    active: bool
    owns_gil: bool
    frames: tuple[_Frame, ...]


class PythonReader:
    """Reads the threads of one Python process."""

    is_asked: ClassVar = False

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._program = program()
        self._tasks: python_tasks.TaskReader | None = None
        self._looked_s = -math.inf  # for tasks: asyncio may be imported later

    def read(self) -> Threads:
        """Return the frames of every thread; raise NotRead if they cannot be read."""
        if self._program is None:
            raise NotRead("py-spy is not installed")
        options = ("--json", "--nonblocking", "--full-filenames", "--pid", str(self._pid))
        try:
            done = subprocess.run(
                [self._program, "dump", *options],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=WITHIN_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as fault:
            raise NotRead(f"py-spy: {fault}") from None
        if done.returncode != 0:
            raise NotRead(_reason(done.stderr.decode(errors="replace")))
        try:
            every = read(tuple[_Thread, ...], json.loads(done.stdout))
        except (ValueError, Unreadable) as fault:
            raise NotRead(f"py-spy wrote what cannot be read: {fault}") from None
        return self._with_tasks(_threads(every))

    def _with_tasks(self, threads: Threads) -> Threads:
        """Add the tasks of asyncio that wait, if it is used."""
        if self._tasks is None and time.monotonic() - self._looked_s >= LOOK_AGAIN_S:
            self._looked_s = time.monotonic()
            self._tasks = python_tasks.reader_of(self._pid)
        if self._tasks is None:
            return threads
        tasks = self._tasks.read()
        return replace(
            threads,
            stacks={**threads.stacks, **tasks.stacks},
            names={**threads.names, **tasks.names},
            waits={**threads.waits, **tasks.waits},
            running={**threads.running, **tasks.running},
            tasks=tasks.tasks,
        )

    def sources(self, frame: Frame) -> Iterator[Path]:
        """Yield where the source of a frame may be, as this machine sees it."""
        process = Path(f"/proc/{self._pid}")
        yield (
            process / "root" / frame.file.lstrip("/")
            if frame.file.startswith("/")
            else (process / "cwd" / frame.file)
        )

    def close(self) -> None:
        """Close the memory that tasks are read from."""
        if self._tasks is not None:
            self._tasks.close()


def reader_of(pid: int) -> PythonReader | None:
    """Return a reader if a process is a Python interpreter, or has one within."""
    try:
        is_python = Path(os.readlink(f"/proc/{pid}/exe")).name.startswith(("python", "pypy"))
        if not is_python:
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
                is_python = any("/libpython" in line for line in maps)
    except OSError:
        return None
    return PythonReader(pid) if is_python else None


def program() -> str | None:
    """Return the path of py-spy: of this environment, or on the PATH."""
    beside = shutil.which("py-spy", path=str(Path(sys.executable).parent))
    return beside or shutil.which("py-spy")


def _threads(every: tuple[_Thread, ...]) -> Threads:
    by_tid = {thread.os_thread_id: thread for thread in every if thread.os_thread_id is not None}
    holder = next((tid for tid, thread in by_tid.items() if thread.owns_gil), None)
    waits: dict[int, Wait] = {tid: "lock" for tid, thread in by_tid.items() if _asks(thread)}
    if holder is not None:
        waits |= dict.fromkeys(by_tid.keys() - waits.keys() - {holder}, "interpreter")
    return Threads(
        {tid: _stack(thread) for tid, thread in by_tid.items()},
        {tid: thread.thread_name for tid, thread in by_tid.items() if thread.thread_name},
        waits,
        {tid: thread.active for tid, thread in by_tid.items()},
    )


def _stack(thread: _Thread) -> Stack:
    return tuple(frame_of(frame.name, frame.filename, frame.line) for frame in reversed(thread.frames))


def _asks(thread: _Thread) -> bool:
    """True if a thread's code waits for a lock of its own."""
    return bool(thread.frames) and PurePosixPath(thread.frames[0].filename).name in _WAITING


def _reason(complaint: str) -> str:
    """Return the first line of a complaint, or that reading is not permitted."""
    if "ermission" in complaint or "not permitted" in complaint:
        return NOT_PERMITTED
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    return lines[0].removeprefix("Error: ") if lines else "py-spy failed without a word"
