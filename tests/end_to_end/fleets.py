"""Dask clusters of separate processes on this machine, plans against an origin, and what is left of them."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from benches.measuring import ROOT, Origin

from loadlens.model.workload import Closed, Open, Plan, Scenario, Step, Stream, Target

START_S = 20
CHILD = "loadlens.fleet.child"
MARK = "LOADLENS_TEST_OF"  # in the environment of all that this process starts: others test fleets meanwhile
os.environ[MARK] = str(os.getpid())
_PRCTL = ctypes.CDLL(None).prctl
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Tls:
    """A folder with `ca.pem`, `cert.pem` and `key.pem`."""

    folder: Path

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of Dask's programs."""
        files = {"--tls-ca-file": "ca", "--tls-cert": "cert", "--tls-key": "key"}
        return tuple(
            word for flag, name in files.items() for word in (flag, str(self.folder / f"{name}.pem"))
        )

    def settings(self) -> dict[str, str]:
        """Return Dask's configuration of a client."""
        files = {"ca-file": "ca", "client.cert": "cert", "client.key": "key"}
        return {
            f"distributed.comm.tls.{key}": str(self.folder / f"{name}.pem") for key, name in files.items()
        }


class Cluster:
    """`dask scheduler` and `dask worker` processes."""

    def __init__(self, folder: Path, names: tuple[str, ...], tls: Tls | None = None) -> None:
        self.file = folder / "scheduler.json"
        self._folder, self._flags = folder, () if tls is None else tls.flags
        self.scheduler = self._dask("scheduler", "--port", "0", "--no-dashboard", "--no-show")
        assert reached(self.file.exists, START_S), "no scheduler"
        assert reached(lambda: self.file.read_text().endswith("}"), START_S), "the scheduler's file is short"
        self.address: str = json.loads(self.file.read_text())["address"]
        self.workers = {name: self.worker(name) for name in names}

    def worker(self, name: str, *, python_path: Path = ROOT / "python") -> subprocess.Popen[bytes]:
        """Start one more node, with the Loadlens of a folder."""
        threads = ("--no-nanny", "--nthreads", "1", "--no-dashboard")
        where = ("--name", name, "--local-directory", str(self._folder / name))
        return self._dask("worker", *threads, *where, python_path=python_path)

    def _dask(
        self, kind: str, *arguments: str, python_path: Path = ROOT / "python"
    ) -> subprocess.Popen[bytes]:
        with open(self._folder / f"{kind}.log", "ab") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "dask", kind, "--host", "127.0.0.1"),
                    *("--scheduler-file", str(self.file), *self._flags, *arguments),
                ],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(python_path), "TMPDIR": str(self._folder)},
                preexec_fn=_end_with_us,
            )

    def end(self) -> None:
        """Kill what still runs."""
        for process in (*self.workers.values(), self.scheduler):
            process.kill()
        for process in (*self.workers.values(), self.scheduler):
            process.wait()


def _end_with_us() -> None:
    """Have the kernel kill this process when the test that starts it is killed."""
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def cluster(folder: Path, *names: str, tls: Tls | None = None) -> Iterator[Cluster]:
    """Run a cluster with nodes of these names."""
    running = Cluster(folder, names, tls)
    try:
        yield running
    finally:
        running.end()


def engines(of: int | None = None) -> list[psutil.Process]:
    """Return the engine's processes of these tests, all or those below one process."""
    running = []
    for process in psutil.Process(of).children(recursive=True) if of else psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            is_engine = CHILD in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE
            if is_engine and process.environ().get(MARK) == os.environ[MARK]:
                running.append(process)
    return running


def plan_of(
    server: Origin,
    workload: Open | Closed,
    *,
    seconds: float | None = None,
    path: str = "/",
    timeout_s: float = 5.0,
    **more: Any,
) -> Plan:
    """Return a plan of one stream against an origin."""
    scenario = Scenario("look", 1.0, (Step("look", "GET", path),))
    target = Target("127.0.0.1", server.port, f"127.0.0.1:{server.port}")
    stream = Stream("load", "load", target, (scenario,), workload, timeout_ns=round(timeout_s * 1e9))
    duration_ns = None if seconds is None else round(seconds * 1e9)
    fixed = {"seed": 7, "streams": (stream,), "threads": 1, "drain_ns": 2 * 10**9}
    return Plan(**{**fixed, "duration_ns": duration_ns, **more})


def reached(is_so: Callable[[], bool], within_s: float) -> bool:
    """Return whether something becomes true in time."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if is_so():
            return True
        time.sleep(0.02)
    return is_so()
