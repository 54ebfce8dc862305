"""The server of the page: HTTP on loopback, JSON, and one event stream per page.

Heads of requests are read here, within a time and a size, before `http.server` parses them; no request has a
body. A connection carries one request.
"""

from __future__ import annotations

import io
import json
import math
import os
import queue
import re
import select
import socket
import socketserver
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, unquote

from loadlens import record
from loadlens.errors import LoadlensError, UsageError
from loadlens.follow.runs import RunState
from loadlens.load_control import WantedChange, change_load
from loadlens.model.comparison import DEFAULT_MARGIN, Comparison
from loadlens.present.comparison_text import change_in_words
from loadlens.ui import answers, guard
from loadlens.ui.guard import Guard
from loadlens.ui.shelf import Shelf
from loadlens.ui.watch import Watch, as_json

if TYPE_CHECKING:
    from loadlens.record import TrialRecord

PAGE: Final = Path(__file__).with_name("page.html")
HEAD_BYTES: Final = 16 << 10
HEAD_WITHIN_S: Final = 5.0
SEND_WITHIN_S: Final = 10.0  # each slice of an answer
SLICE_BYTES: Final = 64 << 10
MOST_CONNECTIONS: Final = 32
MOST_STREAMS: Final = 24  # of them
ALIVE_EVERY_S: Final = 15.0  # so that a page that went away is noticed
END_WITHIN_S: Final = 4.0
ACTIONS: Final[Mapping[str, str]] = {
    "stop": "the running trial ends in order",
    "resume": "the run goes on",
    "again": "a new run has begun",
}


BUSY: Final = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
HINT: Final = "open the URL that was printed"


class Refused(Exception):
    """An answer other than success."""

    def __init__(self, status: HTTPStatus, words: str, hint: str | None = None) -> None:
        super().__init__(words)
        self.status, self.words, self.hint = status, words, hint


