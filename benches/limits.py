"""Figures of Loadlens itself that have a bar: start-up, memory of idle connections, the open loop's clock."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benches.generators.base import Scene
from benches.generators.loadlens import DRIVE, SECOND_NS, drive, plan
from benches.measuring import SERVER_CPU, Host, Origin, origin, run
from benches.results import Limit, Results
from benches.wire import arrivals_ns
from benches.works import Work

IDLE = 10_000  # connections
OPEN_RATE, OPEN_SECONDS = 10_000.0, 10
GAPS_RATE, GAPS_SECONDS = 1000.0, 20
LIMIT_S = 60.0  # of a run of the open loop


def measure_all(results: Results, set_number: int, rounds: int, program: Path, idle: int = IDLE) -> None:
    """Measure everything here `rounds` times and add it to the results."""
    host = Host()

    def keep(name: str, value: float, why_not: str | None) -> None:
        results.limits.append(Limit(name, set_number, value, why_not))
        print(f"{name} {value:.6g}{f', left out: {why_not}' if why_not else ''}", file=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="loadlens-bench-") as folder:
        for _ in range(rounds):
            with origin(program, SERVER_CPU) as server:
                host.why_not()
                keep("hit_0_cpu_s", hit_cpu_s(server, folder), host.why_not())
                few, many = (_idle_memory(server, count, folder) for count in (1, idle))
                keep("idle_connection_bytes", (many - few) / (idle - 1), None)
                keep("hit_resident_bytes", hit_resident_bytes(server, idle), None)
            with origin(program, SERVER_CPU, "--log-rows", "200000") as server:
                host.why_not()
                measured = open_loop(server, program, Path(folder))
                why_not = host.why_not()
                for name, value in measured.items():
                    keep(name, value, why_not)
                for arrivals in ("constant", "poisson"):
                    try:
                        value = gaps_cv(arrivals, server, program, Path(folder))
                    except PermissionError as error:
                        print(f"gaps skipped: only root may see packets ({error})", file=sys.stderr)
                        break
                    keep(f"gaps_{arrivals}_cv", value, host.why_not())
            results.write()


def hit_cpu_s(server: Origin, folder: str) -> float:
    """CPU of the whole `hit -d 0`: the cost of every use of the command apart from its load.

    Its Python is compiled beforehand, as an installer leaves it.
    """
    url = f"http://127.0.0.1:{server.port}/"
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for _ in range(2):
        command = [sys.executable, "-m", "loadlens", "hit", url, "-d", "0"]
        ended = run(command, None, limit_s=30, environment=environment)
        if ended.fault is not None:
            raise RuntimeError(f"`hit -d 0` {ended.fault}")
    return ended.cpu_s


def _idle_memory(server: Origin, count: int, folder: str) -> int:
    """Anonymous memory of an engine whose connections have each answered once and now rest."""
    work = Work("idle", count)
    scene = Scene(server.port, 60, Path(folder), Path())
    quiet = plan(work, scene)
    quiet["streams"][0]["workload"] |= {
        "think": {"kind": "fixed", "ns": 120 * SECOND_NS},
        "ramp_ns": SECOND_NS,
    }
    command = [sys.executable, "-S", str(DRIVE), scene.file("idle.json", json.dumps(quiet))]
    with _running(command, server, count) as process:
        return _status_bytes(process, "RssAnon")


def hit_resident_bytes(server: Origin, count: int) -> int:
    """Resident memory of the whole `hit` while so many connections rest."""
    url = f"http://127.0.0.1:{server.port}/"
    command = [sys.executable, "-m", "loadlens", "hit", url, "-c", str(count), "-d", "60s", "--think", "2m"]
    with _running([*command, "-t", "1", "-q"], server, count) as process:
        return _status_bytes(process, "VmRSS")


@contextlib.contextmanager
def _running(command: list[str], server: Origin, count: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process, once as many connections are open and each has had an answer."""
    server.new_books()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 30
        while (counts := server.books())["open"] < count or counts["answered"] < count:
            if time.monotonic() > until or process.poll() is not None:
                raise RuntimeError(f"{counts['open']} of {count} connections were opened: {command}")
            time.sleep(0.05)
        time.sleep(1.0)
        yield process
    finally:
        process.kill()
        process.wait()


def _status_bytes(process: subprocess.Popen[bytes], name: str) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    match = re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)
    assert match is not None, status
    return int(match[1]) * 1024


def open_loop(server: Origin, program: Path, folder: Path) -> dict[str, float]:
    """Error of an open loop's rate, by the server's log, and the engine's own lateness."""
    scene = Scene(server.port, OPEN_SECONDS, folder, program)
    server.new_books()
    result = drive(plan(Work("open", 100, rate=OPEN_RATE), scene), scene, LIMIT_S)
    times = sorted(row["received_ns"] for row in server.log()["rows"])
    rate = (len(times) - 1) / ((times[-1] - times[0]) / 1e9)
    return {"open_rate_error": rate / OPEN_RATE - 1, **_lateness(result["streams"][0]["lag_s"])}


def gaps_cv(arrivals: str, server: Origin, program: Path, folder: Path) -> float:
    """Coefficient of variation of the gaps between requests as they passed the wire: 0 is a clock, 1 Poisson.

    The server's own stamps would hold its waking: on this bench they alone vary by 0.05.
    """
    scene = Scene(server.port, GAPS_SECONDS, folder, program)
    gaps_plan = plan(Work("gaps", 100, rate=GAPS_RATE), scene)
    gaps_plan["streams"][0]["workload"]["arrivals"] = arrivals
    server.new_books()
    with arrivals_ns(server.port) as times:
        drive(gaps_plan, scene, LIMIT_S)
    received = server.books()["received"]
    if len(times) != received:
        raise RuntimeError(f"{len(times)} requests passed the wire and the server received {received}")
    gaps = [after - before for before, after in itertools.pairwise(sorted(times))]
    return statistics.pstdev(gaps) / statistics.fmean(gaps)


def _lateness(lag: dict[str, Any]) -> dict[str, float]:
    late = {}
    for name in ("p50", "p90", "p99"):
        value = lag[name]["value"]
        if value is not None:
            late[f"open_late_{name}_s"] = value
    return late
