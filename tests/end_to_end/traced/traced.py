"""A service that traces itself with OpenTelemetry's own SDK: each path has a flaw, or is its healthy twin.

/rows and /join: twelve calls of 2 ms one after another, or one of 24 ms.
/narrow and /wide: a callee that needs 10 ms, called through two connections or through 64.
/crowded and /roomy: a callee that serves two at once, or 64, and sends no spans.
"""

from __future__ import annotations

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Tracer


def tracer_of(service: str | None) -> Tracer:
    """A tracer that exports to where the environment says, under a name of its own."""
    resource = Resource.create({} if service is None else {"service.name": service})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider.get_tracer("traced")


OWN, BEHIND = tracer_of(None), tracer_of("stock")
CLIENT, SERVER = SpanKind.CLIENT, SpanKind.SERVER
PLACES = {"/narrow": threading.Semaphore(2), "/crowded": threading.Semaphore(2)}
WIDE = threading.Semaphore(64)


def work(path: str) -> None:
    """Do what a path is for."""
    if path == "/rows":
        for _ in range(12):
            with OWN.start_as_current_span("SELECT item", kind=CLIENT):
                time.sleep(0.002)
    elif path == "/join":
        with OWN.start_as_current_span("SELECT items", kind=CLIENT):
            time.sleep(0.024)
    elif path in ("/narrow", "/wide"):
        called = OWN.start_as_current_span("GET stock", kind=CLIENT)
        with called, PLACES.get(path, WIDE), BEHIND.start_as_current_span("GET /stock", kind=SERVER):
            time.sleep(0.01)
    elif path in ("/crowded", "/roomy"):
        with OWN.start_as_current_span("GET price", kind=CLIENT), PLACES.get(path, WIDE):
            time.sleep(0.01)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer once the work of the path is done."""
        with OWN.start_as_current_span(f"GET {self.path}", kind=SERVER, attributes={"url.path": self.path}):
            work(self.path)
        self.send_response_only(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *arguments: object) -> None:
        """Write no log."""


class Server(ThreadingHTTPServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 128


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
