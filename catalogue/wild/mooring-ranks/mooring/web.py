"""HTTP around the desk."""

import json
import logging
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

from mooring.desk import RANKS, Desk
from mooring.plan import NoBerth

log = logging.getLogger("mooring.web")

REQUESTS = Counter("http_requests_total", "Requests", ["method", "path", "status"])
DURATION = Histogram("http_request_duration_seconds", "Time of requests", ["path"])
ACTIVE = Gauge("http_requests_in_progress", "Requests in progress")


def make_server(port: int, desk: Desk, backlog: int) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/metrics":
                return self._send(200, generate_latest(), CONTENT_TYPE_LATEST)
            began = time.perf_counter()
            with ACTIVE.track_inprogress():
                status, body = self._route(parts.path, dict(parse_qsl(parts.query)))
                self._send(status, json.dumps(body).encode(), "application/json")
            REQUESTS.labels("GET", parts.path, str(status)).inc()
            DURATION.labels(parts.path).observe(time.perf_counter() - began)

        def _route(self, path: str, query: dict[str, str]) -> tuple[int, object]:
            if path == "/healthz":
                return 200, {"status": "up"}
            if path == "/berths":
                return 200, desk.plan.overview()
            if path != "/bookings/new":
                return 404, {"error": "not found"}
            kind = query.get("class", "cargo")
            if kind not in RANKS:
                return 400, {"error": f"unknown class {kind}"}
            try:
                length, draught = float(query["length"]), float(query["draught"])
                return 200, desk.book(query["vessel"], kind, length, draught)
            except (KeyError, ValueError) as error:
                return 400, {"error": str(error)}
            except NoBerth as error:
                return 409, {"error": str(error)}

        def _send(self, status: int, data: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            log.debug(format, *args)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = backlog

    return Server(("127.0.0.1", port), Handler)
