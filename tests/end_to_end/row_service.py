"""A service whose requests change one row of a PostgreSQL server and hold it for 20 ms; others do not.

Arguments: its port, and that of the server.
"""

from __future__ import annotations

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pg8000.native

OWN = threading.local()  # each thread serves one connection, and has one to the server


def database() -> pg8000.native.Connection:
    if not hasattr(OWN, "connection"):
        OWN.connection = pg8000.native.Connection("lab", port=int(sys.argv[2]), database="postgres")
    connection: pg8000.native.Connection = OWN.connection
    return connection


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave together: of two writes the second waits for a delayed acknowledgement.
    wbufsize = 1 << 12

    def do_GET(self) -> None:
        is_there = self.path == "/count"
        if is_there:
            database().run("begin")
            database().run("update counter set n = n + 1")
            time.sleep(0.02)
            database().run("commit")
        self.send_response(200 if is_there else 404)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


database().run("create table counter (n int)")
database().run("insert into counter values (0)")
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
