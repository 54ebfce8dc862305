"""A thread for each request, and a lock that is held during a slow call."""

from __future__ import annotations

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.Lock()


def price() -> bytes:
    with lock:  # waits
        time.sleep(0.06)  # holds
    return b"7"


class Answer(BaseHTTPRequestHandler):
    wbufsize = 1 << 12  # head and body leave together

    def do_GET(self) -> None:
        is_known = self.path == "/"
        body = price() if is_known else b""
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024


Server(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
