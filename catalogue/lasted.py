"""Actual durations of a specimen's holds, waits, pauses and work, which replace its settings as the truth.

A sleeping thread wakes late, and so does the next one in the queue: a lock to be held for 10 ms is held for
10.1 ms. Reading and answering a request also takes CPU time: work of 0.12 ms is 0.15 ms. Intervals of claims
can be as narrow as 1 %, so claims are compared with the durations that the specimens record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from catalogue.family import Specimen
from catalogue.parts import WORK

CAPACITY: Final = "capacity"
LIMITS: Final = ("hold", "work")  # these set the capacity: places / hold, cores / work


def as_measured(specimen: Specimen, lasted: Sequence[Mapping[str, Any]] | None) -> Specimen:
    """Return a specimen with the durations that its servers recorded in place of its settings.

    Args:
        specimen: The service with the truth that follows from its settings.
        lasted: Durations that each server recorded (`loadlens-specimen --help`); None: not recorded.
    """
    if not lasted:
        return specimen
    measured = {
        "hold": _mean([hold for server in lasted for hold in server["holds"].values()]),
        "work": _work(lasted),
        "shift": _mean([server["chosen_waits"] for server in lasted]),
        "length": _mean([server["pauses"] for server in lasted]),
    }
    numbers = dict(specimen.numbers)
    for name, value in measured.items():
        if name not in numbers or value is None:
            continue
        if name in LIMITS and CAPACITY in numbers:
            capacity = numbers[CAPACITY]
            numbers[CAPACITY] = replace(capacity, value=capacity.value * numbers[name].value / value)
        numbers[name] = replace(numbers[name], value=value)
    return replace(specimen, numbers=numbers)


def _work(lasted: Sequence[Mapping[str, Any]]) -> float | None:
    """Return CPU seconds per request for `/work`; the cost of other requests is negligible."""
    answered = sum(server["answered"].get(WORK, 0) for server in lasted)
    return sum(server["cpu_ns"] for server in lasted) / answered / 1e9 if answered else None


def _mean(totals: Sequence[Mapping[str, int]]) -> float | None:
    """Return the mean in seconds; None if it never happened."""
    times = sum(total["times"] for total in totals)
    return sum(total["ns"] for total in totals) / times / 1e9 if times else None
