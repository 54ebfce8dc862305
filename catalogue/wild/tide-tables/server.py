"""Tide tables over HTTP."""

import configparser
import json
import logging
import math
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import harmonics
from allowance import Allowance

log = logging.getLogger("tides")


class Gauges:
    """The live gauges, read over the agency's API."""

    def __init__(self, round_trip_ms: float) -> None:
        self._round_trip_s = round_trip_ms / 1000

    def surge(self, station: harmonics.Station) -> float:
        time.sleep(self._round_trip_s)  # the agency's answer
        return round(math.sin(time.time() / 900 + station.number) / 4, 2)


class Problem(Exception):
    def __init__(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers or {}


class App:
    def __init__(self, config: configparser.ConfigParser) -> None:
        section = config["allowance"]
        limits = {key: int(value) for key, value in section.items() if key != "window_s"}
        self.allowance = Allowance(limits, section.getfloat("window_s"))
        self.gauges = Gauges(config["gauges"].getfloat("round_trip_ms"))
        self.default_station = config["server"].getint("default_station")

    def admit(self, key: str) -> None:
        if not self.allowance.knows(key):
            raise Problem(401, "unknown key")
        wait_s = self.allowance.take(key)
        if wait_s > 0:
            log.debug("key %s is over its allowance", key)
            raise Problem(429, "too many requests", {"Retry-After": str(math.ceil(wait_s))})

    def station(self, query: dict[str, list[str]]) -> harmonics.Station:
        try:
            number = int(query.get("station", [self.default_station])[0])
            return harmonics.STATIONS[number]
        except (ValueError, KeyError):
            raise Problem(404, "no such station") from None

    def tides(self, query: dict[str, list[str]]) -> object:
        station = self.station(query)
        hours = min(max(int(query.get("hours", ["12"])[0]), 1), 72)
        start = float(int(time.time() // 3600))
        surge = self.gauges.surge(station)
        return {"station": station.name, "surge": surge, "heights": harmonics.table(station, start, hours)}

    def stations(self, query: dict[str, list[str]]) -> object:
        return [{"number": each.number, "name": each.name} for each in harmonics.STATIONS.values()]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    app: App

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        try:
            if parts.path == "/health":
                return self._send(200, {"ok": True})
            route = {"/api/tides": self.app.tides, "/api/stations": self.app.stations}.get(parts.path)
            if route is None:
                raise Problem(404, "not found")
            self.app.admit(self.headers.get("X-Api-Key", "public"))
            self._send(200, route(parse_qs(parts.query)))
        except Problem as problem:
            self._send(problem.status, {"error": str(problem)}, problem.headers)
        except ValueError as error:
            self._send(400, {"error": str(error)})

    def _send(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        log.debug(format, *args)


class Server(ThreadingHTTPServer):
    daemon_threads = True


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    config = configparser.ConfigParser()
    config.read(Path(__file__).parent / "conf" / f"{os.environ.get('VARIANT', 'mended')}.ini")
    Handler.app = App(config)
    Server.request_queue_size = config["server"].getint("backlog")
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    log.info("tide tables on port %s", sys.argv[1])
    server.serve_forever()


if __name__ == "__main__":
    main()
