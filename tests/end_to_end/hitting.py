"""Runs of `loadlens hit` against an origin, for the tests of this folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benches.measuring import ROOT, Origin

from tests.calm import assert_counted

LIMIT_S = 60


def origin_program() -> Path:
    """The release build that `make test` makes first."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "release" / "loadlens-origin"
    if not program.exists():
        raise FileNotFoundError(f"{program}: cargo build --release -p loadlens-origin")
    return program


def url_of(server: Origin, path: str = "/") -> str:
    return f"http://127.0.0.1:{server.port}{path}"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "loadlens", "hit", "--json", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "python")}


def tried(url: str, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a hit to its end, however it ends; `more` goes to `subprocess.run`."""
    return subprocess.run(
        command(url, *arguments), capture_output=True, text=True, timeout=LIMIT_S, env=environment(), **more
    )


def hit(server: Origin, path: str, *arguments: str) -> dict[str, Any]:
    """Run a hit whose counts are good, and give its JSON."""
    server.new_books()
    done = tried(url_of(server, path), *arguments)
    assert_counted(done)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def spawned(url: str, *arguments: str) -> subprocess.Popen[str]:
    """A hit that runs, its output to be read."""
    return subprocess.Popen(
        command(url, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def begin(server: Origin, path: str, *arguments: str, accepted: int = 0) -> subprocess.Popen[str]:
    """Begin a hit; returns when the server has seen its first request, and so many connections."""
    server.new_books()
    process = spawned(url_of(server, path), *arguments)
    until = time.monotonic() + LIMIT_S
    while not (counts := server.books())["received"] or counts["connections"]["accepted"] < accepted:
        assert time.monotonic() < until, "no request came"
        time.sleep(0.02)
    return process


def ended(process: subprocess.Popen[str], *statuses: int) -> dict[str, Any]:
    """Wait for the end of a hit that must exit so (by default 0); gives its JSON, whose counts add up."""
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode in (statuses or (0,)), out[-2000:] + err
    result: dict[str, Any] = json.loads(out)
    check_law(result["requests"])
    return result


def stop_for(process: subprocess.Popen[str], seconds: float) -> None:
    """Take a process off its core: the generator's own fault, in its purest form."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)


def settled_books(server: Origin) -> dict[str, Any]:
    """The books once every connection is closed."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        counts: dict[str, Any] = server.books()
        if not counts["open"] and not counts["accept_queue"]:
            return counts
        time.sleep(0.01)
    raise AssertionError("connections stay open")


def check_law(requests: dict[str, int]) -> None:
    """The law of counting, recomputed."""
    assert requests["due"] == requests["issued"] + requests["dropped"] + requests["waiting"]
    assert requests["issued"] == requests["answered"] + requests["failed"] + requests["in_flight"]
    judged = requests["ok"] + requests["unexpected_status"] + requests["check_failed"]
    assert requests["answered"] == judged
