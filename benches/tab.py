"""Memory and CPU of a tab that follows a long run: `python -m benches.tab`, ten minutes for eight hours.

A run is made up, one point per second with 50 series of the service, and sent 48 times faster than it would
come, by the protocol of `loadlens ui` without anything merged: the most that a tab can have to hold. The page
is the one that ships. `--speed 1 --hours 0.05` measures the CPU time at the rate of a real run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from loadlens.follow.service import DIGITS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "python" / "loadlens" / "ui" / "page.html"
TOPICS = {"cpu": 18, "run_queue": 10, "accept_queue": 6, "memory": 6, "pools": 6, "database": 4}  # 50 series
LOOKS = 24
STARTS_S = 4.0  # until the page is drawn
MOST_MIB = 100.0
COLUMNS = ("due_per_s", "sent_per_s", "answered_per_s", "ok_per_s")


def totals(due: int) -> dict[str, Any]:
    """Return the accounting of a load whose requests all succeed."""
    none = dict.fromkeys(
        ("dropped", "waiting", "unexpected_status", "check_failed", "failed", "in_flight"), 0
    )
    sent = {"due": due, "issued": due, "answered": due, "ok": due, "failed_by": {}, "status": {"200": due}}
    return {**none, **sent, "law": f"due {due} = issued {due}", "holds": True}


def second(at: int, draws: random.Random) -> dict[str, Any]:
    """Return the points of one second."""
    rate = 1000 + draws.randint(-50, 50)
    tail = 0.01 * draws.lognormvariate(0, 0.4)
    load: dict[str, Any] = {name: [float(rate)] for name in COLUMNS}
    load |= {"bad_per_s": [0.0], "in_flight": [rate * tail], "count": [rate], "failures": {}}
    load |= {"p50_s": [tail / 3], "p95_s": [tail], "p99_s": [tail * 2], "totals": totals(1000 * (at + 1))}
    topics = [
        {"id": name, "series": [{"values": [round(draws.random(), DIGITS)]} for _ in range(series)]}
        for name, series in TOPICS.items()
    ]
    return {
        "case": "c",
        "trial": "block-1",
        "elapsed_s": at + 1.0,
        "phase": "measure",
        "failures": [],
        "points": {"start_s": [float(at)], "length_s": [1.0], "phase": ["measure"]},
        "streams": [load],
        "generator": {"busy": [draws.random()], "lag_p99_s": [1e-5 * draws.random()], "stalled_s": [0.0]},
        "service": {"start_s": [at + 0.5], "topics": topics},
        "nodes": [],
    }


def run() -> dict[str, Any]:
    """Return the run as the list and the screen want it."""
    words = {"id": "long", "name": "long", "study": "long", "question": "does the tab stay small?"}
    empty: dict[str, Any] = {name: [] for name in ("cases", "trials", "levels", "provisional", "log")}
    return {
        **words,
        "kind": "hit",
        "state": "running",
        "created_s": 0,
        "updated_s": 0,
        "planned": 1,
        **empty,
        "complete": 0,
        "words": "",
        "path": "",
        "blocks": 1,
        "answer": [],
        "running": None,
        "has_report": False,
    }


def trial(seconds: int) -> dict[str, Any]:
    """Return a trial of which nothing is known yet."""
    columns: dict[str, Any] = {name: [] for name in (*COLUMNS, "bad_per_s", "in_flight", "count")}
    columns |= {"p50_s": [], "p95_s": [], "p99_s": [], "failures": {}, "totals": totals(0)}
    topics = [
        {
            "id": name,
            "title": name,
            "left_out": 0,
            "series": [
                {"name": f"{name} {i}", "what": "", "unit": "share", "labels": {}, "values": []}
                for i in range(series)
            ],
        }
        for name, series in TOPICS.items()
    ]
    return {
        "case": "c",
        "name": "1000/s",
        "trial": "block-1",
        "block": 1,
        "attempt": 1,
        "state": "running",
        "reasons": [],
        "notes": [],
        "failures": [],
        "t0_s": 0,
        "warmup_s": 0,
        "duration_s": seconds,
        "elapsed_s": 0,
        "phase": "measure",
        "points": {"start_s": [], "length_s": [], "phase": []},
        "streams": [{"name": "load", "role": "load", "load": "1000/s", "steps": [], **columns}],
        "needs": {"p50_s": 6, "p95_s": 73, "p99_s": 368},
        "generator": {"threads": 1, "busy": [], "lag_p99_s": [], "stalled_s": []},
        "service": {"start_s": [], "length_s": 1.0, "topics": topics},
        "nodes": [],
    }


class Handler(BaseHTTPRequestHandler):
    """Answers like `loadlens ui`, with the run that is made up."""

    protocol_version = "HTTP/1.1"
    seconds: ClassVar[int]
    speed: ClassVar[float]
    sent: ClassVar[int] = 0  # points

    def do_POST(self) -> None:
        self.send_response(204)
        self.end_headers()

    def do_GET(self) -> None:
        if self.path == "/":
            self.answer(PAGE.read_bytes(), "text/html; charset=utf-8")
        elif self.path.startswith("/api/runs/long/stream"):
            self.stream()
        elif self.path == "/api/runs":
            self.answer(json.dumps({"title": "long", "single": "long", "runs": [run()]}).encode())
        else:
            self.answer(json.dumps(run()).encode())

    def answer(self, body: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        began = time.monotonic()
        with suppress(BrokenPipeError):  # the browser was closed at the end
            self.send_points(began)

    def send_points(self, began: float) -> None:
        for at, text in enumerate(self.messages()):
            time.sleep(max(0.0, began + (at - 2) / self.speed - time.monotonic()))
            self.wfile.write(text.encode())
            Handler.sent = max(Handler.sent, at - 1)

    def messages(self) -> Iterator[str]:
        yield f"event: run\ndata: {json.dumps(run())}\n\n"
        yield f"event: trial\ndata: {json.dumps(trial(self.seconds))}\n\n"
        draws = random.Random(7)
        for at in range(self.seconds):
            yield f"event: points\ndata: {json.dumps(second(at, draws))}\n\n"

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


def tab_of(browser: int) -> Path:
    """Return the process that draws the page, below /proc: of several renderers the one that did most.

    Nothing is attached to the tab: a debugger would keep all that it receives.
    """
    renderers = []
    below = {browser}
    for path in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            words = (path / "cmdline").read_bytes()
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it ended meanwhile
            continue
        if parent in below:
            below.add(int(path.name))
            if b"--type=renderer" in words:
                renderers.append(path)
    return max(renderers, key=cpu_s)


def cpu_s(process: Path) -> float:
    """Return the CPU time of a process so far."""
    user, system = (process / "stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def private_mib(process: Path) -> float:
    """Return the memory that a process shares with no other."""
    lines = (process / "smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private")) / 1024


def main() -> int:
    """Print memory over time; exit 1 if the tab passed its bound."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--speed", type=float, default=48.0, help="seconds of the run per second")
    options = parser.parse_args()
    Handler.seconds, Handler.speed = round(options.hours * 3600), options.speed
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    most = 0.0
    with tempfile.TemporaryDirectory(prefix="loadlens-tab-", ignore_cleanup_errors=True) as profile:
        url = f"http://127.0.0.1:{server.server_address[1]}/#key"
        flags = ["--headless=new", "--no-sandbox", "--no-first-run", "--window-size=1440,900"]
        # a debugging port keeps the headless browser alive; nothing connects to it
        flags += ["--remote-debugging-port=0", f"--user-data-dir={profile}"]
        browser = subprocess.Popen(["chromium", *flags, url], stderr=subprocess.DEVNULL)
        try:
            time.sleep(STARTS_S)
            began, before = time.monotonic(), cpu_s(tab_of(browser.pid))
            print("  hours    private        CPU")
            for look in range(1, LOOKS + 1):
                until = began + Handler.seconds / Handler.speed * look / LOOKS
                time.sleep(max(0.0, until - time.monotonic()))
                tab = tab_of(browser.pid)
                private = private_mib(tab)
                most = max(most, private)
                used = (cpu_s(tab) - before) / (time.monotonic() - began)
                print(f"  {options.hours * look / LOOKS:5.2f}    {private:5.1f} MiB  {used:5.1%}", flush=True)
        finally:
            browser.terminate()
            browser.wait()
    server.shutdown()
    print(f"{Handler.sent} points sent; at most {most:.1f} MiB, bound {MOST_MIB:.0f} MiB")
    return int(most > MOST_MIB or Handler.sent < Handler.seconds)


if __name__ == "__main__":
    raise SystemExit(main())
