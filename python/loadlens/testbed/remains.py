"""Remains of killed labs on this machine: notes of their keepers name them, so that they can be ended.

Each keeper writes a note of what would be left, locked as long as it lives, and removes it at its end. A note
that is not locked is that of a keeper that was killed (`keeper_process.py` finds and ends what it names).
"""

from __future__ import annotations

import os
from pathlib import Path

from loadlens.testbed import keeper_process
from loadlens.testbed.keeper_process import Left


def default_cache() -> Path:
    """Return the folder of built environments: `$LOADLENS_CACHE`, or `~/.cache/loadlens`."""
    given = os.environ.get("LOADLENS_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "loadlens"


def new_note(scope: str) -> str | None:
    """Return the path for the note of a keeper; None if the folder cannot be made."""
    try:
        _folder().mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return str(_folder() / f"{scope}.json")


def find() -> tuple[Left, ...]:
    """Return what killed labs left: processes that run, and folders that exist."""
    return _each(end=False)


def end() -> tuple[Left, ...]:
    """End and remove what killed labs left, and return it."""
    return _each(end=True)


def in_words(left: Left) -> str:
    """Describe what was left: `2 processes (sleep 60; nginx) and 1 folder of run 4f2a`."""
    counted = []
    if left.processes:
        noun = "process" if len(left.processes) == 1 else "processes"
        commands = list(dict.fromkeys(filter(None, left.processes.values())))[:3]
        shown = f" ({'; '.join(commands)})" if commands else ""
        counted.append(f"{len(left.processes)} {noun}{shown}")
    if left.folders:
        counted.append(f"{len(left.folders)} folder{'s' * (len(left.folders) > 1)}")
    return f"{' and '.join(counted)} of run {left.marker}"


def _folder() -> Path:
    return default_cache() / "keepers"


def _each(*, end: bool) -> tuple[Left, ...]:
    notes = sorted(_folder().glob("*.json")) if _folder().is_dir() else []
    each = (keeper_process.what_is_left(str(note), end=end) for note in notes)
    return tuple(left for left in each if left is not None and (left.processes or left.folders))
