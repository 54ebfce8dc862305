"""Servers that speak TLS, with certificates of `tests/data/tls`: `server` is for 127.0.0.1 and localhost."""

from __future__ import annotations

import hashlib
import http.server
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadlens.model.workload import PemFile

FOLDER = Path(__file__).parent / "data" / "tls"
METRICS = b'# TYPE hits_total counter\nhits_total{path="/"} 3\n'


def pem(name: str) -> PemFile:
    """A file of that folder as a plan names it."""
    path = FOLDER / f"{name}.pem"
    return PemFile(str(path), hashlib.sha256(path.read_bytes()).hexdigest())


class Page(http.server.BaseHTTPRequestHandler):
    """Metrics at /metrics, 404 elsewhere."""

    timeout = 5  # a client that says nothing holds no thread for ever

    def do_GET(self) -> None:
        body = METRICS if self.path == "/metrics" else b"no such page\n"
        self.send_response(200 if self.path == "/metrics" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Silent: handshakes fail here on purpose."""


@contextmanager
def serving(certificate: str | None = "server", *, client_ca: str | None = None) -> Iterator[int]:
    """The port of a server.

    Args:
        certificate: What it shows; none: it speaks plain HTTP.
        client_ca: Whose certificates it wants; none: it takes everybody.
    """
    with _Server(("127.0.0.1", 0), Page) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(FOLDER / f"{certificate}.pem")
            if client_ca is not None:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(FOLDER / f"{client_ca}.pem")
            # each connection shakes hands in its own thread
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
