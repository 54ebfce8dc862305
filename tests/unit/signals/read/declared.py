"""Declared signals of one type of the facts, as the tests look at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.signals.read import fields
from loadlens.signals.read.fields import Value
from loadlens.signals.read.resources import Process
from loadlens.signals.read.trial_series import Readings


def values(
    kind: type, readings: Readings, begin: float, end: float, processes: Sequence[Process]
) -> Mapping[str, Value]:
    """Return the value of each field in one trial."""
    by_signal = fields.read(readings, processes, begin, end).values
    return {name: by_signal[signal] for name, signal in fields.signals_of(kind).items()}


def point(value: Value) -> float:
    """Return the point of an interval."""
    assert isinstance(value, Interval)
    return value.point


def unread(value: Value) -> bool:
    """True if nothing is known."""
    return isinstance(value, Insufficient)
