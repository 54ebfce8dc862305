"""Commands as a user types them, run by a shell, and what they left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.end_to_end.testbed_cases import command_of

PROGRAM = f"{sys.executable} -m loadlens"
WITHIN_S = 60.0
MARK = "LOADLENS_EDGE"  # on every process of a command


def possible(code: int, command: str) -> set[int]:
    """Return the codes of a command whose own is given: a load that this machine held up is invalid, too."""
    makes_load = any(
        f"$L {verb}" in command for verb in ("hit $U", "run $S", "run study", "wrk", "ab", "hey")
    )
    return {code, 4} if makes_load and code in (0, 6, 99) else {code}


@dataclass(frozen=True)
class Done:
    """The end of a command: its code, its output, and what it left behind."""

    code: int
    stdout: str
    stderr: str
    left: tuple[str, ...]  # processes and temporary files

    @property
    def shown(self) -> str:
        return f"code {self.code}\n{self.stdout[-2000:]}\n{self.stderr[-2000:]}\n{self.left}"


def run(command: str, folder: Path, settings: Mapping[str, str] | None = None) -> Done:
    """Run a line of a shell in a folder, with a place for temporary files of its own."""
    temporary = folder / "tmp-of-the-test"
    temporary.mkdir(exist_ok=True)
    mark = f"{folder}-{time.monotonic_ns()}"
    environment = {**os.environ, "TMPDIR": str(temporary), MARK: mark, "L": PROGRAM, **(settings or {})}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        timeout=WITHIN_S,
        check=False,
    )
    until = time.monotonic() + 10
    while (left := [*marked(mark), *map(str, temporary.iterdir())]) and time.monotonic() < until:
        time.sleep(0.02)
    return Done(
        done.returncode,
        done.stdout.decode(errors="replace"),
        done.stderr.decode(errors="replace"),
        tuple(left),
    )


def marked(mark: str) -> list[str]:
    """Return the command lines of processes with this mark in their environment."""
    lines = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                lines.append(command_of(entry.name))
        except OSError:
            continue  # ended meanwhile
    return lines


def assert_is_clean(done: Done) -> None:
    """No traceback, no bug, nothing sent to the terminal, nothing left."""
    assert "Traceback" not in done.stderr, done.shown
    assert "internal error" not in done.stderr, done.shown
    assert "\x1b" not in done.stderr, done.shown
    assert done.left == (), done.shown
