"""The inspector of a running Node process, opened for one expression at a time.

Node opens it on 127.0.0.1:9229 when it gets SIGUSR1, a worker of `cluster` on a port of its own, and leaves
it open. Here the process shuts it again once the expression was evaluated; one that was open before stays.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

from loadlens.machine import listening_sockets
from loadlens.model.plain import read
from loadlens.signals.collect.threads import NOT_PERMITTED, NotRead

HOST: Final = "127.0.0.1"
PORT: Final = 9229
WITHIN_S: Final = 3.0
WAIT_S: Final = 1.0  # for a port to open, to shut or to become free
TRIES: Final = 3
ENDED: Final = "it ended"
_LOOK_S: Final = 0.003
_ENDS: Final = 0x8  # opcode of a frame that closes


def evaluate(pid: int, expression: str) -> Any:
    """Return the value of an expression in a Node process, of its promise if it is one.

    Raises:
        NotRead: The inspector cannot be opened or does not answer; or it could not be shut afterwards.
    """
    before = _ports(pid)
    open_port = next((port for port in sorted(before) if _is_inspected(pid) and _target(port)), None)
    port = _opened(pid, before) if open_port is None else open_port
    try:
        with _session(port) as session:
            try:
                return session.evaluate(expression)
            finally:
                if open_port is None:
                    session.shut()
    except (OSError, ValueError, http.client.HTTPException) as fault:
        raise NotRead(f"its inspector does not answer: {fault}") from None
    finally:
        if open_port is None and not _wait_until(lambda: port not in _ports(pid)):
            raise NotRead(f"its inspector stays open on {HOST}:{port}")


def _opened(pid: int, before: set[int]) -> int:
    """Open the inspector, and return its port."""
    if not _catches_signal(pid):
        raise NotRead("it does not take SIGUSR1, which opens its inspector (--disable-sigusr1?)")
    if _network(pid) != _network(os.getpid()):
        raise NotRead("its inspector is in another network namespace")
    has_own_port = _is_in_cluster(pid)
    for _ in range(TRIES):  # another one may be opened at the same time
        if not has_own_port and not _wait_until(lambda: _user_of_port(pid) is None):
            raise NotRead(f"port {PORT}, which its inspector needs, is used by {_user_of_port(pid)}")
        try:
            os.kill(pid, signal.SIGUSR1)
        except PermissionError:
            raise NotRead(NOT_PERMITTED) from None
        except ProcessLookupError:
            raise NotRead(ENDED) from None
        if _wait_until(lambda: bool(_ports(pid) - before)):
            return min(_ports(pid) - before)
    raise NotRead(f"its inspector does not open within {TRIES * WAIT_S:g} s of SIGUSR1")


def _user_of_port(pid: int) -> str | None:
    """Return the process that already listens on the inspector's port; none: it is free."""
    inodes = {inode for inode, port in listening_sockets.listeners().items() if port == PORT}
    if not inodes:
        return None
    for folder in Path("/proc").iterdir():
        other = int(folder.name) if folder.name.isdecimal() else pid
        if other != pid and inodes & (listening_sockets.sockets_of(other) or set()):
            with contextlib.suppress(OSError):
                return f"process {other} ({(folder / 'comm').read_text().strip()})"
    return "another process"


def _ports(pid: int) -> set[int]:
    """Return the ports that a process listens on, without those of processes that it started."""
    ports = listening_sockets.listeners()
    own = listening_sockets.sockets_of(pid) or set()
    return {ports[inode] for inode in own if inode in ports}


def _is_in_cluster(pid: int) -> bool:
    return b"NODE_UNIQUE_ID=" in _file(pid, "environ")


def _is_inspected(pid: int) -> bool:
    """True if it was started with its inspector open."""
    return b"--inspect" in _file(pid, "cmdline") + _file(pid, "environ")


