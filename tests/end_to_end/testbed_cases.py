"""Shared by the tests of the testbed: an odd service in a study, and a search for leftover processes."""

from __future__ import annotations

import contextlib
import http.client
import os
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from loadlens.model.topology import Entry, Ready, Service, Stop
from loadlens.testbed import Testbed, prepare

PYTHON = f"{sys.executable} -I -S"
ODD_SERVICE = Path(__file__).with_name("odd_service.py")


def odd(name: str = "api", manners: str = "", **others: Any) -> Service:
    """A service of these manners: ready on 200 within 10 s, and with time to end on TERM on any machine."""
    return Service(
        **{
            "name": name,
            "start": f"{PYTHON} {ODD_SERVICE} $port {manners}",
            "ready": Ready("/", within_s=10.0),
            "stop": Stop(within_s=20.0),
            **others,
        }
    )


def bed_of(*services: Service, folder: Path, marker: str, **others: Any) -> Testbed:
    """A testbed in a folder of the test's own."""
    prepared = prepare(services, cache=folder / "cache", folder=folder)
    return Testbed(
        services,
        prepared,
        marker=marker,
        scratch=folder / "scratch",
        logs=folder / "logs",
        **others,
    )


def ask_to_die(bed: Testbed, service: str = "api") -> None:
    """Let an odd service end with 7; it does so without an answer."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        urllib.request.urlopen(f"http://{bed.target(Entry(service)).authority}/die", timeout=20)


def said_by(bed: Testbed, log: Path | str) -> str:
    """Text of a log of this testbed; the check returns once all earlier output is written."""
    bed.check()
    return Path(log).read_text()


def command_of(pid: int | str) -> str:
    """The command line of a process, which may hold any bytes; OSError if it is gone."""
    return Path("/proc", str(pid), "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def shared_memory_of(pids: Iterable[int | str]) -> dict[int, str]:
    """The processes that map a file in /dev/shm, and the name of one."""
    mapped = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                if "/dev/shm/" in line:
                    mapped[int(pid)] = line.split()[-1]
    return mapped


def carriers(marker: str) -> list[str]:
    """`pid command` of every live process whose environment says LOADLENS_RUN=marker."""
    lines = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path("/proc", name, "environ").read_bytes().split(b"\0")
            state = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[0]
            command = command_of(name)
        except OSError:
            continue
        if f"LOADLENS_RUN={marker}".encode() in environment and state not in "ZX":
            lines.append(f"{name} {command}")
    return lines


def busy_in(folder: Path) -> list[str]:
    """`pid command` of every process that works in a folder, or names it, but the caller."""
    lines = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = command_of(name)
            where = str(Path("/proc", name, "cwd").readlink())
        except OSError:
            continue
        if int(name) != os.getpid() and (str(folder) in command or where.startswith(str(folder))):
            lines.append(f"{name} {command}")
    return lines


def is_alive(pid: int) -> bool:
    """True if the process runs; false for a zombie."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


Left = TypeVar("Left")


def still_there(look: Callable[[], list[Left]], within_s: float) -> list[Left]:
    """Look until nothing is left or the time is over; return what is left.

    While the whole machine pauses no process can end: at most a tenth of a second counts between two looks.
    """
    waited_s, seen = 0.0, time.monotonic()
    while True:
        left = look()
        now = time.monotonic()
        waited_s, seen = waited_s + min(now - seen, 0.1), now
        if not left or waited_s > within_s:
            return left
        time.sleep(0.02)


def wait_until_gone(marker: str, pids: tuple[int, ...] = (), within_s: float = 3.0) -> list[str]:
    """Wait until marked processes and `pids` have ended; return those that still run."""
    return still_there(
        lambda: carriers(marker) + [f"{pid} (without the marker)" for pid in pids if is_alive(pid)], within_s
    )


def sleepers_below(pid: int) -> tuple[int, ...]:
    """Pids of all `sleep` processes that descend from a process."""
    parents = {}
    commands = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            commands[int(name)] = Path("/proc", name, "cmdline").read_bytes()
        except OSError:
            continue
        parents[int(name)] = int(fields[1])
    sleepers = []
    for candidate, command in commands.items():
        ancestor = candidate
        while ancestor in parents and ancestor != pid:
            ancestor = parents[ancestor]
        if ancestor == pid and command.startswith(b"sleep\0"):
            sleepers.append(candidate)
    return tuple(sleepers)
