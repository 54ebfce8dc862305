"""Rows as the tests look at them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

from loadlens.model.readings import Metric
from loadlens.signals.collect.monitor import Monitor, Row


def read(monitor: Monitor, *, last: bool = False) -> list[Row]:
    """One tick now."""
    return list(monitor.tick(time.monotonic_ns(), last=last))


def values(rows: Sequence[Row], metric: str, **wanted: str) -> list[Any]:
    """Values of a metric in the rows whose labels hold all that is wanted."""
    return [
        row.value for row in rows if row.metric == metric and wanted.items() <= json.loads(row.labels).items()
    ]


def unlisted(rows: list[Row], metrics: Iterable[Metric]) -> set[tuple[str, str]]:
    """Metrics with their units that rows have and the monitor's table does not."""
    return {(row.metric, row.unit) for row in rows} - {(metric.name, metric.unit) for metric in metrics}


def value(rows: list[Row], metric: str, **wanted: str) -> float:
    """Return the only value of a metric."""
    (only,) = values(rows, metric, **wanted)
    assert only is not None
    return float(only)
