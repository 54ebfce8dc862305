"""A small shop to try the commands of the documentation on: `python3 shop.py`, Python alone, port 8080.

Every order needs one of two database connections for 20 ms, so orders stop at about 100 per second. Users log
in with the password `secret`, and are known by a token or by a cookie.
"""

from __future__ import annotations

import argparse
import json
import ssl
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=8080)
parser.add_argument("--pool", type=int, default=2, help="database connections")
parser.add_argument("--tls", metavar="PEM", help="serve https with this certificate and key")
options = parser.parse_args()

POOL = threading.Semaphore(options.pool)
COUNT = threading.Lock()
RESPONSES: Counter[int] = Counter()
WAITING = ACTIVE = 0
ORDERS: list[object] = []


def database(seconds: float) -> None:
    """Take one connection of the pool for a while, and wait for it as long as it takes."""
    global WAITING, ACTIVE
    with COUNT:
        WAITING += 1
    with POOL:
        with COUNT:
            WAITING, ACTIVE = WAITING - 1, ACTIVE + 1
        time.sleep(seconds)
        with COUNT:
            ACTIVE -= 1


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # a response leaves in one piece

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/":
            self.answer(200, {"shop": "open"})
        elif url.path == "/health":
            self.answer(200, {"status": "OK"})
        elif url.path == "/metrics":
            self.answer(200, metrics())
        elif url.path == "/search":
            self.answer(200, {"query": parse_qs(url.query).get("q", [""])[0], "products": [7, 11, 13]})
        elif url.path.startswith("/products/"):
            self.answer(200, {"id": url.path.removeprefix("/products/"), "price": 9.5})
        elif url.path == "/cart":
            has_session = "session=" in self.headers.get("Cookie", "")
            self.answer(200 if has_session else 401, {"items": []})
        elif url.path == "/orders":
            database(0.02)
            self.answer(200, {"orders": len(ORDERS)})
        elif url.path.startswith("/orders/"):
            self.answer(200 if self.is_known() else 401, {"id": url.path.removeprefix("/orders/")})
        elif url.path == "/old":
            self.answer(301, None, Location="/")
        else:
            self.answer(404, {"error": "no such page"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/login":
            ok = json.loads(body).get("password") == "secret"
            cookie = {"Set-Cookie": "session=5e55104"} if ok else {}
            self.answer(200 if ok else 401, {"token": "t0k3n"} if ok else {}, **cookie)
        elif self.path == "/orders" and not self.is_known():
            self.answer(401, {"error": "log in first"})
        elif self.path == "/orders":
            database(0.02)
            with COUNT:
                ORDERS.append(json.loads(body))
                number = len(ORDERS)
            self.answer(201, {"id": number}, Location=f"/orders/{number}")
        elif self.path == "/graphql":
            self.answer(200, {"data": {"product": {"id": json.loads(body)["variables"]["id"], "price": 9.5}}})
        elif self.path == "/upload":
            self.answer(201, {"bytes": len(body)})
        else:
            self.answer(404, {"error": "no such page"})

    def is_known(self) -> bool:
        return self.headers.get("Authorization") == "Bearer t0k3n"

    def answer(self, status: int, body: object, **headers: str) -> None:
        with COUNT:
            RESPONSES[status] += 1
        text = body if isinstance(body, str) else json.dumps(body) if body is not None else ""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing per request."""


def metrics() -> str:
    """Return the counts in the Prometheus text format."""
    with COUNT:
        lines = [
            "# TYPE http_requests_total counter",
            *(f'http_requests_total{{status="{status}"}} {count}' for status, count in RESPONSES.items()),
        ]
        gauges = {"active": ACTIVE, "pending": WAITING, "max": options.pool}
    for name, value in gauges.items():
        lines += [f"# TYPE db_pool_connections_{name} gauge", f"db_pool_connections_{name} {value}"]
    return "\n".join(lines) + "\n"


class Server(ThreadingHTTPServer):
    request_queue_size = 1024


server = Server((options.host, options.port), Handler)
if options.tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.tls)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(f"shop on {'https' if options.tls else 'http'}://{options.host}:{options.port}", flush=True)
server.serve_forever()
