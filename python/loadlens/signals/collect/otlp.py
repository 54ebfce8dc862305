"""Spans and log lines that services send by OTLP over HTTP, received on a port of this machine.

Requests are taken in threads, at most `_MOST_CONNECTIONS` at a time. Whole traces are kept or left out, by a
hash of their id: at first all, and half as many each time that more spans came within a second, or since the
last halving, than a record should hold. gRPC is refused.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, ClassVar, Final

from loadlens.credentials import Hiding
from loadlens.model.readings import MonitorMetrics, OtlpMetrics
from loadlens.signals.collect import otlp_messages as messages
from loadlens.signals.collect.monitor import NO_LABELS, Monitor, Row, labels, reading
from loadlens.signals.collect.otlp_messages import LogLine, Span
from loadlens.signals.collect.scene import Scene

MOST_SPANS_A_SECOND: Final = 2_000  # that are kept; above, half as many traces
MOST_SPANS: Final = 100_000  # kept between two halvings
MOST_LINES_A_SECOND: Final = 100
LARGEST_BYTES: Final = 4 << 20  # of a body, also of one that is unpacked
MOST_BYTES_A_SECOND: Final = 32 << 20  # that are read as messages; the rest is taken and not looked at
WARNING: Final = 13  # severity of a log record from which it may say why a request failed
_LONGEST_LINE: Final = 1_000
_MOST_CONNECTIONS: Final = 64
_WITHIN_S: Final = 10.0  # of silence on a connection
_QUIET_S: Final = 0.7  # after the end: exporters that we set up send every half second
_LONGEST_WAIT_S: Final = 3 * _QUIET_S
_MOST_WHYS: Final = 20
_MOST_NAMES: Final = 4_096  # that are looked through for credentials only once

_TYPE, _LENGTH, _TRANSFER, _PACKED = "Content-Type", "Content-Length", "Transfer-Encoding", "Content-Encoding"

_MESSAGES: Final = {
    ("/v1/traces", "application/x-protobuf"): messages.spans,
    ("/v1/traces", "application/json"): messages.json_spans,
}
_LOGS: Final = {
    ("/v1/logs", "application/x-protobuf"): messages.log_lines,
    ("/v1/logs", "application/json"): messages.json_log_lines,
}


@dataclass(frozen=True, slots=True)
class Receiver:
    """Settings of the otlp monitor: where it listens."""

    monitor: ClassVar[str] = "otlp"
    host: str
    port: int

    @property
    def waits_s(self) -> float:
        """For exporters."""
        return _LONGEST_WAIT_S


def wanted(scene: Scene) -> Receiver | None:
    """Return where services send their spans; none if no study or command asks for them."""
    return None if scene.otlp is None else Receiver(*scene.otlp)


def place_of(trace: bytes) -> int:
    """Return the hash of a trace id; kept are the traces whose hash 1, 2, 4 ... divides."""
    return zlib.crc32(trace)


class OtlpMonitor(Monitor):
    """The monitor."""

    name = "otlp"
    settings = Receiver

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: deque[Row] = deque()
        self._received = self._kept = self._since_halving = self._lines_left_out = self._unread = 0
        self._one_in = 1
        self._second = self._spans_now = self._lines_now = self._bytes_now = 0
        self._since_ns = self._clock_ns = 0
        self._last_ns = 0  # when the last body came
        self._refused: dict[str, int] = {}  # why -> how often, since the last tick
        self._hide = lru_cache(_MOST_NAMES)(Hiding().text)
        self._server: _Server | None = None

    def open(self, spec: Receiver) -> None:
        """Listen. Raises OSError if the port is taken."""
        self._clock_ns = time.time_ns() - time.monotonic_ns()
        self._since_ns = time.monotonic_ns()
        self._server = _Server((spec.host, spec.port), partial(_Handler, self))
        threading.Thread(target=self._server.serve_forever, name="otlp", daemon=True).start()

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server is not None
        return int(self._server.server_address[1])

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Yield spans and lines that came since the last tick, and how many were left out."""
        if last and self._received:
            end = now_ns + int(_LONGEST_WAIT_S * 1e9)
            while (
                left := min(end, max(now_ns, self._last_ns) + int(_QUIET_S * 1e9)) - time.monotonic_ns()
            ) > 0:
                time.sleep(left / 1e9)
        while self._rows:
            yield self._rows.popleft()
        with self._lock:
            refused, self._refused = self._refused, {}
        for why, count in refused.items():
            yield reading(MonitorMetrics.missed, labels(why=f"{why} ({count} times)"), None)
        yield reading(OtlpMetrics.spans_received, NO_LABELS, self._received)
        yield reading(OtlpMetrics.spans_kept, NO_LABELS, self._kept)
        yield reading(OtlpMetrics.one_trace_in, NO_LABELS, self._one_in)
        if self._lines_left_out:
            yield reading(OtlpMetrics.lines_left_out, NO_LABELS, self._lines_left_out)
        if self._unread:
            yield reading(OtlpMetrics.bodies_unread, NO_LABELS, self._unread)

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    # --- from the threads of connections -------------------------------------------------------------------

    def refuse(self, why: str) -> None:
        """Count a request that brought nothing."""
        with self._lock:
            if why in self._refused or len(self._refused) < _MOST_WHYS:
                self._refused[why] = self._refused.get(why, 0) + 1

    def take(self, path: str, kind: str, body: bytes) -> None:
        """Take one body. Raises ValueError if it is not what its path and type say."""
        with self._lock:
            self._last_ns = time.monotonic_ns()
            second = self._last_ns // 1_000_000_000
            if second != self._second:
                self._second, self._spans_now, self._lines_now, self._bytes_now = second, 0, 0, 0
            self._bytes_now += len(body)
            if self._bytes_now > MOST_BYTES_A_SECOND:
                self._unread += 1
                return
            if (of_spans := _MESSAGES.get((path, kind))) is not None:
                for span in of_spans(body, self._is_kept):
                    self._received += 1
                    if span is not None:
                        self._add_span(span)
            elif (of_lines := _LOGS.get((path, kind))) is not None:
                for line in of_lines(body):
                    self._add_line(line)

    def _is_kept(self, trace: bytes) -> bool:
        return place_of(trace) % self._one_in == 0

    def _add_span(self, span: Span) -> None:
        begin_ns = span.begin_ns - self._clock_ns
        if begin_ns < self._since_ns:
            return  # of an earlier trial, or of the start of the service
        self._kept += 1
        self._since_halving += 1
        self._spans_now += 1
        if self._spans_now > MOST_SPANS_A_SECOND or self._since_halving > MOST_SPANS:
            self._one_in *= 2
            self._spans_now = self._since_halving = 0
        self._rows.append(
            reading(OtlpMetrics.span, self._labels(span), (span.end_ns - span.begin_ns) / 1e9, begin_ns)
        )

    def _labels(self, span: Span) -> str:
        further = {"parent": span.parent, "path": span.path, "status": "error" if span.is_error else ""}
        return labels(
            service=span.service,
            name=self._hide(span.name),
            kind=span.kind,
            trace=span.trace,
            id=span.id,
            **{name: value for name, value in further.items() if value},
        )

    def _add_line(self, line: LogLine) -> None:
        if 0 < line.severity < WARNING or not line.text:
            return
        self._lines_now += 1
        if self._lines_now > MOST_LINES_A_SECOND:
            self._lines_left_out += 1
            return
        text = self._hide(line.text[:_LONGEST_LINE])
        self._rows.append(
            reading(OtlpMetrics.log_line, labels(service=line.service, text=text), line.severity)
        )


