"""Interface of a monitor, and the rows that it yields.

Rows are text as early as possible: labels are encoded once for each process, thread or device and used again
every tick, because the monitors share the machine with what they measure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

from loadlens.model.readings import Metric


class Row(NamedTuple):
    """One reading, its labels already JSON text."""

    metric: str
    labels: str
    unit: str
    value: float | int | None  # none: could not be read
    time_ns: int | None = None  # CLOCK_MONOTONIC; none: the tick's


def reading(metric: Metric, labels: str, value: float | int | None, time_ns: int | None = None) -> Row:
    """Return a reading of a metric of the table."""
    return Row(metric.name, labels, metric.unit, value, time_ns)


class Monitor:
    """One source of readings. Lives in the monitor process only."""

    name: ClassVar[str]  # the `source` of its rows
    settings: ClassVar[type]  # the dataclass of what `open` takes

    def open(self, spec: Any) -> None:
        """Take what to watch. Raises ValueError or OSError if that cannot be."""

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Read once. `last` is the reading at the end: counters must be complete then."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back what was opened."""


def labels(**values: str | int) -> str:
    """Labels as the record keeps them: a JSON object of texts with sorted keys."""
    return json.dumps({name: str(value) for name, value in values.items()}, sort_keys=True)


NO_LABELS = "{}"

_quoted: dict[str, str] = {}  # metrics, sources and units are few and come again every tick


def line(source: str, row: Row, now_ns: int) -> str:
    """The row as one line of readings.jsonl."""
    metric, labels_text, unit, value, time_ns = row
    if value is None or not math.isfinite(value):
        shown = "null"  # JSON has no NaN and no infinity
    else:
        shown = repr(value)
    return (
        f'{{"t":{now_ns if time_ns is None else time_ns},"source":{_quote(source)},"metric":{_quote(metric)},'
        f'"labels":{labels_text},"unit":{_quote(unit)},"value":{shown}}}\n'
    )


def _quote(text: str) -> str:
    quoted = _quoted.get(text)
    if quoted is None:
        quoted = json.dumps(text)
        if len(_quoted) < 10_000:  # a service may export ever new names
            _quoted[text] = quoted
    return quoted
