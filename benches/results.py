"""The data file: every measurement as it was made, one line each, so that tables can be made again.

There is one file for each engine on each machine. Sets of measurements are added to it, so that quick and
slow generators can be measured at different times, compared through the peer that takes part in each round.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benches import machine
from benches.measuring import ROOT, Used

FOLDER = ROOT / "benches" / "results"
SCHEMA_VERSION = 2
OPTIONAL = ("left_out", "note")  # not written when there is nothing to say


@dataclass(frozen=True, slots=True)
class Cost:
    """One generator in one round of one piece of work: a short run and a longer one."""

    work: str
    generator: str
    set: int  # position in `sets`
    round: int
    short: Used
    long: Used
    left_out: str | None = None  # why it does not count

    @property
    def marginal(self) -> Used:
        """Resources that the longer run used beyond the short one."""
        return self.long.minus(self.short)


@dataclass(frozen=True, slots=True)
class Claim:
    """Times that one generator printed in one run against a service of known times, in seconds."""

    case: str
    generator: str
    set: int
    p50_s: float | None
    p99_s: float | None
    p999_s: float | None
    max_s: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """One reading of something that has a bar of its own, in the unit that its name ends with."""

    name: str
    set: int
    value: float
    left_out: str | None = None  # why it does not count


@dataclass
class Results:
    """Everything that was measured of one engine on one machine."""

    path: Path
    subject: dict[str, str]
    machine: dict[str, Any]
    sets: list[dict[str, Any]] = field(default_factory=list)
    commands: dict[str, dict[str, str]] = field(default_factory=dict)  # by work or case, then generator
    files: dict[str, str] = field(default_factory=dict)  # what generators were given, by name
    cost: list[Cost] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)

    def begin_set(self, kind: str, options: Mapping[str, Any], versions: Mapping[str, str]) -> int:
        """Enter a new set of measurements; gives its position."""
        entry = {"kind": kind, "began": _now(), "commit": self.subject["commit"], "options": dict(options)}
        self.sets.append({**entry, "machine": machine.state(), "versions": dict(versions)})
        return len(self.sets) - 1

    def command(self, work: str, generator: str, command: str, files: Mapping[str, str]) -> None:
        """Keep the command of a generator for a piece of work, and its files."""
        self.commands.setdefault(work, {})[generator] = command
        self.files.update(files)

    def write(self) -> None:
        """Write the file whole, one measurement per line."""
        if self.sets:
            self.sets[-1]["ended"] = _now()
        head = {
            "schema_version": SCHEMA_VERSION,
            "subject": self.subject,
            "machine": self.machine,
            "sets": self.sets,
            "commands": self.commands,
            "files": self.files,
        }
        parts = [f"{json.dumps(name)}: {json.dumps(value, indent=1)}" for name, value in head.items()]
        for name in ("cost", "claims", "limits"):
            lines = ",\n".join(json.dumps(_rounded(asdict(entry))) for entry in getattr(self, name))
            parts.append(f'"{name}": [\n{lines}\n]')
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def current(folder: Path = FOLDER, *, anew: bool = False) -> Results:
    """The results of this engine on this machine, to be added to; empty ones when there are none."""
    subject = machine.subject()
    paths = sorted(folder.glob(f"*-{subject['digest']}.json"))
    if paths and not anew:
        results = read(paths[-1])
        results.subject = subject
        return results
    path = folder / f"{time.strftime('%Y-%m-%d')}-{subject['digest']}.json"
    return Results(path, subject, machine.facts())


def newest(folder: Path = FOLDER) -> Path | None:
    """The data file of the latest day."""
    return max(folder.glob("*.json"), default=None, key=lambda path: path.name)


def read(path: Path) -> Results:
    """Read a data file.

    Raises:
        ValueError: It was written by another version of the bench.
    """
    document = json.loads(path.read_text())
    if document.pop("schema_version") != SCHEMA_VERSION:
        raise ValueError(f"{path}: not a data file of version {SCHEMA_VERSION}")
    cost = [
        Cost(**{**row, "short": Used(**row["short"]), "long": Used(**row["long"])})
        for row in document.pop("cost")
    ]
    claims = [Claim(**row) for row in document.pop("claims")]
    limits = [Limit(**row) for row in document.pop("limits")]
    return Results(path, cost=cost, claims=claims, limits=limits, **document)


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M %Z")


def _rounded(value: Any) -> Any:
    """Six significant digits are more than any clock here is good for."""
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items() if name not in OPTIONAL or item}
    return float(f"{value:.6g}") if isinstance(value, float) else value
