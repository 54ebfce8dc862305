"""A thread for each request, and two connections that requests hold while they send a mail."""

from __future__ import annotations

import queue
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

connections: queue.Queue[int] = queue.Queue()
for number in range(2):
    connections.put(number)


def send_mail() -> None:
    time.sleep(0.06)  # mails


def order() -> bytes:
    connection = connections.get(timeout=30)  # waits
    try:
        send_mail()
    finally:
        connections.put(connection)
    return b"ordered"


class Answer(BaseHTTPRequestHandler):
    wbufsize = 1 << 12  # head and body leave together

    def do_GET(self) -> None:
        is_known = self.path == "/"
        body = order() if is_known else b""
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024


Server(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
