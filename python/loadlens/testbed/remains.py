"""Remains of killed labs on this machine: notes name them, so that they can be ended.

A note (`temporary.py`) says what would be left, is locked as long as its owner lives, and goes with it. One
that is not locked is that of a killed lab or keeper (`keeper_process.py` finds and ends what it names).
"""

from __future__ import annotations

from loadlens.temporary import notes_folder
from loadlens.testbed import keeper_process
from loadlens.testbed.keeper_process import Left


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


def _each(*, end: bool) -> tuple[Left, ...]:
    notes = sorted(notes_folder().glob("*.json")) if notes_folder().is_dir() else []
    each = (keeper_process.what_is_left(str(note), end=end) for note in notes)
    return tuple(left for left in each if left is not None and (left.processes or left.folders))
