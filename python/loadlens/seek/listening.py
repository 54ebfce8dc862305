"""Does a process that is to be watched serve the port? A wrong pid would make a busy service look idle."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

_LISTEN = "0A"  # state in /proc/net/tcp
_PROC = Path("/proc")


def caution(pids: Sequence[int], port: int) -> str | None:
    """Why the pids may be the wrong ones, in words; none: one of them listens there, or nobody may look."""
    sockets = set(_listeners(port))
    if not pids or not sockets:
        return None
    family = _with_descendants(pids)
    seen = [_sockets_of(pid) for pid in family]
    if any(known is None for known in seen) or any(known & sockets for known in seen if known):
        return None
    listed = ", ".join(str(pid) for pid in pids)
    return (
        f"process {listed} and what it started do not listen on port {port}: its CPU may not be the service's"
    )


def _listeners(port: int) -> Iterator[str]:
    """Inodes of the sockets that listen on a port of this machine."""
    for name in ("tcp", "tcp6"):
        try:
            lines = (_PROC / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _with_descendants(pids: Sequence[int]) -> set[int]:
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


def _sockets_of(pid: int) -> set[str] | None:
    """Inodes of a process's sockets; none: we may not look."""
    found = set()
    try:
        for entry in (_PROC / str(pid) / "fd").iterdir():
            try:
                target = str(entry.readlink())
            except OSError:
                continue  # closed meanwhile
            if target.startswith("socket:["):
                found.add(target[8:-1])
    except FileNotFoundError:
        return set()  # it ended meanwhile
    except OSError:
        return None
    return found
