"""A service that takes 20 ms for a request, any number at once, and says how many it had when it ends."""

from __future__ import annotations

import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave together: of two writes the second waits for a delayed acknowledgement.
    wbufsize = 1 << 12
    counted = 0
    lock = threading.Lock()

    def do_GET(self) -> None:
        with Handler.lock:
            Handler.counted += 1
        time.sleep(0.02)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


def end(*_: object) -> None:
    print("requests", Handler.counted, flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, end)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
