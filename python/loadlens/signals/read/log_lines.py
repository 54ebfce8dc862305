"""Kinds of lines in a server's log that rules use, counted."""

from __future__ import annotations

import re
from collections.abc import Iterable

from loadlens.model.facts import LogSign

MOST_BYTES = 1 << 20  # of each log, from its end
LONGEST_SAMPLE = 80

# Words in which databases and their drivers say that a lock was waited for in vain.
LOCK = re.compile(
    r"database is locked|database table is locked|lock wait timeout exceeded|deadlock (?:found|detected)"
    r"|could not obtain lock|canceling statement due to lock timeout|lock request time out"
    r"|ORA-00054|ORA-30006|Timeout trying to lock table",
    re.IGNORECASE,
)
# EADDRNOTAVAIL of a connection; a process that cannot listen at an address gets it too, and logs that.
PORTS = re.compile(
    r"^(?!.*\b(?:bind|listen)).*?(?:cannot assign requested address|EADDRNOTAVAIL).*$",
    re.IGNORECASE | re.MULTILINE,
)
DESCRIPTORS = re.compile(r"too many open files|\bEMFILE\b|\bENFILE\b", re.IGNORECASE)
KINDS = {"lock": LOCK, "ports": PORTS, "descriptors": DESCRIPTORS}


def signs(logs: Iterable[str]) -> tuple[LogSign, ...]:
    """Kinds of lines that occur, how often, and the words of the first."""
    counts: dict[str, int] = {}
    samples: dict[str, str] = {}
    for log in logs:
        text = log[-MOST_BYTES:]
        for kind, pattern in KINDS.items():
            for match in pattern.finditer(text):
                counts[kind] = counts.get(kind, 0) + 1
                samples.setdefault(kind, match.group(0)[:LONGEST_SAMPLE])
    return tuple(LogSign(kind, count, samples[kind]) for kind, count in counts.items())


def tail(log: str, lines: int = 20) -> str:
    """The last lines of a log."""
    return "\n".join(log.splitlines()[-lines:])
