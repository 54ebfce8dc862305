"""Errors that a person can act on: what is wrong, where, and one thing to try.

What the service under test does wrong is data and never ends up here; what the lab does wrong does.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Final

MOST_SHOWN: Final = 40  # faults of a file; the others are counted
# Numbers of the faults of a disk or file that takes no more.
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})


class ExitCode(IntEnum):
    """Exit codes for a shell or a CI job. Documented in docs/reference/exit-codes.md; each has a test."""

    OK = 0
    BUG = 1
    USAGE = 2
    TESTBED = 3
    INVALID = 4
    RECORD = 5
    OUTPUT = 6
    OBJECTIVE = 99
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143
    CPU_LIMIT = 152


class LoadlensError(Exception):
    """An expected fault.

    Args:
        message: What is wrong, with the value given; lower case, no full stop.
        where: A place that a person can open, such as `study.yaml:14 experiments.a.load.rate`.
        hint: One thing to try next.
    """

    code = ExitCode.BUG

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        parts = [self.message]
        if self.where:
            parts.append(f"  at {self.where}")
        if self.hint:
            # A question (did you mean ...?) is answered, another tool's word is translated: neither is tried.
            is_said = self.hint.endswith("?") or "; here: " in self.hint
            parts.append(f"  {self.hint}" if is_said else f"  try {self.hint}")
        return "\n".join(parts)


class UsageError(LoadlensError):
    """A flag or an argument that cannot be used as given."""

    code = ExitCode.USAGE


class DefinitionError(LoadlensError):
    """One fault of a study file."""

    code = ExitCode.USAGE


class DefinitionErrors(LoadlensError):
    """All faults of a study file, shown together."""

    code = ExitCode.USAGE

    def __init__(self, faults: list[DefinitionError]) -> None:
        super().__init__(f"{len(faults)} fault{'s' if len(faults) != 1 else ''} in the study")
        self.faults = faults

    def __str__(self) -> str:
        shown = [str(fault) for fault in self.faults[:MOST_SHOWN]]
        if more := len(self.faults) - len(shown):
            shown.append(f"{more:,} more fault{'s' if more != 1 else ''}")
        return "\n\n".join(shown)


class PlanError(LoadlensError):
    """A plan that the engine refuses.

    Args:
        message: All faults in one line.
        faults: Place in the plan and description of each fault, if it is the engine that refuses.
    """

    code = ExitCode.USAGE

    def __init__(self, message: str, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class ScriptError(LoadlensError):
    """A script that does not load, or fails while it runs."""

    code = ExitCode.USAGE


class TestbedError(LoadlensError):
    """A part of the testbed did not come up, or ended before its time."""

    __test__ = False
    code = ExitCode.TESTBED


class EngineError(LoadlensError):
    """The generator's own limit, or a broken law of counting: the result is invalid."""

    code = ExitCode.INVALID


class TooLargeError(EngineError):
    """A load that this machine cannot carry; nothing was started."""

    code = ExitCode.USAGE


# Limits of a machine, a user or a control group by the system's error: what is short, and what to try.
_SHORT_OF: Final = {
    errno.EMFILE: ("open files", "a higher limit: ulimit -n 1024"),
    errno.ENFILE: ("open files on this machine", "end other programs, or raise fs.file-max"),
    errno.EAGAIN: ("processes or threads", "a higher limit: ulimit -u, or pids.max of the control group"),
    errno.ENOMEM: ("memory", "a higher limit: ulimit -v, or memory.max of the control group"),
}


def visible(text: str) -> str:
    """Return a text whose control characters are shown, not sent; line breaks stay."""
    return "".join(c if c == "\n" or c.isprintable() else ascii(c)[1:-1] for c in text)


def reason_of(fault: Exception) -> str:
    """Return why a system call failed, in the system's words: `no such file or directory`."""
    number = None if isinstance(fault, OSError) else _system_error(fault)
    words = getattr(fault, "strerror", None) or str(fault)
    return (words if number is None else os.strerror(number)).lower()


def _system_error(fault: BaseException) -> int | None:
    """Return the system's number of a fault, which libraries in Rust write into their message."""
    in_words = re.search(r"(?:os error|Os { code:) (\d+)", str(fault))
    return int(in_words[1]) if in_words else getattr(fault, "errno", None)


def limit_met(fault: BaseException) -> EngineError | None:
    """Return the limit that made a system call or the start of a thread fail; None for other faults."""
    number = _system_error(fault)
    is_unmapped = isinstance(fault, ImportError) and "failed to map segment" in str(fault)
    if isinstance(fault, MemoryError) or is_unmapped:
        number = errno.ENOMEM
    elif isinstance(fault, RuntimeError) and "can't start new thread" in str(fault):
        number = errno.EAGAIN
    if number not in _SHORT_OF:
        return None
    what, hint = _SHORT_OF[number]
    return EngineError(f"this machine gives no more {what}", hint=hint)


class RecordError(LoadlensError):
    """A record that cannot be read or written."""

    code = ExitCode.RECORD


def joined(faults: Sequence[RecordError]) -> RecordError:
    """Return one error with the messages of all; there is at least one."""
    message = "; ".join(fault.message for fault in faults)
    return RecordError(message, where=faults[0].where, hint=faults[-1].hint)


def nearest(written: str, names: Sequence[str]) -> str | None:
    """Return the word within two edits (insert, delete, change, swap neighbours), the closest first."""
    best: tuple[int, str] | None = None
    for word in names:
        if word == written or abs(len(word) - len(written)) > 2 or len(written) > 80:
            continue
        edits = _edits(written.lower(), word.lower())
        if edits <= 2 and edits < max(len(word), len(written)) and (best is None or edits < best[0]):
            best = (edits, word)
    return None if best is None else best[1]


def _edits(a: str, b: str) -> int:
    """Optimal string alignment distance (Damerau 1964, without edits inside a swap)."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, char in enumerate(a, 1):
        row, before, above = [i], row, before
        for j, other in enumerate(b, 1):
            cost = min(row[j - 1] + 1, before[j] + 1, before[j - 1] + (char != other))
            if i > 1 and j > 1 and char == b[j - 2] and a[i - 2] == other:
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
    return row[-1]


def did_you_mean(written: str, names: Sequence[str]) -> str:
    """Return a hint: the nearest word as a question, or all words."""
    near = nearest(written, names)
    if near is not None:
        return f"did you mean {near}?"
    return f"one of {', '.join(names)}" if names else "remove it, there is none to name"
