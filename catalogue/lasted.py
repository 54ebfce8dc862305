"""How long a specimen's holds, waits, pauses and work really were, in place of what it was told.

Whoever sleeps is woken late, and so is the next in a line: a lock that is to be held for 10 ms is held for
10.1. Reading a request and answering it takes processor time as well: work of 0.12 ms is 0.15. What is
claimed with an interval of a hundredth is held against what was, which the specimens book.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from catalogue.family import Known
from catalogue.parts import WORK

CAPACITY: Final = "capacity"
LIMITS: Final = ("hold", "work")  # where one is known it is the limit: places / hold, cores / work


def really(known: Known, lasted: Sequence[Mapping[str, Any]] | None) -> Known:
    """What is true of a service that was measured.

    Args:
        known: What is true of it as it was asked for.
        lasted: What each of its servers booked (`loadlens-specimen --help`); none: nobody asked them.
    """
    if not lasted:
        return known
    measured = {
        "hold": _mean([one for server in lasted for one in server["holds"].values()]),
        "work": _work(lasted),
        "shift": _mean([server["chosen_waits"] for server in lasted]),
        "length": _mean([server["pauses"] for server in lasted]),
    }
    numbers = dict(known.numbers)
    for name, value in measured.items():
        if name not in numbers or value is None:
            continue
        if name in LIMITS and CAPACITY in numbers:
            asked = numbers[CAPACITY]
            numbers[CAPACITY] = replace(asked, value=asked.value * numbers[name].value / value)
        numbers[name] = replace(numbers[name], value=value)
    return replace(known, numbers=numbers)


def _work(lasted: Sequence[Mapping[str, Any]]) -> float | None:
    """Processor time of a request; what touches nothing costs nothing in comparison."""
    answered = sum(server["answered"].get(WORK, 0) for server in lasted)
    return sum(server["cpu_ns"] for server in lasted) / answered / 1e9 if answered else None


def _mean(told: Sequence[Mapping[str, int]]) -> float | None:
    """In seconds; none: it never happened."""
    times = sum(one["times"] for one in told)
    return sum(one["ns"] for one in told) / times / 1e9 if times else None
