"""Logs of a service that was running already: the files that its processes append to, from a moment on.

What such a process writes to a terminal, a pipe or a journal cannot be read afterwards.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadlens.machine.listening_sockets import with_descendants
from loadlens.model.topology import Outside

MOST_BYTES: Final = 256 * 1024  # of each file, from its end
MOST_FILES: Final = 8
_PROC: Final = Path("/proc")
_OUTPUTS: Final = ("1", "2")


@dataclass(frozen=True, slots=True)
class OutsideLogs:
    """Files of a service and their sizes at one moment."""

    service: str
    sizes: tuple[tuple[Path, int], ...]

    def keep(self, folder: Path) -> None:
        """Write what was appended since then to a file of the service; nothing if there is none."""
        parts = [tail for path, size in self.sizes if (tail := _since(path, size))]
        if parts:
            (folder / f"{self.service}.log").write_bytes(b"".join(parts))


def of(outside: Outside | None) -> OutsideLogs | None:
    """Return the logs of a service outside as they are now; `None` if there are none to read."""
    if outside is None or not outside.is_here or not outside.pids:
        return None
    sizes = {
        path: path.stat().st_size for pid in sorted(with_descendants(outside.pids)) for path in _logs(pid)
    }
    return OutsideLogs(outside.name, tuple(sizes.items())[:MOST_FILES]) if sizes else None


def _logs(pid: int) -> Iterator[Path]:
    """Yield regular files that a process only writes: its standard output, and what it appends to."""
    try:
        descriptors = list((_PROC / str(pid) / "fd").iterdir())
    except OSError:
        return  # it ended, or belongs to another user
    for descriptor in descriptors:
        try:
            flags = _flags(pid, descriptor.name)
            is_output = descriptor.name in _OUTPUTS and flags & os.O_ACCMODE != os.O_RDONLY
            is_appended = flags & os.O_ACCMODE == os.O_WRONLY and flags & os.O_APPEND
            if (is_output or is_appended) and stat.S_ISREG(descriptor.stat().st_mode):
                path = descriptor.readlink()
                path.stat()  # a removed file has no path
                yield path
        except (OSError, ValueError):
            continue  # closed meanwhile, or removed


def _flags(pid: int, descriptor: str) -> int:
    """Return the flags of an open file."""
    lines = (_PROC / str(pid) / "fdinfo" / descriptor).read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("flags:")), 8)


def _since(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(size, end - MOST_BYTES))
            return file.read(MOST_BYTES)
    except OSError:
        return b""
