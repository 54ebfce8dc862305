"""The datasets of each chart kind: names, columns and units. Who fills a `model.report.Chart` reads this.

All times are milliseconds in columns named `ms`, `r`, `lo`, `hi` ...; the chart itself picks ns, µs, ms or s
for its axis from the median. Seconds since the trial began are `t`, `t2`. An interval end that is open is
None, and so is a reading that was missed: it breaks its line. `series`, `level`, `process` name entities;
their colours come from `Chart.entities`. Labels are for people; long ones are cut.

Options that every kind knows: `trials` (int: 1 makes the marks hollow), `time_label` ("mean response time"),
`x_label`. Unit and "(log)" are appended by the chart, to `rate_label` ("throughput") too. An option or a
column that no chart knows is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from loadlens.model.report import Chart, ChartKind


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of one dataset."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """Datasets and options of a chart kind; the first dataset must have rows."""

    datasets: Mapping[str, Columns]
    options: frozenset[str]


_COMMON = frozenset({"trials", "time_label", "x_label"})

KINDS: Mapping[ChartKind, Kind] = {
    "load_curve": Kind(  # C1: users (or offered rate) against throughput /s and a time in ms
        {
            "steps": Columns(("users", "x", "x_lo", "x_hi", "r", "r_lo", "r_hi"), ("series", "panel")),
            "trials": Columns(("users", "x", "r"), ("series", "panel")),  # every trial, at most 10 a step
            "fit": Columns(("users", "x", "r"), ("series", "panel")),  # the model's curve
            "published": Columns(("users", "x", "r"), ("series", "panel")),
            "predicted": Columns(("users", "x", "r"), ("series", "panel")),  # made before the measurement
            "invalid": Columns(("users", "x", "r"), ("series", "panel")),
            "knee": Columns(("users", "label"), ("series", "panel")),
            "plateau": Columns(("users", "x", "label"), ("series", "panel")),
            "objective": Columns(("r", "label"), ()),
        },
        _COMMON | {"rate_label"},
    ),
    "quantiles": Kind(  # C2: nines = 1/(1-p)
        {
            "curve": Columns(("metric", "nines", "ms", "lo", "hi")),
            "ends": Columns(
                ("metric", "nines", "ms", "label")
            ),  # name at the line's end; default: the metric
            "cut": Columns(("nines", "label")),  # beyond it there is no evidence
            "objective": Columns(("nines", "ms", "label")),
        },
        _COMMON,
    ),
    "heat": Kind(  # C3: cells with n > 0 only; lo and hi are the bin's bounds in ms
        {
            "cells": Columns(("t", "t2", "lo", "hi", "n")),
            "cpu": Columns(("t", "t2", "cpu")),  # percent of the cores allotted to the server; None: not read
            "shade": Columns(("t", "t2", "label")),  # warm-up, drain
            "events": Columns(("t", "label")),
        },
        _COMMON | {"cores"},
    ),
    "resources": Kind(  # C4: one panel per resource ("CPU, cores"), one line per process
        {
            "readings": Columns(("t", "resource", "process", "value"), ("limit",)),
            "shade": Columns(("t", "t2", "label")),
            "events": Columns(("t", "label")),
        },
        _COMMON | {"resources"},  # resources: their order, list of str
    ),
    "density": Kind(  # C5: equal areas over log time = equal shares of requests
        {
            "density": Columns(("ms", "share")),
            "components": Columns(
                ("ms", "label")
            ),  # median of each population; weight and shift in the label
            "quantiles": Columns(("ms", "label")),
        },
        _COMMON,
    ),
    "published": Kind(  # C6: multiples of the reference case; published None: not published
        {"rows": Columns(("case", "published", "point", "low", "high", "shape"))},
        _COMMON,
    ),
    "bystander": Kind(  # C7: load of the expensive endpoint against the probe's time
        {
            "probe": Columns(("level", "users", "ms", "lo", "hi")),
            "trials": Columns(("level", "users", "ms")),
            "model": Columns(("level", "users", "ms")),
            "published": Columns(("users", "ms"), ("level",)),
            "predicted": Columns(("users", "ms"), ("level",)),
            "idle": Columns(("ms", "label")),
        },
        _COMMON,
    ),
    "comparison": Kind(  # C9: one figure a case, in a base unit; published None: not published
        {"rows": Columns(("case", "value", "low", "high", "published"))},
        _COMMON | {"unit"},
    ),
    "predicted": Kind(  # C10: in a base unit; point None: not measured
        {
            "rows": Columns(
                ("case", "predicted", "predicted_low", "predicted_high", "point", "low", "high"),
            )
        },
        _COMMON | {"unit"},
    ),
    "demand": Kind(  # C8: mean ms a request by part; parts as in tokens.DEMAND_PARTS
        {
            "parts": Columns(("case", "part", "ms")),
            "totals": Columns(("case", "ms", "lo", "hi")),
        },
        _COMMON,
    ),
}


def faults(chart: Chart) -> list[str]:
    """Everything about a chart's datasets and options that its kind does not know; empty when it is sound."""
    kind = KINDS[chart.kind]
    faults = [f"{chart.kind}: no dataset {name!r}" for name in chart.datasets if name not in kind.datasets]
    faults += [f"{chart.kind}: no option {name!r}" for name in chart.options if name not in kind.options]
    for name, columns in kind.datasets.items():
        faults += [
            f"{chart.kind}.{name}: {fault}" for fault in _column_faults(chart.datasets.get(name, ()), columns)
        ]
    return faults


def has_rows(chart: Chart) -> bool:
    """True if the first dataset of the kind has rows."""
    return bool(chart.datasets.get(next(iter(KINDS[chart.kind].datasets))))


def _column_faults(rows: Iterable[Mapping[str, Any]], columns: Columns) -> list[str]:
    columns_allowed = {*columns.required, *columns.optional}
    faults: dict[str, None] = {}
    for row in rows:
        faults |= {f"column {name!r} is missing": None for name in columns.required if name not in row}
        faults |= {f"no column {name!r}": None for name in row if name not in columns_allowed}
    return list(faults)
