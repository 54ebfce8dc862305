"""A service with one counter in the Prometheus text format: `hits_total`, the GETs answered by path.

metrics_service.py PORT [--tls PEM]: over TLS with the certificate and key of a file.
"""

from __future__ import annotations

import http.server
import ssl
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
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
if "--tls" in sys.argv:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[sys.argv.index("--tls") + 1])
    # each connection shakes hands in its own thread
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
