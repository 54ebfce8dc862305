"""A service with one counter in the Prometheus text format: `hits_total`, the GETs answered by path."""

from __future__ import annotations

import http.server
import sys
import threading
from collections import Counter

HITS: Counter[str] = Counter()
LOCK = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/metrics":
            with LOCK:
                lines = [f'hits_total{{path="{path}"}} {count}' for path, count in HITS.items()]
            body = "\n".join(["# TYPE hits_total counter", *lines, "threads 7", ""]).encode()
        else:
            body = b"ok"
            with LOCK:
                HITS[self.path] += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


HITS["/"] = 0
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
