"""Change of a load while it runs: from the page, or from another terminal.

A running lab listens on a socket without a file: its name is made of the device and inode of the record's
folder, in the abstract namespace of Linux. So a killed lab leaves nothing behind, and no path is too long.
Both sides check who is at the other end: only the user of the lab, or root, may change its load.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from loadlens.errors import UsageError
from loadlens.model.plain import Unreadable, read
from loadlens.model.result import LoadChange

MOST_BYTES: Final = 4096  # of a request, and of an answer
PATIENCE_S: Final = 0.2  # of the lab with a request; it polls the engine ten times per second
ANSWER_S: Final = 5.0
AT_ONCE: Final = 8  # requests that are read before the engine is polled again
_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred: process, user, group


@dataclass(frozen=True, slots=True)
class WantedChange:
    """A new level of one load: a rate or a number of users."""

    stream: str | None = None  # None: the only load
    rate_per_s: float | None = None
    users: int | None = None


class Refused(Exception):
    """The change is not possible; the text says why."""


class LoadControl:
    """The lab's side, open while a load runs; of no record, it is closed from the start."""

    def __init__(self, run: Path | None) -> None:
        self._socket: socket.socket | None = None
        if run is None:
            return
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(_address(run))
            self._socket.listen(AT_ONCE)
            self._socket.setblocking(False)
        except OSError:  # no abstract sockets here, or another process has the name: the load runs as planned
            self.close()

    def serve(self, change: Callable[[WantedChange], LoadChange]) -> None:
        """Answer the requests that have come; `change` makes a change, or raises `Refused`."""
        for _ in range(AT_ONCE):
            if self._socket is None:
                return
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            with peer, suppress(OSError):
                peer.settimeout(PATIENCE_S)
                is_trusted = _user_of(peer) in (os.geteuid(), 0)
                answer = (
                    _answer(_line(peer, PATIENCE_S), change)
                    if is_trusted
                    else {"error": "it is another user's"}
                )
                peer.sendall(json.dumps(answer).encode() + b"\n")

    def close(self) -> None:
        """Take no more requests; safe to call twice."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def change_load(run: Path, wanted: WantedChange) -> LoadChange:
    """Change the load that runs in a record, and return the change with the moment at which it takes effect.

    Args:
        run: The record's folder.
        wanted: The new level.

    Raises:
        UsageError: No load runs there, or the change is not possible; nothing was changed.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lab:
        lab.settimeout(ANSWER_S)
        try:
            lab.connect(_address(run))
        except OSError:
            raise UsageError("no load runs in this record", where=str(run)) from None
        if _user_of(lab) not in (os.geteuid(), 0) and os.geteuid() != 0:
            raise UsageError("the load in this record is another user's", where=str(run))
        try:
            lab.sendall(json.dumps(asdict(wanted)).encode() + b"\n")
            content = json.loads(_line(lab, ANSWER_S))
        except (OSError, ValueError):
            raise UsageError("the load in this record ended before it was changed", where=str(run)) from None
    if "error" in content:
        raise UsageError(f"the load stays as it is: {content['error']}", where=str(run))
    return read(LoadChange, content)


def _answer(line: bytes, change: Callable[[WantedChange], LoadChange]) -> dict[str, object]:
    try:
        return asdict(change(read(WantedChange, json.loads(line))))
    except Refused as fault:
        return {"error": str(fault)}
    except (Unreadable, ValueError):
        return {"error": "the request cannot be read"}


def _address(run: Path) -> str:
    """Return the name of the socket; raise OSError if there is no such folder."""
    folder = run.stat()
    return f"\0loadlens-load-{folder.st_dev:x}-{folder.st_ino:x}"


def _user_of(peer: socket.socket) -> int:
    """Return the user of the process at the other end, as the kernel reports it."""
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(credentials)
    return int(user)


def _line(peer: socket.socket, within_s: float) -> bytes:
    """Receive one line of bounded length; raise OSError if it does not come in time."""
    received, until = b"", time.monotonic() + within_s
    while not received.endswith(b"\n"):
        if time.monotonic() > until:
            raise OSError("no whole line in time")
        part = peer.recv(MOST_BYTES)
        received += part
        if not part or len(received) > MOST_BYTES:
            raise OSError("no whole line")
    return received
