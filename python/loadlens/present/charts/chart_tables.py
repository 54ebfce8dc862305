"""The table beneath a chart: the report's own, or one made from the rows that the picture shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from loadlens.model.finding import Estimate, NotMeasured
from loadlens.model.report import Cell, Chart, Column, Table
from loadlens.present import numbers

Row = Mapping[str, Any]

_STRETCHES = 12  # of time, for the heat map
_SLACK = 1e-6  # seconds are floats
_MS = 1e-3


def table(chart: Chart) -> Table | None:
    """The report's own table, or one of the chart's rows; none when there is nothing to list."""
    if chart.table is not None:
        return chart.table
    made = _MADE_BY[chart.kind](chart)
    return made if made.rows else None


def _figure(row: Row, point: str, low: str, high: str, unit: str, factor: float, trials: int) -> Cell:
    value = row.get(point)
    if value is None or not math.isfinite(value):
        return NotMeasured(point, "no value")
    ends = [None if row.get(end) is None else float(row[end]) * factor for end in (low, high)]
    return Estimate(point, unit, float(value) * factor, ends[0], ends[1], trials, 0, "as drawn")


def _rows(chart: Chart, dataset: str) -> Sequence[Row]:
    return chart.datasets.get(dataset, ())


def _trials(chart: Chart) -> int:
    count = chart.options.get("trials", 0)
    return count if isinstance(count, int) else 0


def _named(rows: Sequence[Row], *names: str) -> list[str]:
    """Return the optional columns that the rows have."""
    return [name for name in names if any(row.get(name) is not None for row in rows)]


def _time_label(chart: Chart, otherwise: str) -> str:
    return str(chart.options.get("time_label", otherwise))


def _load_curve(chart: Chart) -> Table:
    rows, trials = _rows(chart, "steps"), _trials(chart)
    names = _named(rows, "panel", "series")
    columns = [Column(name, align="left") for name in names]
    columns += [
        Column("load"),
        Column("throughput", "1/s"),
        Column(_time_label(chart, "mean response time"), "s"),
    ]
    return Table(
        tuple(columns),
        tuple(
            (
                *(str(row[name]) for name in names),
                row["users"],
                _figure(row, "x", "x_lo", "x_hi", "1/s", 1.0, trials),
                _figure(row, "r", "r_lo", "r_hi", "s", _MS, trials),
            )
            for row in rows
        ),
    )


def _quantiles(chart: Chart) -> Table:
    trials = _trials(chart)
    return Table(
        (Column("time", align="left"), Column("answered within"), Column("value", "s")),
        tuple(
            (
                str(row["metric"]),
                f"{100 * (1 - 1 / row['nines']):.6g} %",
                _figure(row, "ms", "lo", "hi", "s", _MS, trials),
            )
            for row in _rows(chart, "curve")
        ),
    )


def _heat(chart: Chart) -> Table:
    """At most a dozen stretches of whole columns: how many requests, between which times, at which CPU."""
    cells, cpu = _rows(chart, "cells"), _rows(chart, "cpu")
    starts = sorted({float(row["t"]) for row in cells})
    # columns without a request are not among the cells, so the first and the last one bound the time
    begin, end = min(starts, default=0.0), max((float(row["t2"]) for row in cells), default=0.0)
    column = min((float(row["t2"]) - float(row["t"]) for row in cells), default=1.0)
    length = column * max(1, math.ceil((end - begin) / column / _STRETCHES - _SLACK))
    rows: list[tuple[Cell, ...]] = []
    for number in range(math.ceil((end - begin) / length - _SLACK)):
        first, last = begin + length * number, min(end, begin + length * (number + 1))
        own = [row for row in cells if first <= row["t"] + _SLACK < last and row["n"] > 0]
        read = [row["cpu"] for row in cpu if first <= row["t"] + _SLACK < last and row["cpu"] is not None]
        busy: Cell = sum(read) / len(read) / 100 if read else None
        times: tuple[Cell, Cell] = (None, None)
        if own:
            times = (min(row["lo"] for row in own) * _MS, max(row["hi"] for row in own) * _MS)
        rows.append((f"{first:.4g}–{last:.4g} s", int(sum(row["n"] for row in own)), *times, busy))
    heads = (Column("seconds", align="left"), Column("requests"), Column("from", "s"), Column("to", "s"))
    return Table((*heads, Column("server CPU", "share")), tuple(rows), "times are bounds of the cells")


def _resources(chart: Chart) -> Table:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in _rows(chart, "readings"):
        groups.setdefault((str(row["resource"]), str(row["process"])), []).append(row)
    rows: list[tuple[Cell, ...]] = []
    for (resource, process), own in groups.items():
        values = [float(row["value"]) for row in own if row["value"] is not None]
        limits = [float(row["limit"]) for row in own if row.get("limit") is not None]
        shown: tuple[Cell, ...] = (None, None, None)
        if values:
            shown = (min(values), sum(values) / len(values), max(values))
        rows.append((resource, process, *shown, limits[-1] if limits else "none", len(own) - len(values)))
    heads = ("smallest", "mean", "largest", "limit", "not read")
    return Table(
        (Column("resource", align="left"), Column("process", align="left"), *map(Column, heads)), tuple(rows)
    )


def _density(chart: Chart) -> Table:
    marks = [*_rows(chart, "components"), *_rows(chart, "quantiles")]
    rows = tuple((str(row["label"]), row["ms"] * _MS) for row in marks)
    return Table((Column("mark", align="left"), Column(_time_label(chart, "response time"), "s")), rows)


def _published(chart: Chart) -> Table:
    trials = _trials(chart)
    return Table(
        (
            Column("case", align="left"),
            Column("published, times"),
            Column("measured, times"),
            Column("verdict", align="left"),
        ),
        tuple(
            (
                str(row["case"]),
                "not published" if row["published"] is None else float(row["published"]),
                _figure(row, "point", "low", "high", "ratio", 1.0, trials),
                str(row["shape"]),
            )
            for row in _rows(chart, "rows")
        ),
    )


def _bystander(chart: Chart) -> Table:
    trials = _trials(chart)
    heads = (Column("level", align="left"), Column("load"), Column(_time_label(chart, "probe"), "s"))
    rows = _rows(chart, "probe")
    return Table(
        heads,
        tuple(
            (str(row["level"]), row["users"], _figure(row, "ms", "lo", "hi", "s", _MS, trials))
            for row in rows
        ),
    )


def _demand(chart: Chart) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (str(row["case"]), str(row["part"]), row["ms"] * _MS) for row in _rows(chart, "parts")
    ]
    totals = _rows(chart, "totals")
    rows += [
        (str(r["case"]), "total", _figure(r, "ms", "lo", "hi", "s", _MS, _trials(chart))) for r in totals
    ]
    order = list(dict.fromkeys(row[0] for row in rows))
    rows.sort(key=lambda row: order.index(row[0]))
    return Table(
        (Column("case", align="left"), Column("part", align="left"), Column("time", "s")), tuple(rows)
    )


def _comparison(chart: Chart) -> Table:
    trials, unit = _trials(chart), str(chart.options.get("unit", ""))
    rows = _rows(chart, "rows")
    has_published = bool(_named(rows, "published"))
    heads = (Column("case", align="left"), Column(str(chart.options.get("x_label", "measured")), unit))
    made: list[tuple[Cell, ...]] = []
    for row in rows:
        cells: tuple[Cell, ...] = (str(row["case"]), _figure(row, "value", "low", "high", unit, 1.0, trials))
        published = row["published"]
        shown: Cell = "not published" if published is None else numbers.with_unit(float(published), unit)
        made.append((*cells, shown) if has_published else cells)
    return Table((*heads, Column("published")) if has_published else heads, tuple(made))


def _predicted(chart: Chart) -> Table:
    trials, unit = _trials(chart), str(chart.options.get("unit", ""))
    ends = ("predicted_low", "predicted_high")
    return Table(
        (Column("case", align="left"), Column("predicted", unit), Column("measured", unit)),
        tuple(
            (
                str(row["case"]),
                _figure(row, "predicted", *ends, unit, 1.0, trials),
                _figure(row, "point", "low", "high", unit, 1.0, trials),
            )
            for row in _rows(chart, "rows")
        ),
    )


_MADE_BY = {
    "load_curve": _load_curve,
    "quantiles": _quantiles,
    "heat": _heat,
    "resources": _resources,
    "density": _density,
    "published": _published,
    "bystander": _bystander,
    "demand": _demand,
    "comparison": _comparison,
    "predicted": _predicted,
}
