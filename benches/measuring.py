"""What a measured run is: a generator on its core, the origin on another, and what each of them used.

Counts come from the origin's books, CPU time from the kernel; nothing that a generator says about itself
is used.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Used:
    """What one run used, and what the server saw of it."""

    requests: int  # answered, by the server's books
    generator_cpu_s: float  # user and system, the generator's whole process tree
    server_cpu_s: float
    wall_s: float  # of the process, start-up included
    violations: int

    def minus(self, other: Used) -> Used:
        """The run without another: a long one without a short one has no start-up left in it."""
        return Used(
            self.requests - other.requests,
            self.generator_cpu_s - other.generator_cpu_s,
            self.server_cpu_s - other.server_cpu_s,
            self.wall_s - other.wall_s,
            self.violations + other.violations,
        )

    @property
    def cpu_us_per_request(self) -> float:
        """Microseconds of the generator's CPU for one request."""
        return self.generator_cpu_s / self.requests * 1e6 if self.requests > 0 else float("nan")

    @property
    def busy(self) -> float:
        """Share of its core that the busier side used."""
        return max(self.generator_cpu_s, self.server_cpu_s) / self.wall_s if self.wall_s > 0 else 0.0


class Origin:
    """A running `loadlens-origin` and its books."""

    def __init__(self, process: subprocess.Popen[str], port: int, control_port: int) -> None:
        self.process = process
        self.port = port
        self.control_port = control_port

    def books(self) -> dict[str, object]:
        """The books as they stand."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.control_port}/books", timeout=10) as answer:
            read: dict[str, object] = json.load(answer)
            return read

    def new_books(self) -> None:
        """Begin new ones, once nothing of the run before is left open."""
        until = time.monotonic() + 5
        while time.monotonic() < until and self.books()["open"]:
            time.sleep(0.01)
        url = f"http://127.0.0.1:{self.control_port}/books/reset"
        request = urllib.request.Request(url, data=b"", method="POST")
        with urllib.request.urlopen(request, timeout=10):
            pass

    def cpu_s(self) -> float:
        """CPU time of all its threads so far."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def find_origin() -> Path:
    """The release build of the origin, built when it is not there."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "release" / "loadlens-origin"
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "loadlens-origin"], cwd=ROOT, check=True)
    return program


@contextlib.contextmanager
def origin(program: Path, cpu: int, *arguments: str) -> Iterator[Origin]:
    """Start an origin on one core; it ends with its standard input, so with us."""
    process = subprocess.Popen(
        [str(program), "--cpus", str(cpu), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        hello = json.loads(process.stdout.readline())
        yield Origin(process, hello["port"], hello["control_port"])
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(timeout=10)


def measure(command: list[str], server: Origin, cpu: int, limit_s: float) -> Used | str:
    """Run a generator on one core; what it used, or why the run cannot be used."""
    server.new_books()
    server_before = server.cpu_s()
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),  # the whole tree inherits it
    )
    assert process.stderr is not None
    status, used = _wait(process, began + limit_s)
    wall_s = time.monotonic() - began
    said = process.stderr.read().decode(errors="replace").strip()
    process.stderr.close()
    if status != 0:
        return f"ended with {status}: {said[-300:]}"
    books = server.books()
    requests, violations = books["answered"], books["violations"]
    assert isinstance(requests, int)
    assert isinstance(violations, int)
    cpu_s = used.ru_utime + used.ru_stime
    return Used(requests, cpu_s, server.cpu_s() - server_before, wall_s, violations)


def _wait(process: subprocess.Popen[bytes], until: float) -> tuple[int, resource.struct_rusage]:
    """Exit code and use of a process and of the children that it waited for; ended by us when late."""
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, used
        if time.monotonic() > until:
            process.kill()
        time.sleep(0.005)


def pressure() -> float | None:
    """Share of the last ten seconds in which some task waited for a processor, where the kernel tells."""
    try:
        line = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    except OSError:
        return None
    return float(line.split("avg10=")[1].split()[0]) / 100
