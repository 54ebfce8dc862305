"""Charts over time: heat map with CPU (C3) and resources (C4), on one clock from the start of the trial."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from typing import Any

from loadlens.model.report import Chart
from loadlens.present.charts import parts
from loadlens.present.charts.parts import Axis, Colours, Drawing, Panel, Row, Spec

_BOUNDS = (1, 3, 10, 30, 100, 300, 1000)
CLASSES = tuple(f"{bound}+" for bound in _BOUNDS)
SECONDS = "seconds since the trial began"
MOST_COLUMNS = 120  # of a heat map; more are merged in pairs, threes ...
MOST_READINGS = 300  # of a line


def heat_class(requests: float) -> str:
    """Two classes a decade: the ramp has seven steps and static colours are never interpolated."""
    return CLASSES[max(0, bisect.bisect_right(_BOUNDS, requests) - 1)]


def _time_axis(rows: Sequence[Row], width: int) -> Axis:
    """Seconds from zero to the last end; the axis stops where the trial stops."""
    end = max([1e-9, *parts.known(row.get("t2", row["t"]) for row in rows)])
    step = parts.linear_axis([end], width, headroom=1.0)
    every = [tick for tick in step.ticks if tick <= end]
    ticks = every if len(every) <= width / 45 else every[:: math.ceil(len(every) / (width / 45))]
    return Axis(0.0, end, width, False, tuple(ticks))


def heat(chart: Chart, width: int) -> Drawing:
    """C3: requests per cell of time and log response time; under it the server's CPU on the same seconds."""
    sets = {name: parts.rows_of(chart, name) for name in ("cells", "cpu", "shade", "events")}
    sets["cells"], step = _merged_cells(sets["cells"])
    sets["cpu"] = _merged_readings(sets["cpu"], "cpu", MOST_COLUMNS)
    is_wide = width >= parts.WIDE_PX
    width = parts.plot_width(width, right=["requests per"] if is_wide else ())
    unit = parts.time_unit(row["lo"] for row in sets["cells"])
    unit.convert(sets["cells"], "lo", "hi")
    cells, zeros = parts.drop_zeros([row for row in sets["cells"] if row["n"] > 0], "t", "lo")
    drawn = [{**row, "class": heat_class(row["n"])} for row in cells]
    seconds = _time_axis([*cells, *sets["cpu"]], width)
    y_axis = parts.log_axis((row[c] for row in cells for c in ("lo", "hi")), 192, room=1.0)
    has_cpu = bool(sets["cpu"])
    x_title = None if has_cpu else SECONDS
    labels: Spec = {"labels": False} if has_cpu else {}
    title = f"{chart.options.get('time_label', 'response time')}, {unit.name} (log)"
    y_channel = parts.channel("lo", y_axis, title, title_px=width + 30, grid=False)
    top = Panel(parts.channel("t", seconds, x_title, **labels), y_channel)
    colour: Spec = {
        "field": "class",
        "type": "ordinal",
        "title": "requests per cell",
        "scale": {"domain": list(CLASSES), "range": "ramp"},
        "legend": {"orient": "right", "direction": "vertical", "offset": 8}
        if is_wide
        else {"offset": 26, "columns": 7},
    }
    mark: Spec = {"type": "rect", "aria": False, "clip": True}
    top.add(drawn, mark, x2={"field": "t2"}, y2={"field": "hi"}, color=colour)
    top.layers += parts.shade_layers(sets["shade"], seconds, 192, named=not has_cpu)
    top.layers += parts.event_layers(sets["events"], seconds, 192)
    panels = [top.spec(width, 192)]
    if has_cpu:
        panels.append(_cpu_panel(sets, seconds, chart.options.get("cores")))
    merged = (f"a column is {step:g} s",) if step else ()
    return Drawing({"vconcat": panels, "spacing": 24}, (*merged, *parts.zero_note(zeros, "second")))


def _merged_cells(cells: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], float]:
    """Cells in at most so many columns of time; counts add up. Also the new width in s, 0 when unchanged."""
    starts = sorted({row["t"] for row in cells})
    if len(starts) <= MOST_COLUMNS:
        return cells, 0.0
    end = max(row["t2"] for row in cells)
    step = _round_step((end - starts[0]) / MOST_COLUMNS)
    merged: dict[tuple[float, float, float], dict[str, Any]] = {}
    for row in cells:
        t = math.floor(row["t"] / step + 1e-9) * step
        cell = merged.setdefault((t, row["lo"], row["hi"]), {**row, "t": t, "t2": min(t + step, end), "n": 0})
        cell["n"] += row["n"]
    return list(merged.values()), step


def _round_step(seconds: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(seconds))
    return next(s * power for s in (1, 2, 5, 10) if s * power >= seconds * (1 - 1e-9))


