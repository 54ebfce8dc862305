"""Writes down how long each request took, as the server sees it."""

from __future__ import annotations

import json
import os
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class ResponseTimes:
    """ASGI middleware that appends one JSON line a request to a file shared by all workers.

    The time runs from the moment the worker hands the request to the application until the application is
    done with it. What a request waits in the socket before a blocked event loop accepts it is not in it, and
    cannot be: compare with the client's figure.
    """

    def __init__(self, app: ASGIApp, file: str) -> None:
        self._app = app
        # appended by a single write each, so that lines of several workers do not tear
        self._descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500  # what the client gets if the application raises before it answers

        async def noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        began = time.monotonic_ns()
        try:
            await self._app(scope, receive, noting_status)
        finally:
            self._write(scope["path"], status, began, time.monotonic_ns())

    def _write(self, path: str, status: int, began_ns: int, done_ns: int) -> None:
        line = {
            "path": path,
            "status": status,
            "duration_s": (done_ns - began_ns) / 1e9,
            "pid": os.getpid(),
            "monotonic_ns": done_ns,
        }
        os.write(self._descriptor, json.dumps(line, separators=(",", ":")).encode() + b"\n")
