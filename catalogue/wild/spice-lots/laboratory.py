"""Client of the laboratory that tests the samples; run as a program, a stand-in of it."""

import json
import os
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from requests.adapters import HTTPAdapter


class Laboratory:
    """Asks for the analysis of a sample over pooled connections."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._session = requests.Session()
        self._session.mount("http://", HTTPAdapter(pool_connections=2, pool_maxsize=200))

    def sample(self, number: int) -> dict:
        answer = self._session.get(f"{self._base}/samples/{number}", timeout=5)
        answer.raise_for_status()
        return answer.json()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wait_s = 0.45 if os.environ.get("VARIANT") == "healthy" else 0.12

    def do_GET(self) -> None:
        time.sleep(self.wait_s)
        seed = zlib.adler32(self.path.encode())
        body = json.dumps({"volatile_oil": 2 + seed % 30 / 10, "moisture": 9 + seed % 40 / 10}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


if __name__ == "__main__":
    Server(("127.0.0.1", int(os.environ["PORT"]) + 1), Handler).serve_forever()