def _merged_readings(rows: list[dict[str, Any]], column: str, most: int) -> list[dict[str, Any]]:
    """Means of neighbours, so that at most so many readings remain; a stretch that was not read stays so."""
    ordered = sorted(rows, key=lambda row: row["t"])
    size = math.ceil(len(ordered) / most)
    if size <= 1:
        return ordered
    merged = []
    for first in range(0, len(ordered), size):
        group = ordered[first : first + size]
        read = [row[column] for row in group if row[column] is not None]
        last = {"t2": group[-1]["t2"]} if "t2" in group[-1] else {}
        merged.append({**group[0], **last, column: sum(read) / len(read) if read else None})
    return merged


def _cpu_panel(sets: Mapping[str, Sequence[Row]], seconds: Axis, cores: object) -> Spec:
    """Bars from zero in percent of the cores allotted; a reading that was missed leaves its place empty."""
    read = [{**row, "_zero": 0.0} for row in sets["cpu"] if row.get("cpu") is not None]
    top = max([100.0, *parts.known(row["cpu"] for row in read)])
    axis = Axis(0.0, top, 60, ticks=(0.0, 50.0, 100.0))
    allotted = (
        f"{cores:g} core{'s' if cores != 1 else ''}"
        if isinstance(cores, int | float)
        else "the cores allotted"
    )
    y_channel = parts.channel("cpu", axis, f"server CPU, % of {allotted}", title_px=seconds.length)
    panel = Panel(parts.channel("t", seconds, SECONDS), y_channel)
    bar: Spec = {"type": "rect", "opacity": 0.7, "aria": False}
    panel.add(read, bar, x2={"field": "t2"}, y2={"field": "_zero"})
    panel.layers += parts.shade_layers([*sets["shade"], *parts.gaps(sets["cpu"], "cpu")], seconds, 60)
    return panel.spec(seconds.length, 60)


def resources(chart: Chart, width: int) -> Drawing:
    """C4: one panel a resource from zero, its unit in its title; colour is the process, dotted the limit."""
    rows = _thinned(parts.rows_of(chart, "readings"))
    colours = Colours((str(row["process"]) for row in rows), chart.entities, parts.name_length(width))
    width = parts.plot_width(width, right=colours.labels())
    colours.paint(rows, "process")
    shade, events = parts.rows_of(chart, "shade"), parts.rows_of(chart, "events")
    seconds = _time_axis(rows, width)
    order = [str(name) for name in chart.options.get("resources") or ()]
    listed = dict.fromkeys(str(row["resource"]) for row in rows)
    names = [name for name in order if name in listed] + [name for name in listed if name not in order]
    panels = []
    for number, name in enumerate(names, 1):
        own = [row for row in rows if str(row["resource"]) == name]
        panels.append(
            _resource_panel(
                name, own, seconds, colours, shade, events, first=number == 1, last=number == len(names)
            )
        )
    return Drawing({"vconcat": panels, "spacing": 30}, colours.note())


def _thinned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each line with at most so many readings."""
    lines: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        lines.setdefault((str(row["resource"]), str(row["process"])), []).append(row)
    return [row for line in lines.values() for row in _merged_readings(line, "value", MOST_READINGS)]


def _resource_panel(
    name: str,
    rows: list[dict[str, Any]],
    seconds: Axis,
    colours: Colours,
    shade: Sequence[Row],
    events: Sequence[Row],
    *,
    first: bool,
    last: bool,
) -> Spec:
    axis = parts.linear_axis((row.get(c) for row in rows for c in ("value", "limit")), 56, headroom=1.15)
    labels: Spec = {} if last else {"labels": False, "ticks": False}
    x_channel = parts.channel("t", seconds, SECONDS if last else None, **labels)
    y_channel = parts.channel("value", axis, parts.text(name), title_px=seconds.length)
    panel = Panel(x_channel, y_channel, colours.channel())
    missed = parts.gaps([row for row in rows if row["process"] == rows[0]["process"]], "value")
    panel.layers += parts.shade_layers([*shade, *missed], seconds, 56, named=first)
    panel.layers += [] if first else parts.shade_layers(missed, seconds, 56)[1:]
    panel.layers += parts.event_layers(events, seconds, 56, named=first)
    by_process = parts.field("process", "nominal")
    limits = [row for row in rows if row.get("limit") is not None]
    panel.add(limits, {"type": "line", "style": "ref"}, y=parts.field("limit"), detail=by_process)
    panel.add(rows, parts.THIN_LINE, color=panel.ink, detail=by_process)
    panel.add(_alone(rows), {"type": "point", "size": 16}, color=panel.ink)
    if len(colours.slots) > 1:
        ends = colours.ends(rows, "process", "value", "t")
        panel.layers += parts.end_labels(ends, axis, "value", seconds.length, panel.ink)
    return panel.spec(seconds.length, 56)


def _alone(rows: Sequence[Row]) -> list[Row]:
    """Readings with no neighbour to draw a line to: a line of one point would be invisible."""
    points: list[Row] = []
    for name in dict.fromkeys(row["process"] for row in rows):
        own = sorted((row for row in rows if row["process"] == name), key=lambda r: r["t"])
        values = [None, *(row.get("value") for row in own), None]
        pairs = zip(own, values, values[2:], strict=False)
        points += [
            row for row, before, after in pairs if row.get("value") is not None and before is after is None
        ]
    return points
