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

from collections.abc import Mapping
from dataclasses import dataclass

from loadlens.model.report import Chart
from loadlens.model.study import ChartKind


@dataclass(frozen=True, slots=True)
class Kind:
    """Datasets and options of a chart kind; the first dataset must have rows."""

    datasets: Mapping[str, str]  # name -> columns; one with a question mark may be missing
    options: str = ""  # besides those that every kind has


_COMMON = ("trials", "time_label", "x_label")

KINDS: Mapping[ChartKind, Kind] = {
    "load_curve": Kind(  # C1: users (or offered rate) against throughput /s and a time in ms
        {
            "steps": "users x x_lo x_hi r r_lo r_hi series? panel?",
            "trials": "users x r series? panel?",  # every trial, at most 10 a step
            "fit": "users x r series? panel?",  # the model's curve
            "published": "users x r series? panel?",
            "predicted": "users x r series? panel?",  # made before the measurement
            "invalid": "users x r series? panel?",
            "knee": "users label series? panel?",
            "plateau": "users x x_lo x_hi label series? panel?",  # the capacity, from its knee on
            "objective": "r label",
        },
        "rate_label",
    ),
    "quantiles": Kind(  # C2: nines = 1/(1-p)
        {
            "curve": "metric nines ms lo hi",
            "ends": "metric nines ms label",  # name at the line's end; default: the metric
            "cut": "nines label",  # beyond it there is no evidence
            "objective": "nines ms label",
        }
    ),
    "heat": Kind(  # C3: cells with n > 0 only; lo and hi are the bin's bounds in ms
        {
            "cells": "t t2 lo hi n",
            "cpu": "t t2 cpu",  # percent of the cores allotted to the server; None: not read
            "shade": "t t2 label",  # warm-up, drain
            "events": "t label",
        },
        "cores",
    ),
    "resources": Kind(  # C4: one panel per resource ("CPU, cores"), one line per process
        {
            "readings": "t resource process value limit?",
            "shade": "t t2 label",
            "events": "t label",
        },
        "resources",  # their order, list of str
    ),
    "density": Kind(  # C5: equal areas over log time = equal shares of requests
        {
            "density": "ms share",
            "components": "ms label",  # median of each population; weight and shift in the label
            "quantiles": "ms label",
        }
    ),
    # C6: multiples of the reference case; published None: not published
    "published": Kind({"rows": "case published point low high shape"}),
    "bystander": Kind(  # C7: load of the expensive endpoint against the probe's time
        {
            "probe": "level users ms lo hi",
            "trials": "level users ms",
            "model": "level users ms",
            "published": "users ms level?",
            "predicted": "users ms level?",
            "idle": "ms label",
        }
    ),
    # C8: mean ms per request by part; two parts may be others than those of tokens.DEMAND_PARTS
    "demand": Kind({"parts": "case part ms", "totals": "case ms lo hi"}),
    # C9: one figure per case, in a base unit; published None: not published
    "comparison": Kind({"rows": "case value low high published"}, "unit"),
    # C10: in a base unit; point None: not measured
    "predicted": Kind({"rows": "case predicted predicted_low predicted_high point low high"}, "unit"),
}


def faults(chart: Chart) -> list[str]:
    """Return datasets, columns and options that the chart's kind does not have, and columns that it lacks."""
    kind = KINDS[chart.kind]
    options = (*_COMMON, *kind.options.split())
    faults = [f"{chart.kind}: no dataset {name!r}" for name in chart.datasets if name not in kind.datasets]
    faults += [f"{chart.kind}: no option {name!r}" for name in chart.options if name not in options]
    for name, columns in kind.datasets.items():
        needed = [column for column in columns.split() if not column.endswith("?")]
        allowed = columns.replace("?", "").split()
        seen: dict[str, None] = {}
        for row in chart.datasets.get(name, ()):
            seen |= {f"column {column!r} is missing": None for column in needed if column not in row}
            seen |= {f"no column {column!r}": None for column in row if column not in allowed}
        faults += [f"{chart.kind}.{name}: {fault}" for fault in seen]
    return faults


def has_rows(chart: Chart) -> bool:
    """Return true if the first dataset of the kind has rows."""
    return bool(chart.datasets.get(next(iter(KINDS[chart.kind].datasets))))
