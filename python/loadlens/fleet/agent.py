"""Agent of the controller on a node: a Dask actor that holds a folder and the pipe to the engine's process.

No load is made here: the worker's process runs Dask alone. Calls are short, so that beats are in time.
`description` is what nodes are compared by before anything starts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import distributed

from loadlens import __version__, engine, temporary
from loadlens.machine import calibration
from loadlens.run.engine_trial import NODE_VARIABLE

LIVE: Final = "live"
FILES: Final = "files"
_ERRORS: Final = "errors.txt"  # standard error of the engine's process


def description() -> dict[str, Any]:
    """Describe this machine and its Loadlens, in plain values."""
    threads, calibrated = len(os.sched_getaffinity(0)), calibration.of_this_machine()
    return {
        "loadlens": __version__,
        "engine": engine.digest(),
        "distributed": distributed.__version__,
        "host": socket.gethostname(),
        "threads": threads,
        "most_per_s": None if calibrated is None else calibrated.most_per_s(threads),
    }


class Agent:
    """Holds one trial's files and the engine's process on a node."""

    def __init__(self, lease_s: float) -> None:
        """Make the folder; without a call for `lease_s`, everything here is ended and removed."""
        self._lease_s = lease_s
        self._held = contextlib.ExitStack()
        self._folder = self._held.enter_context(temporary.folder("fleet"))
        for name in (LIVE, FILES):
            (self._folder / name).mkdir()
        self._child: subprocess.Popen[bytes] | None = None
        self._said: deque[str] = deque()
        self._messages: SimpleQueue[bytes | None] = SimpleQueue()  # to the process; None: no more
        self._called_s = time.monotonic()
        self._lock = threading.Lock()
        self._is_closed = False
        threading.Thread(target=self._watch, daemon=True).start()

    def folder(self) -> str:
        """Return the folder of this trial."""
        return str(self._folder)

    async def clock(self) -> tuple[int, int]:
        """Return when this call came and when it is answered, on the monotonic clock of this machine."""
        received_ns = time.monotonic_ns()
        self._called_s = time.monotonic()
        return received_ns, time.monotonic_ns()

    def start_child(self) -> None:
        """Start the engine's process; an earlier one is ended, and what it wrote is removed."""
        self._called_s = time.monotonic()
        self._end_child()
        for file in (self._folder / LIVE).iterdir():
            file.unlink()
        with open(self._folder / _ERRORS, "wb") as errors:
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "loadlens.fleet.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd="/",
                env=os.environ | {NODE_VARIABLE: "1"},
                start_new_session=True,  # Ctrl-C at a terminal is the controller's
            )
        with self._lock:
            self._child, self._said, self._messages = child, deque(), SimpleQueue()
        threading.Thread(target=_listen, args=(child, self._said), daemon=True).start()
        threading.Thread(target=_write, args=(child, self._messages), daemon=True).start()

    async def beat(self, *messages: Mapping[str, Any]) -> dict[str, Any]:
        """Pass messages to the engine's process, without waiting until it reads them.

        Returns:
            `said`: its messages since the last call. `fault`: why it has ended; None: it lives.
        """
        self._called_s = time.monotonic()
        fault = self._fault()
        if fault is None and self._child is not None:
            for message in messages:
                self._messages.put(json.dumps(message).encode() + b"\n")
        messages_out = [self._said.popleft() for _ in range(len(self._said))]
        return {"said": messages_out, "fault": fault}

    def lacking(self, digests: list[str]) -> list[str]:
        """Return which files are not here yet."""
        self._called_s = time.monotonic()
        return [digest for digest in digests if not (self._folder / FILES / digest).exists()]

    def store(self, digest: str, content: bytes, is_last: bool) -> None:
        """Add to a file that is named by its digest.

        Raises:
            ValueError: It is whole and has another digest.
        """
        self._called_s = time.monotonic()
        part = self._folder / FILES / f"{digest}.part"
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
            file.write(content)
        if is_last:
            with open(part, "rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                    part.unlink()
                    raise ValueError("it changed since the plan was made")
            part.rename(part.with_suffix(""))

    def files(self) -> list[tuple[str, int]]:
        """Return the files that the engine has written, with their sizes in bytes."""
        self._called_s = time.monotonic()
        files = sorted(path for path in (self._folder / LIVE).iterdir() if path.is_file())
        return [(path.name, path.stat().st_size) for path in files]

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Return a part of a file that the engine has written."""
        self._called_s = time.monotonic()
        with open(self._folder / LIVE / Path(name).name, "rb") as file:
            file.seek(offset)
            return file.read(size)

    def close(self) -> None:
        """End the engine's process and remove the folder; safe to call twice."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._end_child()
        self._held.close()

    def _watch(self) -> None:
        while not self._is_closed:
            time.sleep(self._lease_s / 10)
            if time.monotonic() - self._called_s > self._lease_s:
                self.close()

    def _fault(self) -> str | None:
        """Return why the engine's process has ended, with its last line; None: it lives, or there is none."""
        status = None if self._child is None else self._child.poll()
        if status is None:
            return None
        lines = (self._folder / _ERRORS).read_text(errors="replace").strip().splitlines()
        ended = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"the engine's process {ended}" + (f": {lines[-1]}" if lines else "")

    def _end_child(self) -> None:
        child = self._child
        if child is not None:
            child.kill()
            child.wait()
            self._messages.put(None)


def _listen(child: subprocess.Popen[bytes], lines: deque[str]) -> None:
    assert child.stdout is not None
    with child.stdout as output:
        for line in output:
            lines.append(line.decode())


def _write(child: subprocess.Popen[bytes], messages: SimpleQueue[bytes | None]) -> None:
    """Write messages to the process until there are no more, or it has ended.

    In a thread, because a plan may be longer than the pipe holds, and beats must not wait for it.
    """
    assert child.stdin is not None
    with contextlib.suppress(OSError), child.stdin as pipe:
        for message in iter(messages.get, None):
            pipe.write(message)
            pipe.flush()
