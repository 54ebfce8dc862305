"""Commands of a study file as arguments, and their time limit."""

from __future__ import annotations

import shlex

from loadlens.errors import TestbedError
from loadlens.testbed.replica_names import Names

COMMAND_WITHIN_S = 600.0  # setup, reset and verify commands


def arguments(text: str, names: Names, *, where: str) -> tuple[str, ...]:
    """Split a command line and fill its names; a path with a space stays one argument."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TestbedError(f"cannot split {text!r}: {str(error).lower()}", where=where) from None
    if not words:
        raise TestbedError("the command is empty", where=where)
    return tuple(names.fill(word, where=where) for word in words)
