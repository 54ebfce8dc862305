"""Sessions with the land registry."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator

import json

from . import frames
from .settings import Settings

log = logging.getLogger("registry")
OPTIONS = {
    "SO_KEEPALIVE": (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
    "TCP_NODELAY": (socket.IPPROTO_TCP, socket.TCP_NODELAY),
}


class RegistryError(Exception):
    pass


class Session:
    """One connection; one request at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sock: socket.socket | None = None
        self._loop = asyncio.get_running_loop()

    async def _connect(self) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        for name in self._settings.socket_options:
            sock.setsockopt(*OPTIONS[name], 1)
        await self._loop.sock_connect(sock, (self._settings.registry_host, self._settings.registry_port))
        return sock

    async def _exactly(self, sock: socket.socket, size: int) -> bytes:
        got = bytearray()
        while len(got) < size:
            piece = await self._loop.sock_recv(sock, size - len(got))
            if not piece:
                raise RegistryError("registry closed the session")
            got += piece
        return bytes(got)

    async def ask(self, kind: int, document: dict[str, Any]) -> dict[str, Any]:
        if self._sock is None:
            self._sock = await self._connect()
        sock = self._sock
        head, body = frames.pack(kind, document)
        try:
            await self._loop.sock_sendall(sock, head)
            await self._loop.sock_sendall(sock, body)
            length, answered = frames.unpack_head(await self._exactly(sock, frames.HEAD.size))
            answer = json.loads(await self._exactly(sock, length))
        except BaseException:
            sock.close()
            self._sock = None
            raise
        if answered == frames.ERROR:
            raise RegistryError(answer.get("message", "unknown"))
        return answer


class Sessions:
    """The sessions that our licence includes."""

    def __init__(self, settings: Settings) -> None:
        self._free: asyncio.LifoQueue[Session] = asyncio.LifoQueue()
        for _ in range(settings.sessions):
            self._free.put_nowait(Session(settings))

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Session]:
        session = await self._free.get()
        try:
            yield session
        finally:
            self._free.put_nowait(session)
