"""CPU time of the whole machine, as /proc/stat counts it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

_STAT = Path("/proc/stat")
_IDLE, _IOWAIT, _STEAL = 3, 4, 7  # columns in the first line of /proc/stat


class CpuUse(NamedTuple):
    """Shares of the CPU time of all CPUs."""

    busy: float
    stolen: float  # taken by the host of a guest


def use_within(seconds: float) -> CpuUse | None:
    """Measure the use of all CPUs for a while; None if it cannot be read."""
    first = _ticks()
    time.sleep(seconds)
    spent = [now - before for before, now in zip(first, _ticks(), strict=False)]
    total = sum(spent)
    if len(spent) <= _STEAL or total <= 0:
        return None
    waiting = spent[_IDLE] + spent[_IOWAIT] + spent[_STEAL]
    return CpuUse(1 - waiting / total, spent[_STEAL] / total)


def _ticks() -> list[int]:
    """Read the CPU time of all CPUs by kind; empty if unreadable."""
    try:
        return [int(word) for word in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return []
