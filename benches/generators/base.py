"""A generator as the bench sees it: a command for a piece of work, and a reader of its output."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benches.measuring import Counted
from benches.works import Work


class CannotDo(Exception):
    """The generator cannot do this piece of work; the message says why."""


@dataclass
class Scene:
    """Target, duration and working folder for a piece of work."""

    port: int
    seconds: int
    folder: Path  # for files that a generator reads and writes
    origin: Path  # the program
    cpu: int = 1
    tls_port: int | None = None
    tells_times: bool = False  # percentiles are read from what it prints
    files: dict[str, str] = field(default_factory=dict)  # what it is given, by name

    def host(self, work: Work) -> str:
        """Scheme, host and port that a piece of work goes to.

        Raises:
            CannotDo: TLS is asked for and the origin has none.
        """
        if not work.is_tls:
            return f"http://127.0.0.1:{self.port}"
        if self.tls_port is None:
            raise CannotDo("the origin has no TLS")
        return f"https://127.0.0.1:{self.tls_port}"

    def url(self, work: Work) -> str:
        """The URL of a GET or POST."""
        return f"{self.host(work)}/"

    def file(self, name: str, content: str) -> str:
        """Write a file that the generator reads; gives its path."""
        path = self.folder / name
        path.write_text(content)
        self.files[name] = content
        return str(path)

    def body(self) -> str:
        """A file with the one body of generators that cannot draw numbers."""
        return self.file("body.json", '{"a":42,"b":57}')


@dataclass(frozen=True, slots=True)
class ReportedTimes:
    """Response times that a generator printed, in seconds; None where it prints none."""

    p50_s: float | None
    p99_s: float | None
    p999_s: float | None
    max_s: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Generator:
    """One generator. `command` raises CannotDo for work that it has no means for."""

    name: str
    command: Callable[[Work, Scene], list[str]]
    why_missing: Callable[[], str | None]  # none: it can take part
    version: Callable[[], str] = lambda: ""
    read: Callable[[str, Path], ReportedTimes] | None = None  # from its stdout and its folder
    counted: Callable[[str], Counted] | None = None  # its own counts, from its stdout
    has_random_body: bool = False
    is_slow: bool = False  # several times the cost of the others: measured in a set of its own


def on_path(program: str) -> Callable[[], str | None]:
    """A check that returns why a generator's program is missing from the PATH, or None."""
    return lambda: None if shutil.which(program) else "not installed"


def asked(*command: str) -> str:
    """Return the first line that a version command prints; empty if it does not start."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0].strip() if lines else ""


def refuse_flow(work: Work) -> None:
    """For generators that send one kind of request and read nothing from an answer."""
    if work.kind == "flow":
        raise CannotDo("takes nothing from an answer into the next request")


def refuse_rate(work: Work) -> None:
    """For generators that know closed loops only."""
    if work.rate is not None:
        raise CannotDo("knows no rate of its own")
