"""Levels of a factor that a comparison within one record is between; nothing is measured to find them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from loadlens.errors import UsageError, nearest
from loadlens.model.plain import Unreadable, read
from loadlens.model.recorded import PlannedStudy

if TYPE_CHECKING:
    from loadlens.record import RunRecord

LETTERS: Final = ("A", "B")  # names of both versions of a live comparison, and levels of
ARM: Final = "version"  # the factor of its record


def refuse_levels(record: RunRecord, chosen: Sequence[str]) -> None:
    """Refuse levels that no load of a record was planned at.

    Args:
        record: The record.
        chosen: `FACTOR=LEVEL` of both versions; empty: none are chosen.

    Raises:
        UsageError: See `chosen_of`.
    """
    if not chosen:
        return
    try:
        study = read(PlannedStudy, record.study)
    except Unreadable:
        return  # whatever reads the rest of the record names the damage
    factors: dict[str, list[str]] = {}
    for case in study.cases:
        for name, level in case.levels.items() if case.purpose == "load" else ():
            if level not in factors.setdefault(name, []):
                factors[name].append(level)
    chosen_of(factors, chosen)


def chosen_of(factors: Mapping[str, Sequence[str]], chosen: Sequence[str]) -> tuple[str, str, str]:
    """Return the factor and the two levels that `FACTOR=LEVEL FACTOR=LEVEL` names.

    Raises:
        UsageError: They name two factors, a level that is not there, or one level twice.
    """
    (name, _, first), (other, _, second) = (text.partition("=") for text in chosen)
    if name != other:
        raise UsageError(f"two factors: {name} and {other}", hint=f"{name}=LEVEL {name}=LEVEL")
    for level in (first, second):
        if level not in factors.get(name, ()):
            levels_there = [f"{factor}={each}" for factor, levels in factors.items() for each in levels]
            near = nearest(f"{name}={level}", levels_there)
            from loadlens.present import words

            hint = words.listed(levels_there, "or") if near is None else f"did you mean {near}?"
            raise UsageError(f"no trials at {name}={level}", hint=hint or None)
    if first == second:
        raise UsageError(f"{name}={first} twice", hint="two different levels")
    return name, first, second
