"""The place of a fleet as it is written: read without loading Dask, so that a mistake costs nothing."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loadlens import named_pipes
from loadlens.errors import UsageError, reason_of

MOST_LOCAL: Final = 64
MOST_BYTES: Final = 1 << 20  # of a scheduler's file
WRITTEN_S: Final = 2.0  # of a scheduler that has just been started, for its file
FORMS: Final = "tcp://HOST:8786, tls://HOST:8786, a scheduler's JSON file, ssh:HOST,HOST or local:4"


@dataclass(frozen=True, slots=True)
class Place:
    """A scheduler that runs, or a cluster to make: workers on this machine, or on others over SSH."""

    scheduler: str = ""  # its address; empty: a cluster is made
    local: int = 0  # workers on this machine
    hosts: tuple[str, ...] = ()  # over SSH
    written: str = field(default="", compare=False)

    @property
    def nodes(self) -> int:
        """Nodes that it has at least."""
        return self.local or len(self.hosts) or 1


def place_of(where: str) -> Place:
    """Return the place that `where` names.

    Args:
        where: `tcp://…`, `tls://…`, a scheduler's JSON file, `ssh:HOST,HOST` or `local:NUMBER`.

    Raises:
        UsageError: It names none.
    """
    kind, _, rest = where.partition(":")
    if kind in ("tcp", "tls"):
        return Place(scheduler=where, written=where)
    if kind == "local":
        if not re.fullmatch("[0-9]{1,3}", rest) or not 1 <= int(rest) <= MOST_LOCAL:
            raise UsageError(f"local:{rest} is no number of nodes", hint=f"local:4, at most {MOST_LOCAL}")
        return Place(local=int(rest), written=where)
    if kind == "ssh":
        hosts = tuple(host for host in rest.split(",") if host)
        if not hosts or any(host.startswith("-") for host in hosts):
            raise UsageError(f"{where} names no hosts", hint="ssh:HOST,HOST")
        return Place(hosts=hosts, written=where)
    if where.endswith(".json"):
        return Place(scheduler=_address(Path(where)), written=where)
    raise UsageError(f"a fleet is not named like this: {where}", hint=FORMS)


def _address(file: Path) -> str:
    """Read a scheduler's file; one that is being written is waited for."""
    until = time.monotonic() + WRITTEN_S
    try:
        text = named_pipes.read(file, MOST_BYTES).decode()
        while _is_begun(text) and time.monotonic() < until:
            time.sleep(0.05)
            text = named_pipes.read(file, MOST_BYTES).decode()
        return str(json.loads(text)["address"])
    except (OSError, ValueError, KeyError, TypeError) as fault:
        why = f": {reason_of(fault)}" if isinstance(fault, OSError) else ""
        hint = "dask scheduler --scheduler-file FILE"
        raise UsageError(f"{file} is no file of a scheduler{why}", hint=hint) from None


def _is_begun(text: str) -> bool:
    return not text or (text.startswith("{") and not text.rstrip().endswith("}"))
