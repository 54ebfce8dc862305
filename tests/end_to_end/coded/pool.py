"""Four threads answer requests, and each request sleeps: the threads are the limit."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


def query() -> bytes:
    time.sleep(0.05)  # asleep
    return b"[]"


class Answer(BaseHTTPRequestHandler):
    wbufsize = 1 << 12  # head and body leave together

    def do_GET(self) -> None:
        is_known = self.path == "/"
        body = query() if is_known else b""
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class Server(HTTPServer):
    request_queue_size = 1024
    threads = ThreadPoolExecutor(4)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.threads.submit(self.answer, request, client_address)

    def answer(self, request: Any, client_address: Any) -> None:
        self.finish_request(request, client_address)
        self.shutdown_request(request)


Server(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
