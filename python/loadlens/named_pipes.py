"""Files that a user names: a named pipe is refused where nothing is at its other end, instead of waited for.

A pipe of the shell (`<(...)`), a device and any other file are read and written as always.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from pathlib import Path
from typing import Final

WAIT_S: Final = 2.0  # for the program at the other end
_LOOK_S: Final = 0.02


def read(path: Path, most: int = -1) -> bytes:
    """Return the content of a file, or its first `most` bytes.

    Raises:
        OSError: It cannot be read, or is a named pipe that nothing writes to.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        begun = _first_byte(descriptor, path) if _is_named_pipe(descriptor) else b""
        os.set_blocking(descriptor, True)
        return begun + file.read(most - len(begun) if most > 0 else most)


def opener(path: str, flags: int) -> int:
    """Open a file to write to it, for `open`.

    Raises:
        OSError: It cannot be opened, or is a named pipe that nothing reads.
    """
    until = time.monotonic() + WAIT_S
    while True:
        try:
            descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        except OSError as fault:
            if fault.errno != errno.ENXIO:
                raise
            if time.monotonic() > until:
                raise OSError(errno.ENXIO, "nothing reads this pipe", path) from None
            time.sleep(_LOOK_S)
        else:
            os.set_blocking(descriptor, True)
            return descriptor


def write(path: Path, text: str, *, is_new: bool = False) -> None:
    """Write text to a file; one that cannot hold all of it is removed.

    Args:
        path: The file.
        text: All of it.
        is_new: The file must not be there yet.

    Raises:
        FileExistsError: It is there.
        OSError: As `opener`, or the disk is full.
    """
    with open(path, "x" if is_new else "w", encoding="utf-8", opener=opener) as file:
        try:
            file.write(text)
            file.flush()
        except OSError:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                path.unlink()
            raise


def _first_byte(descriptor: int, path: Path) -> bytes:
    """Wait for a program that writes; empty if it is there and has written nothing yet."""
    until = time.monotonic() + WAIT_S
    while True:
        try:
            begun = os.read(descriptor, 1)
        except BlockingIOError:
            return b""
        if begun:
            return begun
        if time.monotonic() > until:
            raise OSError(errno.ENXIO, "nothing writes to this pipe", str(path))
        time.sleep(_LOOK_S)


def _is_named_pipe(descriptor: int) -> bool:
    """True for a pipe with a name in a folder; the kernel calls any other `pipe:[NUMBER]`."""
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return False
    return not os.readlink(f"/proc/self/fd/{descriptor}").startswith("pipe:[")
