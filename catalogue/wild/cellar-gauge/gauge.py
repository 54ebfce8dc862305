"""Client of the cellar controller: blocking sockets, used from worker threads."""

import json
import os
import queue
import socket
import struct
from contextlib import contextmanager

HEADER = struct.Struct(">4sI")
VARIANT = os.environ.get("VARIANT", "flawed")


class ControllerError(Exception):
    """The controller did not answer, or with something that is not a reading."""


class Link:
    def __init__(self, host: str, port: int) -> None:
        self.sock = socket.create_connection((host, port), timeout=10)
        if VARIANT == "healthy":
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers = self.sock.makefile("rb")

    def ask(self, tank: int, sensor: str) -> dict:
        body = json.dumps({"tank": tank, "sensor": sensor}).encode()
        self._send(HEADER.pack(b"GET ", len(body)), body)
        head = self.answers.read(HEADER.size)
        if len(head) < HEADER.size:
            raise ControllerError("controller closed the connection")
        kind, size = HEADER.unpack(head)
        if kind != b"VAL ":
            raise ControllerError(f"controller answered {kind!r}")
        return json.loads(self.answers.read(size))

    def _send(self, header: bytes, body: bytes) -> None:
        if VARIANT == "mended":
            self.sock.sendall(header + body)
            return
        self.sock.sendall(header)
        self.sock.sendall(body)

    def close(self) -> None:
        self.answers.close()
        self.sock.close()


class Links:
    """Connections to the controller, opened when first needed and kept."""

    def __init__(self, host: str, port: int, size: int) -> None:
        self.address = (host, port)
        self.free: queue.LifoQueue[Link | None] = queue.LifoQueue()
        for _ in range(size):
            self.free.put(None)

    @contextmanager
    def link(self):
        link = self.free.get()
        try:
            link = link or Link(*self.address)
            yield link
        except (OSError, ControllerError):
            if link is not None:
                link.close()
            link = None
            raise
        finally:
            self.free.put(link)
