"""Temporary folders that do not outlive their process, and the notes that name what a killed one leaves.

A note is a locked file in `~/.cache/loadlens/keepers`; the lock ends with the process that wrote it. A note
without a lock is that of a killed process: `testbed/remains.py` ends and removes what it names.

Run as a script (`python -I -S temporary.py FOLDER NOTE`), it waits for the end of a folder's process.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

REMOVED_WITHIN_S = 5.0  # others may still write into the folder of a killed process


@dataclass(frozen=True, slots=True)
class Note:
    """A locked file that names what would be left; its lock lives as long as any copy of the descriptor."""

    path: Path
    descriptor: int

    def remove(self) -> None:
        """Remove it: what it names is gone."""
        self.path.unlink(missing_ok=True)
        os.close(self.descriptor)


def default_cache() -> Path:
    """Return the folder of built environments: `$LOADLENS_CACHE`, or `~/.cache/loadlens`."""
    given = os.environ.get("LOADLENS_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "loadlens"


def notes_folder() -> Path:
    """Return the folder of the notes."""
    return default_cache() / "keepers"


def write_note(
    scratch: Sequence[Path], *, marker: str, scope: str | None = None, stamp: int = 0
) -> Note | None:
    """Write down what would be left if this process were killed; None where no note can be kept.

    Args:
        scratch: Folders, which need not exist yet.
        marker: Name of the run, for messages.
        scope: Begins the value of `LOADLENS_SERVICE` in processes that would be left.
        stamp: The stamp of such processes; 0: none.
    """
    scope = scope or f"{marker}-{secrets.token_hex(4)}"
    content = {"marker": marker, "scope": scope, "stamp": stamp, "scratch": [str(path) for path in scratch]}
    try:
        path = notes_folder() / f"{scope}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            note = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(note, fcntl.LOCK_EX)
            if os.fstat(note).st_nlink:
                break
            os.close(note)  # removed before it was locked, as one that says nothing
    except (OSError, RuntimeError):  # a home folder that is absent, full or read-only
        return None
    try:
        os.write(note, json.dumps(content).encode() + b"\n")
    except OSError:
        Note(path, note).remove()
        return None
    return Note(path, note)


@contextlib.contextmanager
def noted(path: Path, *, marker: str) -> Iterator[None]:
    """Name a folder in a note within the block, in which it appears and goes."""
    note = write_note((path,), marker=marker)
    try:
        yield
    finally:
        if note is not None:
            note.remove()


def name(begin: str) -> Path:
    """Return the name for a temporary folder that a note or a keeper gets before it is made."""
    return Path(tempfile.gettempdir()).resolve() / f"{begin}-{secrets.token_hex(8)}"


@contextlib.contextmanager
def folder(marker: str) -> Iterator[Path]:
    """Make a folder that goes at the end of the block, or with this process, however it ends."""
    path = name("loadlens")
    note = write_note((path,), marker=marker)
    libraries = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    try:
        waiting = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(path), "" if note is None else str(note.path)],
            stdin=subprocess.PIPE,  # closed by the kernel when this process ends
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            pass_fds=() if note is None else (note.descriptor,),
            env=libraries | {"LOADLENS_KEEPER": "1"},
        )
        with waiting:
            try:
                path.mkdir(mode=0o700)
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
                waiting.kill()
    finally:
        if note is not None:
            note.remove()


def memory_file(content: bytes) -> Path:
    """Return a file that exists in memory alone, and goes with this process."""
    descriptor = os.memfd_create("loadlens")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    return Path(f"/proc/{os.getpid()}/fd/{descriptor}")


def main() -> None:
    """Wait for the end of standard input, then remove the folder and its note."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    path, note = sys.argv[1:]
    while os.read(0, 4096):
        pass
    until = time.monotonic() + REMOVED_WITHIN_S
    while os.path.lexists(path) and time.monotonic() < until:
        shutil.rmtree(path, ignore_errors=True)
        time.sleep(0.02)
    if note and not os.path.lexists(path):
        os.unlink(note)


if __name__ == "__main__":
    main()
