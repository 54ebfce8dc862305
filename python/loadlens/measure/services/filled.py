"""Types of the facts with their declared signals, over the trials of a case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, TypeVar

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.model.finding import Figure
from loadlens.signals.read.fields import SignalValues, joined, signals_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
Level = Callable[[str, str, Sequence[Interval | Insufficient]], Figure]  # `CaseMeasures.level_figure`


def filled(kind: type[T], trials: Sequence[SignalValues], level: Level, **others: Any) -> T:
    """Return one of the facts: its declared signals over some trials, and its other fields as given."""
    has_default = {field.name for field in fields(kind) if field.default is not MISSING}
    for name, signal in signals_of(kind).items():
        values = [trial.values.get(signal) for trial in trials]
        if signal.figure:
            measured = [value for value in values if isinstance(value, Interval | Insufficient)]
            others[name] = level(signal.figure, signal.unit, measured)
            continue
        number = joined(signal, [value for value in values if isinstance(value, float)])
        if number is not None or name not in has_default:
            others[name] = number
    return kind(**others)
