"""Memory and registers of another process on this machine, read from outside."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from loadlens.signals.collect.threads import NOT_PERMITTED, NotRead

R = TypeVar("R")
UNCLEAR: Final = (NotRead, LookupError, ValueError, struct.error)  # by what changes while it is read
WITHIN_S: Final = 0.2  # for a thread that runs to stop
_SEIZE, _INTERRUPT, _REGISTERS, _DETACH = 0x4206, 0x4207, 12, 17
_LOOK_S: Final = 0.0005
_WALL: Final = 0x40000000  # threads as well as processes
_OWN_STOP: Final = 128  # of `_INTERRUPT`: no signal is to be delivered
_WORDS, _IP, _SP = 27, 16, 19  # of the registers of x86-64


class Memory:
    """Memory of one process."""

    def __init__(self, pid: int) -> None:
        try:
            self._file = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:
            raise NotRead(NOT_PERMITTED) from None
        except OSError as fault:
            raise NotRead(f"memory: {fault.strerror}") from None

    def read(self, address: int, size: int) -> bytes:
        """Return bytes; raise NotRead if not all of them are there."""
        try:
            taken = os.pread(self._file, size, address)
        except (OSError, OverflowError, MemoryError):
            taken = b""
        if len(taken) < size:
            raise NotRead(f"no {size} bytes at {address:#x}")
        return taken

    def words(self, address: int, count: int) -> tuple[int, ...]:
        """Return words of 64 bits; raise NotRead if not all of them are there."""
        return struct.unpack(f"<{count}Q", self.read(address, 8 * count))

    def close(self) -> None:
        """Close it; it may be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def read_by(reader: Callable[[Memory], R], pid: int) -> R | None:
    """Return a reader of the memory of a process; none: it does not understand what is there.

    Raise NotRead if the memory may not be read.
    """
    memory = Memory(pid)
    try:
        return reader(memory)
    except UNCLEAR:
        memory.close()
        return None


@contextlib.contextmanager
def stopped(tid: int) -> Iterator[tuple[int, int]]:
    """Stop a thread, and yield its instruction and stack pointers; raise NotRead if it does not stop.

    The kernel lets it go on if this process ends meanwhile.
    """
    trace = _ptrace()
    if trace(_SEIZE, tid, None, None) != 0:
        raise NotRead(f"ptrace: {os.strerror(ctypes.get_errno())}")
    signal = 0
    try:
        trace(_INTERRUPT, tid, None, None)
        status = _stop_of(tid)
        signal = 0 if status >> 16 == _OWN_STOP else os.WSTOPSIG(status)
        registers = (ctypes.c_ulonglong * _WORDS)()
        if trace(_REGISTERS, tid, None, ctypes.cast(registers, ctypes.c_void_p)) != 0:
            raise NotRead(f"ptrace: {os.strerror(ctypes.get_errno())}")
        yield registers[_IP], registers[_SP]
    finally:
        if trace(_DETACH, tid, None, signal) != 0:
            _let_go_once_stopped(trace, tid)


@functools.cache
def _ptrace() -> Callable[..., int]:
    trace = ctypes.CDLL(None, use_errno=True).ptrace
    trace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    trace.restype = ctypes.c_long
    return trace


def _stop_of(tid: int) -> int:
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        try:
            stopped_tid, status = os.waitpid(tid, os.WNOHANG | _WALL)
        except OSError:
            break
        if stopped_tid == tid:
            if os.WIFSTOPPED(status):
                return status
            break  # it ended
        time.sleep(_LOOK_S)
    raise NotRead("a thread did not stop")


def _let_go_once_stopped(trace: Callable[..., int], tid: int) -> None:
    """Wait for a thread that is to stop, and let it go: it would stay stopped for as long as it is traced."""
    with contextlib.suppress(OSError):
        _, status = os.waitpid(tid, _WALL)
        if os.WIFSTOPPED(status):
            trace(_DETACH, tid, None, 0 if status >> 16 == _OWN_STOP else os.WSTOPSIG(status))


def thread_of(pid: int, number: int) -> int:
    """Return the number that a thread has here, by the one that it has for itself; raise NotRead if it ended.

    In a container both differ.
    """
    tasks = Path(f"/proc/{pid}/task")
    try:
        if len(_numbers(tasks / str(pid))) == 1:
            if (tasks / str(number)).exists():
                return number
        else:
            for each in tasks.iterdir():
                if _numbers(each)[-1] == number:
                    return int(each.name)
    except OSError:
        pass
    raise NotRead(f"thread {number} ended")


def _numbers(task: Path) -> list[int]:
    """Return the numbers of a thread, from ours to that in its own namespace."""
    lines = (task / "status").read_text().splitlines()
    return [int(number) for line in lines if line.startswith("NSpid:") for number in line.split()[1:]]
