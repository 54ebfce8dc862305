"""A minimal HTTP/1.1 server with keep-alive and Prometheus metrics, for services on an event loop or threads.

A service listens on the port of the environment variable PORT (0: any free one) and prints its URL.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from prometheus_client import Counter, Gauge, Histogram, generate_latest

HOST: Final = "127.0.0.1"
BACKLOG: Final = 1024
REQUESTS = Counter("http_requests", "Requests answered.", ["method", "path", "status"])
SECONDS = Histogram("http_request_duration_seconds", "Time in the handler.", ["path"])
IN_PROGRESS = Gauge("http_requests_in_progress", "Requests in a handler.")

AsyncHandler = Callable[[], Awaitable[str]]
Handler = Callable[[], str]


def serve_async(routes: dict[str, AsyncHandler]) -> None:
    """Serve on one event loop until the process is ended."""
    asyncio.run(_serve_async(routes))


async def _serve_async(routes: dict[str, AsyncHandler]) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                method, target, _ = head.decode("latin-1").split(" ", 2)
                status, body = await respond(method, target.partition("?")[0])
                fields = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(fields.encode() + (b"" if method == "HEAD" else body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def respond(method: str, path: str) -> tuple[HTTPStatus, bytes]:
        if path == "/metrics":
            return HTTPStatus.OK, generate_latest()
        handler = routes.get(path)
        if handler is None:
            return HTTPStatus.NOT_FOUND, b"not found\n"
        began = time.perf_counter()
        with IN_PROGRESS.track_inprogress():
            body = await handler()
        _count(method, path, began)
        return HTTPStatus.OK, body.encode()

    server = await asyncio.start_server(answer, HOST, _wanted_port(), backlog=BACKLOG)
    _announce(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def serve_threads(routes: dict[str, Handler]) -> None:
    """Serve with one thread for each connection until the process is ended."""

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # head and body leave together

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self.write(HTTPStatus.OK, generate_latest())
            elif path not in routes:
                self.write(HTTPStatus.NOT_FOUND, b"not found\n")
            else:
                began = time.perf_counter()
                with IN_PROGRESS.track_inprogress():
                    body = routes[path]()
                _count(self.command, path, began)
                self.write(HTTPStatus.OK, body.encode())

        def do_HEAD(self) -> None:
            self.do_GET()

        def write(self, status: HTTPStatus, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = BACKLOG

    with Server((HOST, _wanted_port()), Answer) as server:
        _announce(server.server_port)
        server.serve_forever()


def _count(method: str, path: str, began: float) -> None:
    SECONDS.labels(path).observe(time.perf_counter() - began)
    REQUESTS.labels(method, path, "200").inc()


def _wanted_port() -> int:
    return int(os.environ.get("PORT", "0"))


def _announce(port: int) -> None:
    print(f"http://{HOST}:{port}", flush=True)