class Server(socketserver.ThreadingTCPServer):
    """Answers on 127.0.0.1 until it is closed.

    Args:
        shelf: The runs that it shows.
        port: 0: any free one.
        origins: Of a proxy in front of it.
    """

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, shelf: Shelf, port: int = 0, origins: tuple[str, ...] = ()) -> None:
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as fault:
            raise UsageError(
                f"cannot listen on 127.0.0.1:{port}: {fault}", where="--port", hint="--port 0, any free port"
            ) from fault
        self.shelf = shelf
        self.guard = Guard(self.server_address[1], origins)
        self.streams = threading.BoundedSemaphore(MOST_STREAMS)
        self.connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The URL to open in a browser."""
        return self.guard.url

    def start(self) -> None:
        """Answer on a thread of its own."""
        self._thread = threading.Thread(target=self.serve_forever, args=(0.2,), name="ui", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send pages the last state and stop; a page that stays open does not hold this up."""
        self.shelf.end()
        until = time.monotonic() + END_WITHIN_S
        for _ in range(MOST_STREAMS):  # all places are free once the last stream has ended
            if not self.streams.acquire(timeout=max(0.0, until - time.monotonic())):
                break
        if self._thread is not None:
            self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a thread, if there are not too many already."""
        if not self.connections.acquire(blocking=False):
            with suppress(OSError):
                request.setblocking(False)
                request.send(BUSY)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self.connections.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one request."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Answer a fault of our own; the traceback is printed where LOADLENS_DEBUG is set."""
        with suppress(OSError):
            request.sendall(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
        if os.environ.get("LOADLENS_DEBUG"):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "loadlens", ""
    _has_begun = False  # the head of the answer was sent, or a part of it

    def handle(self) -> None:
        head = self._read_head()
        if head is None:
            return
        self.rfile = io.BytesIO(head)
        self.connection.settimeout(SEND_WITHIN_S)
        with suppress(OSError):
            self.handle_one_request()

    def _read_head(self) -> bytes | None:
        """Return the head of the request; none if it is too long, too slow, or the other side went away."""
        until = time.monotonic() + HEAD_WITHIN_S
        head = b""
        with suppress(OSError):
            while b"\r\n\r\n" not in head and len(head) <= HEAD_BYTES:
                self.connection.settimeout(max(0.001, until - time.monotonic()))
                part = self.connection.recv(4096)
                if not part:
                    return None
                head += part
        if b"\r\n\r\n" in head[:HEAD_BYTES]:
            return head[: head.index(b"\r\n\r\n") + 4]
        with suppress(OSError):
            self.connection.settimeout(0.1)
            self.connection.sendall(b"HTTP/1.1 431 Too Large or Slow\r\nConnection: close\r\n\r\n")
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.recv(HEAD_BYTES)  # what is unread would take the answer away from the other side
        return None

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def _answer(self, method: str) -> None:
        try:
            self._route(method)
        except Exception as fault:
            if self._has_begun:  # a second answer would become a part of the file: the first one ends short
                if os.environ.get("LOADLENS_DEBUG"):
                    traceback.print_exc()
            elif isinstance(fault, Refused):
                self._send_json({"error": fault.words, "hint": fault.hint}, fault.status)
            elif isinstance(fault, FileNotFoundError):  # a trial was sealed or begun again meanwhile
                being = {"error": "what was asked for is being written", "hint": "ask again"}
                self._send_json(being, HTTPStatus.NOT_FOUND)
            elif isinstance(fault, LoadlensError):
                words = {"error": fault.message, "hint": fault.hint}
                self._send_json(words, HTTPStatus.INTERNAL_SERVER_ERROR)
            else:
                raise

    def _route(self, method: str) -> None:
        own, path = self.server.guard, self.path.partition("?")[0]
        if not own.is_own_host(self._all("Host")):
            raise Refused(HTTPStatus.FORBIDDEN, "this name is not the server's", HINT)
        is_page = path == "/" and method == "GET"
        if not is_page and not own.is_own_page(self._all("Origin"), self._all("Sec-Fetch-Site")):
            raise Refused(HTTPStatus.FORBIDDEN, "the request comes from another page")
        if self._all("Transfer-Encoding") or any(length != "0" for length in self._all("Content-Length")):
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "no request has a body")
        if is_page:
            self._send_page()
            return
        has_token = own.has_token(self._all(guard.TOKEN_HEADER))
        if not has_token and (method == "POST" or not own.has_cookie(self._all("Cookie"))):
            raise Refused(HTTPStatus.UNAUTHORIZED, "the token is missing", HINT)
        parts = [unquote(part) for part in path.split("/")[1:]]
        for verb, pattern, action in _ROUTES:
            if len(parts) == len(pattern) and all(
                of is None or of == part for of, part in zip(pattern, parts, strict=True)
            ):
                if verb != method:
                    continue
                action(self, *(part for of, part in zip(pattern, parts, strict=True) if of is None))
                return
        raise Refused(HTTPStatus.NOT_FOUND, f"there is nothing at {path}")

    def _all(self, name: str) -> list[str]:
        return self.headers.get_all(name) or []

    # --- answers ------------------------------------------------------------------------------------------

    def _send_page(self) -> None:
        try:
            page = PAGE.read_bytes()
        except OSError:
            raise Refused(HTTPStatus.NOT_FOUND, "the page is not built", "make page") from None
        self._send(page, "text/html; charset=utf-8", guard.page_policy(page))

    def _send_json(self, content: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(as_json(content).encode(), "application/json", guard.DATA_POLICY, status)

    def _send(
        self,
        body: bytes,
        kind: str,
        policy: str,
        status: HTTPStatus = HTTPStatus.OK,
        more: Mapping[str, str] | None = None,
    ) -> None:
        self._begin(status, kind, policy, {"Content-Length": str(len(body)), **(more or {})})
        for piece in _slices(body):
            self.wfile.write(piece)

    def _send_parts(self, parts: Iterator[bytes], kind: str, more: Mapping[str, str]) -> None:
        """Send a body whose length is not known before its end, in chunks where the client knows them."""
        first = next(parts, b"")  # a fault that comes at once is an answer of its own
        is_chunked = self.request_version not in ("HTTP/0.9", "HTTP/1.0")
        framing = {"Transfer-Encoding": "chunked"} if is_chunked else {}
        self._begin(HTTPStatus.OK, kind, guard.DATA_POLICY, {**more, **framing})
        for part in chain([first], parts):
            for piece in _slices(part):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
        if is_chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _begin(self, status: HTTPStatus, kind: str, policy: str, more: Mapping[str, str]) -> None:
        self.close_connection = self._has_begun = True
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Security-Policy": policy, "Connection": "close"}
        for name, value in {**guard.ALWAYS, **headers, **more}.items():
            self.send_header(name, value)
        self.end_headers()

    # --- what there is ------------------------------------------------------------------------------------

    def _session(self) -> None:
        self._send_json({"token": self.server.guard.token})

    def _open_session(self) -> None:
        more = {"Set-Cookie": self.server.guard.set_cookie}
        self._begin(HTTPStatus.NO_CONTENT, "application/json", guard.DATA_POLICY, more)

    def _runs(self) -> None:
        self._send_json(self.server.shelf.document())

    def _run(self, run: str) -> None:
        document = self._watch(run).document()
        if document is None:
            raise Refused(HTTPStatus.NOT_FOUND, "the run has no record yet")
        self._send_json(document)

    def _act(self, run: str, action: str) -> None:
        state = self._state(run)
        if action == "load":
            self._change_load(state)
            return
        if action not in ACTIONS:
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no action {action}")
        try:
            begun = self.server.shelf.act(state, action)
        except UsageError as fault:
            raise Refused(HTTPStatus.CONFLICT, fault.message, fault.hint) from None
        name = None if begun is None else record.run_id(begun)
        self._send_json({"words": ACTIONS[action], "id": name}, HTTPStatus.ACCEPTED)

    def _change_load(self, state: RunState) -> None:
        query = parse_qs(self.path.partition("?")[2])
        try:
            wanted = WantedChange(
                users=int(query["users"][0]) if "users" in query else None,
                rate_per_s=float(query["rate_per_s"][0]) if "rate_per_s" in query else None,
            )
            if not 0 < (wanted.users or wanted.rate_per_s or 0) < math.inf:
                raise ValueError
        except ValueError:
            hint = "users=32, or rate_per_s=200"
            raise Refused(HTTPStatus.BAD_REQUEST, "the new load is no number above 0", hint) from None
        try:
            change = change_load(state.path, wanted)
        except UsageError as fault:
            raise Refused(HTTPStatus.CONFLICT, fault.message, fault.hint) from None
        self._send_json({"words": change.words, "at_s": change.at_ns / 1e9}, HTTPStatus.ACCEPTED)

    def _trial(self, run: str, case: str, trial: str) -> None:
        state = self._state(run)
        if not state.has_trial(case, trial):
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no trial {case} {trial}")
        self._send_json(self.server.shelf.trial(state, case, trial))

    def _sealed(self, run: str, case: str, trial: str) -> TrialRecord:
        state = self._state(run)
        if not state.has_trial(case, trial):
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no trial {case} {trial}")
        if not record.live_trial(state.path, case, trial).is_sealed:
            raise Refused(HTTPStatus.CONFLICT, "the trial is not sealed yet", "once it is over")
        return record.sealed_trial(state.path, case, trial)

    def _slow(self, run: str, case: str, trial: str) -> None:
        from loadlens.ui import finished

        self._send_json(finished.slow_requests(self._sealed(run, case, trial)))

    def _file(self, run: str, case: str, trial: str, name: str) -> None:
        from loadlens.ui import finished

        table, _, kind = name.partition(".")
        if name == "points.csv":
            state = self._state(run)
            if not state.has_trial(case, trial):
                raise Refused(HTTPStatus.NOT_FOUND, f"there is no trial {case} {trial}")
            content: bytes | Iterator[bytes] = finished.points_as_csv(
                self.server.shelf.trial(state, case, trial)
            )
        elif table in finished.TABLES and kind == "csv":
            content = finished.as_csv(self._sealed(run, case, trial), table)
        elif table in finished.TABLES and kind == "parquet":
            content = finished.as_parquet(self._sealed(run, case, trial), table)
        else:
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no file {name}")
        mime = "text/csv; charset=utf-8" if kind == "csv" else "application/vnd.apache.parquet"
        called = f'attachment; filename="{_NOT_IN_NAMES.sub("-", f"{case}-{trial}-{name}")}"'
        more = {"Content-Disposition": called}
        if isinstance(content, bytes):
            self._send(content, mime, guard.DATA_POLICY, more=more)
        else:
            self._send_parts(content, mime, more)

    def _report(self, run: str) -> None:
        state = self._state(run)
        if not state.has_report:
            raise Refused(HTTPStatus.NOT_FOUND, "the run has no report yet", "once it is over")
        try:
            content = (state.path / record.REPORT_HTML).read_bytes()
        except OSError:
            content = answers.report_of(state.path, state.kind).encode()
        self._send(content, "text/html; charset=utf-8", guard.REPORT_POLICY)

    def _compared(self) -> Comparison:
        from loadlens.compare import records

        query = parse_qs(self.path.partition("?")[2])
        first, second = (query.get(name, [""])[0] for name in ("a", "b"))
        held = [record.open_run(self._state(name).path) for name in (first, second)]
        try:
            return records.of_records(held[0], held[1], DEFAULT_MARGIN)
        except UsageError as fault:
            raise Refused(HTTPStatus.CONFLICT, fault.message, fault.hint) from None

    def _compare(self) -> None:
        from loadlens.report.write.json import comparison_as_json

        answer = self._compared()
        changes = [change_in_words(effect) for effect in answer.effects]
        self._send_json({"comparison": json.loads(comparison_as_json(answer)), "words": changes})

    def _compare_page(self) -> None:
        from loadlens.report.write.html.comparison import comparison_page

        page = comparison_page(self._compared()).encode()
        self._send(page, "text/html; charset=utf-8", guard.REPORT_POLICY)

    def _stream(self, run: str) -> None:
        watch = self._watch(run)
        if not self.server.streams.acquire(blocking=False):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open", "close some of them")
        try:
            self._send_events(watch)
        finally:
            self.server.streams.release()

    def _send_events(self, watch: Watch) -> None:
        page = watch.join()
        try:
            more = {"X-Accel-Buffering": "no"}
            self._begin(HTTPStatus.OK, "text/event-stream; charset=utf-8", guard.DATA_POLICY, more)
            alive_at = time.monotonic()
            while True:
                try:
                    message = page.get(timeout=1.0)
                except queue.Empty:
                    if _is_gone(self.connection):
                        return
                    if time.monotonic() - alive_at < ALIVE_EVERY_S:
                        continue
                    message = b": still there\n\n"
                if message is None:
                    return
                for piece in _slices(message):
                    self.wfile.write(piece)
                alive_at = time.monotonic()
        finally:
            watch.leave(page)

    def _watch(self, run: str) -> Watch:
        watch = self.server.shelf.watch(run)
        if watch is None:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such run")
        return watch

    def _state(self, run: str) -> RunState:
        watch = self._watch(run)
        watch.summary()
        if watch.state is None:
            raise Refused(HTTPStatus.NOT_FOUND, "the run has no record yet")
        state: RunState = watch.state
        return state


def _slices(content: bytes) -> Iterator[bytes]:
    """Yield content in slices, each of which has `SEND_WITHIN_S` to be taken."""
    for begin in range(0, len(content), SLICE_BYTES):
        yield content[begin : begin + SLICE_BYTES]


def _is_gone(connection: socket.socket) -> bool:
    """True if the other side has closed the connection; it has nothing more to say otherwise."""
    readable, _, _ = select.select([connection], [], [], 0)
    return bool(readable)


# Method, path (None: a name), handler.
_ROUTES: Final[tuple[tuple[str, tuple[str | None, ...], Callable[..., None]], ...]] = (
    ("POST", ("api", "session"), _Handler._open_session),
    ("GET", ("api", "session"), _Handler._session),
    ("GET", ("api", "runs"), _Handler._runs),
    ("GET", ("api", "runs", None), _Handler._run),
    ("POST", ("api", "runs", None, None), _Handler._act),
    ("GET", ("api", "runs", None, "stream"), _Handler._stream),
    ("GET", ("api", "runs", None, "report"), _Handler._report),
    ("GET", ("api", "runs", None, "trials", None, None), _Handler._trial),
    ("GET", ("api", "runs", None, "trials", None, None, "slow"), _Handler._slow),
    ("GET", ("api", "runs", None, "trials", None, None, None), _Handler._file),
    ("GET", ("api", "compare"), _Handler._compare),
    ("GET", ("api", "compare", "page"), _Handler._compare_page),
)