def _file(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _network(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def _catches_signal(pid: int) -> bool:
    mask = re.search(rb"^SigCgt:\s*(\w+)", _file(pid, "status"), re.MULTILINE)
    if mask is None:
        raise NotRead(ENDED)
    return bool(int(mask[1], 16) >> (signal.SIGUSR1 - 1) & 1)


def _wait_until(is_so: Callable[[], bool]) -> bool:
    until = time.monotonic() + WAIT_S
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_S)
    return True


# --- the protocol ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Target:
    webSocketDebuggerUrl: str  # noqa: N815


@dataclass(frozen=True, slots=True)
class _Error:
    message: str


@dataclass(frozen=True, slots=True)
class _Exception:
    text: str


@dataclass(frozen=True, slots=True)
class _Value:
    value: Any = None


@dataclass(frozen=True, slots=True)
class _Evaluated:
    result: _Value = _Value()
    exceptionDetails: _Exception | None = None  # noqa: N815


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer to a call; events have no id."""

    id: int | None = None
    result: _Evaluated = _Evaluated()
    error: _Error | None = None


class _Session:
    """One WebSocket to the inspector (RFC 6455): texts there, texts back."""

    def __init__(self, link: socket.socket, received: IO[bytes]) -> None:
        self._link = link
        self._received = received
        self._calls = 0

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, with `require` in modules too; raise ValueError if it throws."""
        call = self._send(expression)
        while (text := self._receive()) is not None:
            answer = read(_Answer, json.loads(text))
            if answer.id != call:
                continue
            if answer.error is not None:
                raise ValueError(answer.error.message)
            if answer.result.exceptionDetails is not None:
                raise ValueError(answer.result.exceptionDetails.text)
            return answer.result.result.value
        raise ValueError("it ended the session")

    def shut(self) -> None:
        """Have the process shut its inspector, which ends the session."""
        self._send("require('inspector').close()")
        with contextlib.suppress(EOFError):
            while self._receive() is not None:
                pass

    def _send(self, expression: str) -> int:
        self._calls += 1
        options = {"includeCommandLineAPI": True, "awaitPromise": True, "returnByValue": True}
        wanted = {"id": self._calls, "method": "Runtime.evaluate"} | {
            "params": {"expression": expression} | options
        }
        content = json.dumps(wanted).encode()
        mask, size = os.urandom(4), len(content)
        length = struct.pack(">BH", 0xFE, size) if size < 1 << 16 else struct.pack(">BQ", 0xFF, size)
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(content))
        self._link.sendall(b"\x81" + length + mask + masked)
        return self._calls

    def _receive(self) -> bytes | None:
        """Return the next message; none if the other side ends the session."""
        message = b""
        while True:
            first, second = self._read(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", self._read(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self._read(8))
            message += self._read(size)
            if first & 0xF == _ENDS:
                return None
            if first & 0x80:
                return message

    def _read(self, size: int) -> bytes:
        content = self._received.read(size)
        if len(content) < size:
            raise EOFError("it ended the session")
        return content


def _target(port: int) -> str | None:
    """Return the path of the first target of an inspector; none if the port is not one's."""
    with contextlib.closing(http.client.HTTPConnection(HOST, port, timeout=WITHIN_S)) as link:
        try:
            link.request("GET", "/json/list")
            (target, *_) = read(tuple[_Target, ...], json.loads(link.getresponse().read()))
            return urlsplit(target.webSocketDebuggerUrl).path
        except (OSError, ValueError, http.client.HTTPException):
            return None


@contextlib.contextmanager
def _session(port: int) -> Iterator[_Session]:
    """Open a session with an inspector; it ends at once when it is left."""
    key = base64.b64encode(os.urandom(16)).decode()
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
    upgrade |= {"Sec-WebSocket-Key": key, "Sec-WebSocket-Version": "13"}
    path = _target(port)
    if path is None:
        raise ValueError("it names no target")
    with contextlib.closing(http.client.HTTPConnection(HOST, port, timeout=WITHIN_S)) as link:
        link.request("GET", path, headers=upgrade)
        status = link.getresponse().status
        if status != http.client.SWITCHING_PROTOCOLS:
            raise ValueError(f"it refuses a session with status {status}")
        assert isinstance(link.sock, socket.socket)
        with link.sock.makefile("rb") as received:
            try:
                yield _Session(link.sock, received)
            except EOFError as fault:
                raise ValueError(str(fault)) from None
            finally:
                with contextlib.suppress(OSError):
                    link.sock.shutdown(socket.SHUT_RDWR)
