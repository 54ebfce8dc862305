"""Fields of the facts that are declared with a `Signal`: their values in one trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import get_args, get_type_hints

import numpy as np

from loadlens.estimate.interval import Interval, Measured
from loadlens.model import facts
from loadlens.model.readings import ProcMetrics, Signal
from loadlens.signals.read.resources import Process
from loadlens.signals.read.trial_series import NOT_READ, Readings, Series, of_time

Value = Measured | float | None


@dataclass(frozen=True, slots=True, eq=False)
class SignalValues:
    """Every declared signal in one trial."""

    values: Mapping[Signal, Value] = field(default_factory=dict)
    monitors: frozenset[str] = frozenset()  # those with a reading of a declared signal


@cache
def signals_of(kind: type) -> Mapping[str, Signal]:
    """Return the signals that the fields of a dataclass are declared with, by field."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        name: extra
        for name, hint in hints.items()
        for extra in get_args(hint)[1:]
        if isinstance(extra, Signal)
    }


@cache
def declared() -> tuple[Signal, ...]:
    """Return the signals of all types of the facts."""
    kinds = [kind for kind in vars(facts).values() if getattr(kind, "__module__", "") == facts.__name__]
    return tuple(signal for kind in kinds for signal in signals_of(kind).values())


def read(readings: Readings, processes: Sequence[Process], begin: float, end: float) -> SignalValues:
    """Return every declared signal over the measured part [begin, end], seconds since t0.

    Args:
        readings: Of all monitors.
        processes: Of the services.
        begin: Of the measured part.
        end: Of it.
    """
    values: dict[Signal, Value] = {}
    monitors = set()
    for signal in declared():
        series = _series(signal, readings, processes)
        if any(each is not None for each in series):
            monitors.add(signal.metric.monitor)
        if signal.figure:
            values[signal] = _measured(signal, series, begin, end)
        else:
            values[signal] = joined(signal, [None if s is None else _number(signal, s) for s in series])
    return SignalValues(values, frozenset(monitors))


def _series(signal: Signal, readings: Readings, processes: Sequence[Process]) -> list[Series | None]:
    """Return the series of the services and the machine; none for a process that was not read."""
    if signal.metric.monitor == ProcMetrics.rss_bytes.monitor:
        return [process.series.get(signal.metric) for process in processes]
    return [s for s in readings.of(signal.metric) if not s.labels.service.startswith("(")]


def _measured(signal: Signal, series: Sequence[Series | None], begin: float, end: float) -> Measured:
    rates = [NOT_READ if each is None else each.rate(begin, end) for each in series]
    intervals = [rate for rate in rates if isinstance(rate, Interval)]
    if signal.join == "sum":
        if not intervals or len(intervals) < len(rates):
            return NOT_READ
        return Interval(sum(rate.point for rate in intervals), None, None, 1.0, "difference of readings")
    if len(rates) == 1:
        worst = rates[0]
    else:
        worst = max(intervals, key=lambda rate: rate.point, default=NOT_READ)
    return of_time(worst) if signal.take == "share of time" else worst


def _number(signal: Signal, series: Series) -> float:
    match signal.take:
        case "highest":
            return float(series.values.max())
        case "median":
            return float(np.median(series.values))
        case "growth":
            return float(series.values[-1] - series.values[0])
        case "seconds":
            return float(series.seconds[-1] - series.seconds[0])
        case _:
            return float(series.values[-1])


def joined(signal: Signal, values: Iterable[float | None]) -> float | None:
    """Return several values of a signal as one, of several series or several trials; none of none."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    match signal.join:
        case "sum":
            return max(0.0, sum(numbers))
        case "least":
            return min(numbers)
        case _:
            return max(numbers)
