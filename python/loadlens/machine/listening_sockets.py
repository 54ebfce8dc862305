"""Listening sockets of processes, from /proc."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_LISTEN = "0A"  # state in /proc/net/tcp
_PROC = Path("/proc")


def listeners() -> dict[str, int]:
    """The sockets that listen on this machine: inode to port."""
    ports = {}
    for name in ("tcp", "tcp6"):
        try:
            lines = (_PROC / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN:
                ports[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return ports


def ports_of(pid: int) -> tuple[int, ...]:
    """Ports that a process or anything it started listens on, ascending; empty also where we may not look."""
    ports = listeners()
    family = [sockets_of(member) or set() for member in with_descendants((pid,))]
    return tuple(sorted({ports[inode] for own in family for inode in own if inode in ports}))


def with_descendants(pids: Sequence[int]) -> set[int]:
    """Processes and all that they started."""
    parents = {int(name): _parent(name) for name in os.listdir(_PROC) if name.isdecimal()}
    family = set(pids)
    grows = True
    while grows:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family |= more
        grows = bool(more)
    return family


def _parent(pid: str) -> int:
    try:
        return int((_PROC / pid / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def sockets_of(pid: int) -> set[str] | None:
    """Inodes of a process's sockets; none: we may not look."""
    inodes = set()
    try:
        for entry in (_PROC / str(pid) / "fd").iterdir():
            try:
                target = str(entry.readlink())
            except OSError:
                continue  # closed meanwhile
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    except FileNotFoundError:
        return set()  # it ended meanwhile
    except OSError:
        return None
    return inodes
