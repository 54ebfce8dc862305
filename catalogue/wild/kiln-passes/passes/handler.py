"""HTTP of the passes service."""

import json
import logging
import time
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .meter import Meter
from .schedule import CONES, STAGES, schedule
from .signer import Signers

log = logging.getLogger("passes")


class PassHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"
    server_version = "passes/1.8"
    timeout = 120
    wbufsize = -1
    disable_nagle_algorithm = True
    meter: Meter
    signers: Signers

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        try:
            if parts.path == "/health":
                self.reply(200, {"status": "ok"})
            elif parts.path == "/cones":
                self.reply(200, CONES)
            elif parts.path.startswith("/passes/"):
                self.give_pass(parts.path.removeprefix("/passes/"), parse_qs(parts.query))
            else:
                self.reply(404, {"error": "not found"})
        except (KeyError, ValueError) as error:
            self.reply(400, {"error": f"bad request: {error}"})

    def give_pass(self, kind: str, query: dict[str, list[str]]) -> None:
        kiln, cone = int(query["kiln"][0]), query["cone"][0]
        if kind not in STAGES:
            raise ValueError(kind)
        claims = {
            "kiln": kiln,
            "kind": kind,
            "cone": cone,
            "steps": schedule(kind, cone),
            "gas_m3": self.meter.release(kiln),
            "until": int(time.time()) + 900,
        }
        self.reply(200, claims | {"signature": self.signers.mine().sign(claims)})

    def reply(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)


class PersistentPassHandler(PassHandler):
    protocol_version = "HTTP/1.1"
