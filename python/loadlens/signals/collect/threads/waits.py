"""State of a thread from the kernel: whether it runs, and what its system call waits for."""

from __future__ import annotations

import os
import platform
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from loadlens.machine import peers
from loadlens.model.stacks import CLIENT, Wait

# Numbers of system calls on each processor, by what they wait for.
_CALLS: Final[dict[str, dict[Wait, tuple[int, ...]]]] = {
    "x86_64": {
        "lock": (202, 449),  # futex, futex_waitv
        "timer": (35, 230),  # nanosleep, clock_nanosleep
        "socket": (42, 44, 45, 46, 47, 299, 307),  # connect, sendto, recvfrom, sendmsg, recvmsg, *mmsg
        "events": (232, 281, 441),  # epoll_wait, epoll_pwait, epoll_pwait2
        "connections": (43, 288),  # accept, accept4
        "storage": (17, 18, 74, 75, 162, 277, 295, 296),  # pread, pwrite, fsync, fdatasync, sync, ...
        "file lock": (72, 73),  # fcntl, flock
        "process": (61, 247),  # wait4, waitid
    },
    "aarch64": {
        "lock": (98, 449),
        "timer": (101, 115),
        "socket": (203, 206, 207, 211, 212, 243, 269),
        "events": (22, 441),
        "connections": (202, 242),
        "storage": (67, 68, 69, 70, 81, 82, 83, 84),
        "file lock": (25, 32),
        "process": (95, 260),
    },
}
# Calls on any descriptor, and calls that wait for any of several.
_ON_DESCRIPTOR: Final = {"x86_64": (0, 1, 19, 20), "aarch64": (63, 64, 65, 66)}  # read, write, readv, writev
_ON_SEVERAL: Final = {"x86_64": (7, 23, 270, 271), "aarch64": (72, 73)}  # poll, select, pselect, ppoll
_FUTEX_TIMEOUT: Final = 3  # place of its argument
# Where the system call may not be read: the kernel's function, by a part of its name.
_FUNCTIONS: Final[tuple[tuple[str, Wait], ...]] = (
    ("futex", "lock"),
    ("nanosleep", "timer"),
    ("ep_poll", "events"),
    ("accept", "connections"),
    ("sk_wait", "socket"),
    ("wait_woken", "socket"),
    ("unix_stream", "socket"),
    ("poll_schedule", "socket"),
    ("do_wait", "process"),
    ("locks_lock", "file lock"),
    ("fcntl_setlk", "file lock"),
)
_MACHINE: Final = platform.machine()


@dataclass(frozen=True, slots=True)
class State:
    """State of one thread."""

    is_running: bool  # or ready to
    wait: Wait
    has_timeout: bool = False  # a lock that is waited for at most for some time
    descriptor: int | None = None  # of the socket that it waits for
    to: str = ""  # the other end of the connection, or the epoll, that it waits for; empty: not known


def state_of(pid: int, tid: int) -> State | None:
    """Return the state of a thread; none if it has ended."""
    path = f"/proc/{pid}/task/{tid}"
    try:
        letter = _read(f"{path}/stat").rpartition(b")")[2].split(None, 1)[0]
    except (OSError, IndexError):
        return None
    if letter in (b"Z", b"X"):
        return None
    if letter == b"R":
        return State(is_running=True, wait="")
    if letter == b"D":
        return State(is_running=False, wait="storage")
    try:
        call = _read(f"{path}/syscall").split()
    except OSError:
        return State(is_running=False, wait=_by_function(path))
    if not call or call[0] == b"running":
        return State(is_running=True, wait="")  # woken between the two reads
    number = int(call[0])
    if number < 0:
        return State(is_running=False, wait=_by_function(path))
    return _by_call(pid, number, [int(word, 16) for word in call[1:7]], path)


def with_other_ends(pid: int, states: Mapping[int, State]) -> dict[int, State]:
    """Return the states of a process's threads with the other ends of connections that they wait for."""
    inodes = {
        tid: inode
        for tid, state in states.items()
        if state.wait == "socket" and (inode := _inode(pid, state.descriptor))
    }
    ends = peers.other_ends(pid, inodes.values()) if inodes else {}
    by_thread = {tid: ends[inode] for tid, inode in inodes.items() if inode in ends}
    return {
        tid: replace(state, to=by_thread[tid] or CLIENT) if tid in by_thread else state
        for tid, state in states.items()
    }


def _inode(pid: int, descriptor: int | None) -> str:
    """Return the inode of a descriptor that is a socket; empty: it is none, or not visible."""
    try:
        target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
    except OSError:
        return ""
    return target.removeprefix("socket:[").removesuffix("]") if target.startswith("socket:[") else ""


def cpu_s(pid: int) -> float:
    """Return the CPU time of the threads of a process that are there; 0 if it ended."""
    spent_ns = 0
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            spent_ns += int(_read(f"/proc/{pid}/task/{tid}/schedstat").split()[0])
    except OSError:
        pass
    return spent_ns / 1e9


def _by_call(pid: int, number: int, arguments: list[int], path: str) -> State:
    for wait, numbers in _CALLS.get(_MACHINE, {}).items():
        if number in numbers:
            has_timeout = wait == "lock" and arguments[_FUTEX_TIMEOUT] != 0
            descriptor = arguments[0] if wait == "socket" else None
            to = f"epoll {arguments[0]}" if wait == "events" else ""
            return State(is_running=False, wait=wait, has_timeout=has_timeout, descriptor=descriptor, to=to)
    if number in _ON_DESCRIPTOR.get(_MACHINE, ()):
        return State(is_running=False, wait=_of_descriptor(pid, arguments[0]), descriptor=arguments[0])
    if number in _ON_SEVERAL.get(_MACHINE, ()):
        return State(is_running=False, wait="socket")
    return State(is_running=False, wait=_by_function(path))


def _of_descriptor(pid: int, number: int) -> Wait:
    try:
        mode = os.stat(f"/proc/{pid}/fd/{number}").st_mode
    except OSError:
        return "other"
    if stat.S_ISSOCK(mode):
        return "socket"
    return "storage" if stat.S_ISREG(mode) or stat.S_ISBLK(mode) else "other"


def _by_function(path: str) -> Wait:
    try:
        name = _read(f"{path}/wchan").decode(errors="replace")
    except OSError:
        return "other"
    return next((wait for part, wait in _FUNCTIONS if part in name), "other")


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
