"""A measured run: a generator on its core, the origin on another, and the resources that each used.

Counts come from the origin's books, CPU time from the kernel; a generator's own figures are not
used.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SERVER_CPU, GENERATOR_CPU = 0, 1


@dataclass(frozen=True, slots=True)
class Counted:
    """Requests that a generator counted itself, over all its streams."""

    issued: int
    answered: int
    in_flight: int  # issued and not ended when it stopped

    def unexplained(self, server_counts: Mapping[str, Any]) -> int:
        """Requests lost, doubled or invented, by the server's books, which may hold what was in flight."""
        received, answered = server_counts["received"], server_counts["answered"]
        return sum(
            max(0, count)
            for count in (
                received - self.issued,
                self.issued - received - self.in_flight,
                self.answered - answered,
                answered - self.answered - self.in_flight,
            )
        )


@dataclass(frozen=True, slots=True)
class Used:
    """Resources that one run used, and the requests that the server saw."""

    requests: int  # answered, by the server's books
    generator_cpu_s: float  # user and system, the generator's whole process tree
    server_cpu_s: float
    wall_s: float  # of the process, start-up included
    waited: float  # share of the time in which some task of the machine waited for a processor
    violations: int
    connections: int  # accepted by the server
    stolen: float = 0.0  # share of the machine's processor time that its host gave to others meanwhile
    unexplained: int | None = None  # see Counted; none: the generator is not asked

    def minus(self, other: Used) -> Used:
        """The run without another: a long one without a short one has no start-up left in it."""
        return Used(
            self.requests - other.requests,
            self.generator_cpu_s - other.generator_cpu_s,
            self.server_cpu_s - other.server_cpu_s,
            self.wall_s - other.wall_s,
            max(self.waited, other.waited),
            self.violations + other.violations,
            self.connections - other.connections,
            max(self.stolen, other.stolen),
            None if self.unexplained is None else self.unexplained + (other.unexplained or 0),
        )

    @property
    def cpu_us_per_request(self) -> float:
        """Microseconds of the generator's CPU for one request."""
        return self.generator_cpu_s / self.requests * 1e6 if self.requests > 0 else float("nan")

    @property
    def requests_per_s(self) -> float:
        """Requests per second of wall time."""
        return self.requests / self.wall_s if self.wall_s > 0 else float("nan")

    @property
    def busy(self) -> float:
        """Share of its core that the busier side used."""
        return max(self.generator_cpu_s, self.server_cpu_s) / self.wall_s if self.wall_s > 0 else 0.0


class Origin:
    """A running `loadlens-origin` and its books."""

    def __init__(self, process: subprocess.Popen[str], hello: dict[str, int]) -> None:
        self.process = process
        self.port = hello["port"]
        self.control_port = hello["control_port"]

    def books(self) -> dict[str, Any]:
        """The books as they stand."""
        return self._read("books")

    def log(self) -> dict[str, Any]:
        """The requests that it kept (`--log-rows`), by time of answer."""
        return self._read("log")

    def _read(self, what: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.control_port}/{what}", timeout=30) as answer:
            read: dict[str, Any] = json.load(answer)
            return read

    def new_books(self) -> None:
        """Begin new ones, once nothing of the run before is left open."""
        until = time.monotonic() + 20
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
        yield Origin(process, json.loads(process.stdout.readline()))
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(timeout=10)


def taken_s(log: Mapping[str, Any]) -> list[float]:
    """Seconds per request in the server's log, from whole request to whole answer, sorted."""
    return sorted((row["answered_ns"] - row["received_ns"]) / 1e9 for row in log["rows"])


@dataclass(frozen=True, slots=True)
class Ended:
    """Exit status, resource use and output of a process."""

    status: int
    cpu_s: float  # user and system, its waited-for children included
    wall_s: float
    stdout: str
    stderr: str

    @property
    def fault(self) -> str | None:
        """The reason that the run cannot be used; None if it ended well."""
        return f"ended with {self.status}: {self.stderr.strip()[-300:]}" if self.status else None


def run(
    command: list[str], cpu: int | None, limit_s: float, environment: Mapping[str, str] | None = None
) -> Ended:
    """Run a command, on one core if given, and end it when it is late; our environment if none is given."""
    # Files and not pipes: a pipe that is not read would hold the generator up.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environment,
            preexec_fn=None if cpu is None else lambda: os.sched_setaffinity(0, {cpu}),  # with its children
        )
        ends = os.pidfd_open(process.pid)
        try:
            watch = select.poll()
            watch.register(ends, select.POLLIN)
            if not watch.poll(limit_s * 1e3):
                process.kill()
        finally:
            os.close(ends)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        outputs = []
        for file in (out, err):
            file.seek(0)
            outputs.append(file.read().decode(errors="replace"))
    return Ended(process.returncode, used.ru_utime + used.ru_stime, wall_s, *outputs)


def measure(
    command: list[str],
    server: Origin,
    cpu: int,
    limit_s: float,
    counted: Callable[[str], Counted] | None = None,
) -> Used | str:
    """Run a generator on one core; what it used, or why the run cannot be used.

    With `counted`, which reads what a generator printed, its own counts are held against the books.
    """
    server.new_books()
    server_before, waited_before, stolen_before = server.cpu_s(), waited_s(), stolen_s()
    ended = run(command, cpu, limit_s)
    if ended.fault is not None:
        return ended.fault
    counts = server.books()
    waited = (waited_s() - waited_before) / ended.wall_s
    server_s = server.cpu_s() - server_before
    stolen = (stolen_s() - stolen_before) / ended.wall_s / (os.cpu_count() or 1)
    return Used(
        counts["answered"],
        ended.cpu_s,
        server_s,
        ended.wall_s,
        waited,
        violations=counts["violations"],
        connections=counts["connections"]["accepted"],
        stolen=stolen,
        unexplained=None if counted is None else counted(ended.stdout).unexplained(counts),
    )


def stolen_s() -> float:
    """Seconds of all processors, since boot, that the host gave to others; 0 where not reported."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    except OSError:
        return 0.0
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


class Host:
    """Share of processor time that this machine's host gave to others since the last reading."""

    MOST = 0.02  # beyond it a time is the host's and not ours

    def __init__(self) -> None:
        self._at, self._stolen_s = time.monotonic(), stolen_s()

    def why_not(self) -> str | None:
        """Return the reason to leave out what was measured since the last reading, or None."""
        at, stolen = time.monotonic(), stolen_s()
        share = (stolen - self._stolen_s) / max(1e-9, at - self._at) / (os.cpu_count() or 1)
        self._at, self._stolen_s = at, stolen
        return f"the host gave {share:.0%} to others" if share > self.MOST else None


def waited_s() -> float:
    """Seconds since boot in which some task waited for a processor; 0 where not reported."""
    try:
        line = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    except OSError:
        return 0.0
    return int(line.split("total=")[1]) / 1e6


def pressure() -> float | None:
    """Share of the last ten seconds in which some task waited for a processor, if the kernel reports it."""
    try:
        line = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    except OSError:
        return None
    return float(line.split("avg10=")[1].split()[0]) / 100
