"""The table beneath a chart: the report's own, or one made from the rows that the picture shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loadlens.model.finding import Estimate, NotMeasured
from loadlens.model.report import Cell, Chart, Column, Table
from loadlens.present import numbers

Row = Mapping[str, Any]

_STRETCHES = 12  # of time, for the heat map
_SLACK = 1e-6  # seconds are floats
_MS = 1e-3


def table(chart: Chart) -> Table | None:
    """Return the report's own table, or one of the chart's rows; none when there is nothing to list."""
    if chart.table is not None:
        return chart.table
    made = _MADE_BY[chart.kind](chart)
    return made if made.rows else None


def _figure(chart: Chart, row: Row, names: str, unit: str) -> Cell:
    """Return the figure in the columns of point, low and high; times are in ms."""
    point, low, high = (row.get(name) for name in names.split())
    if point is None or not math.isfinite(point):
        return NotMeasured(names.split()[0], "no value")
    factor = _MS if unit == "s" and "unit" not in chart.options else 1.0
    trials = chart.options.get("trials", 0)
    ends = [None if end is None else float(end) * factor for end in (low, high)]
    return Estimate(
        names.split()[0],
        unit,
        float(point) * factor,
        ends[0],
        ends[1],
        trials if isinstance(trials, int) else 0,
        0,
        "as drawn",
    )


def _rows(chart: Chart, dataset: str) -> Sequence[Row]:
    return chart.datasets.get(dataset, ())


def _named(rows: Sequence[Row], *names: str) -> list[str]:
    """Return the optional columns that the rows have."""
    return [name for name in names if any(row.get(name) is not None for row in rows)]


def _time(chart: Chart, otherwise: str) -> Column:
    return Column(str(chart.options.get("time_label", otherwise)), "s")


def _words(*titles: str) -> tuple[Column, ...]:
    return tuple(Column(title, align="left") for title in titles)


def _load_curve(chart: Chart) -> Table:
    steps = _rows(chart, "steps")
    names = _named(steps, "panel", "series")
    rows = (
        (row["users"], _figure(chart, row, "x x_lo x_hi", "1/s"), _figure(chart, row, "r r_lo r_hi", "s"))
        for row in steps
    )
    heads = (*_words(*names), Column("load"), Column("throughput", "1/s"), _time(chart, "mean response time"))
    of_series = ([str(row[name]) for name in names] for row in steps)
    return Table(heads, tuple((*first, *rest) for first, rest in zip(of_series, rows, strict=True)))


def _quantiles(chart: Chart) -> Table:
    rows = tuple(
        (
            str(row["metric"]),
            f"{100 * (1 - 1 / row['nines']):.6g} %",
            _figure(chart, row, "ms lo hi", "s"),
        )
        for row in _rows(chart, "curve")
    )
    return Table((*_words("time"), Column("answered within"), Column("value", "s")), rows)


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
    heads = (*_words("seconds"), Column("requests"), Column("from", "s"), Column("to", "s"))
    return Table((*heads, Column("server CPU", "share")), tuple(rows), "times are bounds of the cells")


def _resources(chart: Chart) -> Table:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in _rows(chart, "readings"):
        groups.setdefault((str(row["resource"]), str(row["process"])), []).append(row)
    rows: list[tuple[Cell, ...]] = []
    for names, own in groups.items():
        values = [float(row["value"]) for row in own if row["value"] is not None]
        limits = [float(row["limit"]) for row in own if row.get("limit") is not None]
        shown: tuple[Cell, ...] = (None, None, None)
        if values:
            shown = (min(values), sum(values) / len(values), max(values))
        rows.append((*names, *shown, limits[-1] if limits else "none", len(own) - len(values)))
    heads = ("smallest", "mean", "largest", "limit", "not read")
    return Table((*_words("resource", "process"), *map(Column, heads)), tuple(rows))


def _density(chart: Chart) -> Table:
    marks = [*_rows(chart, "components"), *_rows(chart, "quantiles")]
    rows = tuple((str(row["label"]), row["ms"] * _MS) for row in marks)
    return Table((*_words("mark"), _time(chart, "response time")), rows)


def _published(chart: Chart) -> Table:
    rows = tuple(
        (
            str(row["case"]),
            "not published" if row["published"] is None else float(row["published"]),
            _figure(chart, row, "point low high", "ratio"),
            str(row["shape"]),
        )
        for row in _rows(chart, "rows")
    )
    times = (Column("published, times"), Column("measured, times"))
    return Table((*_words("case"), *times, *_words("verdict")), rows)


def _bystander(chart: Chart) -> Table:
    rows = tuple(
        (str(row["level"]), row["users"], _figure(chart, row, "ms lo hi", "s"))
        for row in _rows(chart, "probe")
    )
    return Table((*_words("level"), Column("load"), _time(chart, "probe")), rows)


def _demand(chart: Chart) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (str(row["case"]), str(row["part"]), row["ms"] * _MS) for row in _rows(chart, "parts")
    ]
    totals = _rows(chart, "totals")
    rows += [(str(row["case"]), "total", _figure(chart, row, "ms lo hi", "s")) for row in totals]
    order = list(dict.fromkeys(row[0] for row in rows))
    rows.sort(key=lambda row: order.index(row[0]))
    return Table((*_words("case", "part"), Column("time", "s")), tuple(rows))


def _comparison(chart: Chart) -> Table:
    unit, rows = str(chart.options.get("unit", "")), _rows(chart, "rows")
    heads = (*_words("case"), Column(str(chart.options.get("x_label", "measured")), unit))
    made: list[tuple[Cell, ...]] = [
        (str(row["case"]), _figure(chart, row, "value low high", unit)) for row in rows
    ]
    if not _named(rows, "published"):
        return Table(heads, tuple(made))
    published = (
        "not published" if value is None else numbers.with_unit(float(value), unit)
        for value in (row["published"] for row in rows)
    )
    return Table(
        (*heads, Column("published")), tuple((*row, p) for row, p in zip(made, published, strict=True))
    )


def _predicted(chart: Chart) -> Table:
    unit = str(chart.options.get("unit", ""))
    rows = tuple(
        (
            str(row["case"]),
            _figure(chart, row, "predicted predicted_low predicted_high", unit),
            _figure(chart, row, "point low high", unit),
        )
        for row in _rows(chart, "rows")
    )
    heads = (Column(title, unit, is_mixed=True) for title in ("predicted", "measured"))
    return Table((*_words("case"), *heads), rows)


_MADE_BY: Mapping[str, Callable[[Chart], Table]] = {
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
