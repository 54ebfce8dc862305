"""A real server of the page on loopback, and requests written byte by byte."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadlens.ui.server import Server
from loadlens.ui.shelf import Begin, Shelf

WITHIN_S = 20.0
KEPT = Path(__file__).parents[2] / "data" / "records" / "version-1"  # written by an earlier Loadlens


@dataclass
class Answer:
    """A response as it came."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    head: str = field(default="", repr=False)
    is_whole: bool = True  # as far as the framing says

    def json(self) -> Any:
        return json.loads(self.body)


@contextmanager
def served(
    place: Path, *, is_run: bool = False, begin: Begin | None = None, **settings: Any
) -> Iterator[Server]:
    """A server that answers within the block."""
    server = Server(Shelf(place, is_run=is_run, begin=begin), **settings)
    server.start()
    try:
        yield server
    finally:
        server.close()


def sent(server: Server, raw: bytes) -> Answer | None:
    """Send bytes, and read until the server closes; none: it closed without a word."""
    with socket.create_connection(("127.0.0.1", server.guard.port), timeout=WITHIN_S) as connection:
        connection.sendall(raw)
        content = b""
        while part := connection.recv(65536):
            content += part
    if not content:
        return None
    head, _, body = content.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    is_whole = True
    if headers.get("Transfer-Encoding") == "chunked":
        body, is_whole = _of_chunks(body)
    elif "Content-Length" in headers:
        is_whole = len(body) == int(headers["Content-Length"])
    return Answer(int(first.split()[1]), headers, body, head.decode("latin-1"), is_whole)


def _of_chunks(raw: bytes) -> tuple[bytes, bool]:
    """Return the content of a chunked body, and whether its last chunk came and nothing after it."""
    content = b""
    while b"\r\n" in raw:
        size, _, rest = raw.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            return content, rest == b"\r\n"
        content += rest[:length]
        if rest[length : length + 2] != b"\r\n":
            break
        raw = rest[length + 2 :]
    return content, False


def asked(
    server: Server, path: str, method: str = "GET", *, token: str | None = "", **headers: str
) -> Answer:
    """Send a request as a page of the server does, other headers in place of the usual ones.

    Args:
        server: The server.
        path: Of the URL.
        method: Of the request.
        token: In place of the right one; none: without.
        headers: Underscores stand for hyphens.
    """
    lines = {"Host": f"127.0.0.1:{server.guard.port}"}
    if token is not None:
        lines["X-Loadlens-Token"] = token or server.guard.token
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    answer = sent(server, f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode())
    assert answer is not None
    return answer


def events(server: Server, run: str) -> Iterator[tuple[str, Any]]:
    """Yield the events of a run's stream until it ends."""
    with socket.create_connection(("127.0.0.1", server.guard.port), timeout=WITHIN_S) as connection:
        path = f"/api/runs/{run}/stream"
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.guard.port}\r\n"
            f"X-Loadlens-Token: {server.guard.token}\r\n\r\n".encode()
        )
        lines = connection.makefile("r", encoding="utf-8")
        event = ""
        for line in lines:
            if line.startswith("event: "):
                event = line[7:].strip()
            elif line.startswith(":"):  # sent where there is nothing new
                raise AssertionError("nothing came for 15 s")
            elif line.startswith("data: "):
                yield event, json.loads(line[6:])
