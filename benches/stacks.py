"""CPU time that sampling stacks takes: from the service itself, and outside of it.

    python -m benches.stacks [--turns N] [LANGUAGE ...]

Small services of each language (`tests/end_to_end/coded`) are loaded with 8 users, in turns with the monitor
and without it. The share taken from the service is the difference of its CPU time per request times the
requests per second without the monitor, in cores: the median over the turns, with the lowest and highest.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benches.measuring import ROOT
from loadlens.machine.listening_sockets import with_descendants
from loadlens.model.readings import Labels, StacksMetrics
from loadlens.signals.collect.monitor import Row
from loadlens.signals.collect.scene import Root
from loadlens.signals.collect.stacks import EVERY_S, Roots, StacksMonitor

SERVICES: Final = ROOT / "tests" / "end_to_end" / "coded"
USERS: Final = 8
TURN_S: Final = 1.5
WITHOUT_LOAD: Final = 10  # moments, as in a trial: by them the monitor knows what an answer costs
READY_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Share:
    """CPU time over wall time of the load of one turn."""

    per_request_s: float  # of the service
    requests_per_s: float
    sampler_cores: float
    moments_per_s: float


def _python(folder: Path) -> list[str]:
    return [sys.executable, str(SERVICES / "pool.py")]


def _jvm(folder: Path) -> list[str]:
    subprocess.run(["javac", "-d", str(folder), str(SERVICES / "Pool.java")], check=True)
    return ["java", "-cp", str(folder), "com.acme.shop.Pool"]


def _node(folder: Path) -> list[str]:
    return ["node", str(SERVICES / "loop.js")]


def _go(folder: Path) -> list[str]:
    subprocess.run(["go", "build", "-o", str(folder / "lock"), "lock.go"], cwd=SERVICES, check=True)
    return [str(folder / "lock")]


def _native(folder: Path) -> list[str]:
    command = ["cc", "-O1", "-g", "-pthread", "-o", str(folder / "hash"), "hash.c"]
    subprocess.run(command, cwd=SERVICES, check=True)
    return [str(folder / "hash")]


def _beam(folder: Path) -> list[str]:
    name = f"bench-{secrets.token_hex(4)}"
    return ["elixir", "--sname", name, "--cookie", name, str(SERVICES / "ledger.exs")]


LANGUAGES: Final[Mapping[str, tuple[str, Callable[[Path], list[str]]]]] = {  # program that is needed; command
    "Python": ("py-spy", _python),
    "JVM": ("javac", _jvm),
    "Node": ("node", _node),
    "Go": ("go", _go),
    "native": ("perf", _native),
    "BEAM": ("elixir", _beam),
}


def main() -> None:
    """Print a row for each language that is here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE", help=", ".join(LANGUAGES))
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    print("| language | taken from the service, cores | outside of it, cores | samples per second |")
    print("| --- | --- | --- | --- |")
    for language in options.languages or LANGUAGES:
        program, command = LANGUAGES[language]
        if shutil.which(program) is None:
            print(f"skipped {language}: no {program} here", file=sys.stderr)
            continue
        print(row(language, command, options.turns), flush=True)


def row(language: str, command: Callable[[Path], list[str]], turns: int) -> str:
    """Return the row of a language."""
    with (
        tempfile.TemporaryDirectory(prefix="loadlens-bench-") as folder,
        _service(command(Path(folder))) as (pid, port),
    ):
        turn(pid, port, is_sampled=False)  # just-in-time compilers
        pairs = [(turn(pid, port, is_sampled=False), turn(pid, port, is_sampled=True)) for _ in range(turns)]
    taken = [(on.per_request_s - off.per_request_s) * off.requests_per_s for off, on in pairs]
    outside = statistics.median(on.sampler_cores for _, on in pairs)
    moments = statistics.median(on.moments_per_s for _, on in pairs)
    spread = f"{statistics.median(taken):.4f} ({min(taken):.4f} to {max(taken):.4f})"
    return f"| {language} | {spread} | {outside:.3f} | {moments:.3g} |"


def turn(pid: int, port: int, *, is_sampled: bool) -> Share:
    """Load the service for a turn, and sample it meanwhile if that is asked for."""
    monitor = StacksMonitor()
    ends, counts = threading.Event(), [0] * USERS
    users = [threading.Thread(target=_user, args=(port, counts, n, ends)) for n in range(USERS)]
    rows: list[Row] = []
    monitor.open(Roots((Root("web", 0, pid),)))

    def tick(times: int) -> None:
        for _ in range(times):
            due = time.monotonic() + EVERY_S
            if is_sampled:
                rows.extend(monitor.tick(time.monotonic_ns(), last=False))
            time.sleep(max(0.0, due - time.monotonic()))

    with contextlib.closing(monitor):
        tick(WITHOUT_LOAD)
        for user in users:
            user.start()
        tick(4)
        before, cpu_s, own_s, began = sum(counts), _cpu_s(pid), _sampler_s(pid), time.monotonic()
        tick(round(TURN_S / EVERY_S))
        took_s = time.monotonic() - began
        requests, used_s, sampler_s = sum(counts) - before, _cpu_s(pid) - cpu_s, _sampler_s(pid) - own_s
        ends.set()
        for user in users:
            user.join()
        if is_sampled:
            rows += monitor.tick(time.monotonic_ns(), last=True)
    seen = {
        (Labels.of(row.labels).pid, row.time_ns)
        for row in rows
        if row.metric == StacksMetrics.thread_sample.name
        and row.time_ns
        and began <= row.time_ns / 1e9 <= began + took_s
    }
    moments = max(Counter(pid for pid, _ in seen).values(), default=0)
    return Share(used_s / max(1, requests), requests / took_s, sampler_s / took_s, moments / took_s)


def _user(port: int, counts: list[int], number: int, ends: threading.Event) -> None:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=READY_S)
    while not ends.is_set():
        link.request("GET", "/")
        link.getresponse().read()
        counts[number] += 1
    link.close()


def _cpu_s(pid: int) -> float:
    """CPU time of a process and its descendants."""
    return sum(_tasks_s(each) for each in with_descendants([pid]))


def _tasks_s(pid: int) -> float:
    """CPU time of the threads of a process that are there."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _sampler_s(service_pid: int) -> float:
    """CPU time of this thread, which samples, and of all programs that it started."""
    started = with_descendants([os.getpid()]) - with_descendants([service_pid]) - {os.getpid()}
    times = os.times()
    ended_s = times.children_user + times.children_system
    return time.thread_time() + ended_s + sum(_tasks_s(pid) for pid in started)


@contextlib.contextmanager
def _service(command: list[str]) -> Iterator[tuple[int, int]]:
    """Start a service, and end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + READY_S
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(timeout=10)


if __name__ == "__main__":
    main()