# --- HTTP --------------------------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    """Threads for connections, of which there may be only so many."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        self._places = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind without asking the resolver for a name, as HTTPServer does."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, or close it if too many are open."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks off is the exporter's affair."""


class _Handler(BaseHTTPRequestHandler):
    """One connection of an exporter."""

    protocol_version = "HTTP/1.1"
    timeout = _WITHIN_S

    def __init__(self, monitor: OtlpMonitor, *connection: Any) -> None:
        self._monitor = monitor
        super().__init__(*connection)

    def do_POST(self) -> None:
        """Take a body."""
        kind = self.headers.get(_TYPE, "").partition(";")[0].strip().lower()
        path = self.path.partition("?")[0]
        try:
            body = self._unpacked(self._body())
        except ValueError as fault:
            self._answer(413, kind, str(fault), close=True)
            return
        if kind == "application/grpc":
            self._answer(415, kind, "gRPC is not read: OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", close=True)
        elif path not in ("/v1/traces", "/v1/logs", "/v1/metrics"):
            self._answer(404, kind, "a path other than /v1/traces and /v1/logs")
        elif kind not in ("application/x-protobuf", "application/json"):
            self._answer(415, kind, "neither protobuf nor JSON")
        else:
            try:
                self._monitor.take(path, kind, body)
            except (ValueError, TypeError) as fault:
                self._answer(400, kind, f"not OTLP: {fault}"[:200])
            else:
                self._answer(200, kind, "")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no POST over HTTP/1.1; HTTP/2 is what gRPC speaks."""
        why = message or "not a request of an exporter"
        if "HTTP/2" in getattr(self, "requestline", ""):
            why = "gRPC is not read: OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"
        self._monitor.refuse(why)
        self.close_connection = True
        self.wfile.write(
            f"HTTP/1.1 {int(code)} refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
        )

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""

    def _answer(self, status: int, kind: str, why: str, *, close: bool = False) -> None:
        if why:
            self._monitor.refuse(why)
        self.close_connection = self.close_connection or close
        content = b"{}" if kind == "application/json" else b""  # an empty answer says that all was taken
        self.send_response_only(status)
        self.send_header("Content-Type", kind if status == 200 else "text/plain")
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def _body(self) -> bytes:
        """Return the body as it came. Raises ValueError if it is too large, or its length unknown."""
        if "chunked" in self.headers.get(_TRANSFER, "").lower():
            return b"".join(self._chunks())
        length = int(self.headers.get(_LENGTH, ""))
        if not 0 <= length <= LARGEST_BYTES:
            raise ValueError(f"a body of more than {LARGEST_BYTES >> 20} MiB")
        return self.rfile.read(length)

    def _chunks(self) -> Iterator[bytes]:
        left = LARGEST_BYTES
        while True:
            size = int(self.rfile.readline(100).partition(b";")[0], 16)
            left -= size
            if size < 0 or left < 0:
                raise ValueError(f"a body of more than {LARGEST_BYTES >> 20} MiB")
            yield self.rfile.read(size)
            self.rfile.readline(3)
            if not size:
                return

    def _unpacked(self, body: bytes) -> bytes:
        if self.headers.get(_PACKED, "identity").lower() != "gzip":
            return body
        unpack = zlib.decompressobj(wbits=31)
        try:
            content = unpack.decompress(body, LARGEST_BYTES)
        except zlib.error:
            raise ValueError("not gzip") from None
        if unpack.unconsumed_tail:
            raise ValueError(f"a body of more than {LARGEST_BYTES >> 20} MiB")
        return content
