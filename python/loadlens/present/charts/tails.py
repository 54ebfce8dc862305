"""Distributions: quantiles (C2) and density (C5). Both stop where the evidence stops."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadlens.model.report import Chart
from loadlens.present.charts import parts
from loadlens.present.charts.parts import Axis, Colours, Drawing, Panel, Row, Spec


def quantiles(chart: Chart, width: int) -> Drawing:
    """C2: time on a log axis over nines, log 1/(1-p), with its band; the shade is beyond the evidence."""
    sets = {name: parts.rows_of(chart, name) for name in ("curve", "ends", "cut", "objective")}
    unit = parts.time_unit(row["ms"] for row in sets["curve"])
    for name in ("curve", "ends", "objective"):
        unit.convert(sets[name], "ms", "lo", "hi")
    sets["curve"], zeros = parts.drop_zeros(sets["curve"], "nines", "ms", "lo", "hi")
    colours = Colours((str(row["metric"]) for row in sets["curve"]), chart.entities, parts.name_length(width))
    for rows in (sets["curve"], sets["ends"]):
        colours.paint(rows, "metric")
    ends = sets["ends"] or colours.ends(sets["curve"], "metric", "ms", "nines")
    most = parts.name_length(width)
    ends = [{**row, "label": _end_label(row, most)} for row in ends]
    width = parts.plot_width(width, right=[row["label"] for row in ends])
    last = max([10.0, *(row["nines"] for name in ("curve", "cut") for row in sets[name])])
    high = 10.0 ** math.ceil(math.log10(last) + 0.15)
    ticks = (1.0, 2.0, *(10.0**i for i in range(1, round(math.log10(high)) + 1)))
    x_axis = Axis(1.0, high, width, True)
    x_axis = Axis(
        1.0, high, width, True, parts.apart(ticks, x_axis, [f"{100 - 100 / t:.6g} %" for t in ticks])
    )
    values = [row.get(c) for name in ("curve", "objective") for row in sets[name] for c in ("ms", "lo", "hi")]
    y_axis = parts.log_axis(values, 260)
    title = f"{chart.options.get('time_label', 'time')}, {unit.name} (log)"
    x_title = str(chart.options.get("x_label", "share of requests answered within, log 1/(1-p)"))
    # the only expression: over the tick's own number, never over a name
    percent = "format(100*(1-1/datum.value),'~r')+' %'"
    x_channel = parts.channel("nines", x_axis, x_title, labelExpr=percent)
    panel = Panel(x_channel, parts.channel("ms", y_axis, title, title_px=width + 30), colours.channel())
    panel.layers += _beyond(sets["cut"], x_axis, y_axis.length)
    panel.layers += parts.limit_layers(sets["objective"], y_axis, "ms")
    _draw_band(panel, sets["curve"], y_axis)
    panel.layers += parts.end_labels(ends, y_axis, "ms", width, panel.ink)
    shade = (f"shade: {row['label']}" for row in sets["cut"][:1])
    notes = (*shade, *colours.note(), *parts.zero_note(zeros, "1/(1-p) ="))
    return Drawing(panel.spec(width, y_axis.length), notes)


def _draw_band(panel: Panel, rows: Sequence[Row], y_axis: Axis) -> None:
    """Draw the interval band, line and points; an end that is open reaches the panel's edge."""
    by_metric = parts.field("metric", "nominal")
    measured = [row for row in rows if row.get("ms") is not None]
    bands = [parts.with_ends(row, "lo", "hi", y_axis) for row in measured]
    band: Spec = {"type": "area", "style": "band", "clip": True}
    panel.add(bands, band, y=parts.field("_low"), y2={"field": "_high"}, color=panel.ink, detail=by_metric)
    panel.add(rows, parts.LINE, color=panel.ink, detail=by_metric)
    panel.add(measured, {"type": "point", "size": 24}, color=panel.ink)
    opened = [{**row, "_edge": 4.0, "_at": 9.0, "_open": "open"} for row in measured if row.get("hi") is None]
    panel.add(opened, parts.ARROW_UP, y=parts.pixel("_edge"), color=panel.ink)
    panel.add(opened[-1:], parts.NOTE, y=parts.pixel("_at"), text=parts.field("_open", "nominal"))


def _end_label(row: Row, most: int) -> str:
    """The label of a line's end; where it is too long the name of the metric, which is shorter."""
    return parts.text(row["label"] if len(row["label"]) <= most else row["metric"], most)


def _beyond(rows: Sequence[Row], x_axis: Axis, height: int) -> list[Spec]:
    """From the last quantile with evidence to the edge of the panel; its words only where they fit."""
    if not rows:
        return []
    left, label = x_axis.position(min(rows[0]["nines"], x_axis.high)), parts.text(rows[0]["label"])
    shade = [{"_x": left, "_x2": float(x_axis.length), "_top": 0.0, "_bottom": float(height)}]
    box = parts.layer(shade, parts.SHADE, x=parts.pixel("_x"), x2={"field": "_x2"}, **parts.FULL_HEIGHT)
    # quantiles rise, so the foot of the panel is free at the right
    needed = len(label) * parts.CHARACTER_PX + 8
    if max(x_axis.length - left, left - 60) < needed:
        return [box]
    at = [{"_x": left, "_y": height - 10.0, "label": label}]
    return [box, *parts.words_over(at, "note" if x_axis.length - left >= needed else "noter")]


def density(chart: Chart, width: int) -> Drawing:
    """C5: how many populations answer; equal areas over log time are equal shares of requests."""
    sets = {name: parts.rows_of(chart, name) for name in ("density", "components", "quantiles")}
    unit = parts.time_unit(row["ms"] for row in sets["quantiles"] or sets["density"])
    for rows in sets.values():
        unit.convert(rows, "ms")
    kept = {name: parts.drop_zeros(rows, "ms", "ms")[0] for name, rows in sets.items()}
    width = parts.plot_width(width) + parts.LEFT_PX - 12  # no labels at the left
    x_axis = parts.log_axis((row["ms"] for row in kept["density"]), width, room=1.0)
    x_axis = Axis(
        x_axis.low, x_axis.high, width, True, parts.log_ticks(x_axis.low, x_axis.high, max(4, width // 60))
    )
    # two rows for the populations above the curve, two for the quantiles inside its foot
    rows_above = 16 * max(1, min(3, len(kept["components"])))
    peak = max([1e-9, *parts.known(row["share"] for row in kept["density"])])
    y_axis = Axis(0.0, peak * 200 / max(60, 200 - rows_above), 200)
    title = "density per decade, equal areas = equal shares of requests"
    x_title = f"{chart.options.get('time_label', 'response time')}, {unit.name} (log)"
    quiet: Spec = {"labels": False, "ticks": False, "grid": False}
    panel = Panel(
        parts.channel("ms", x_axis, x_title), parts.channel("share", y_axis, title, title_px=width, **quiet)
    )
    panel.add(kept["density"], {"type": "area", "line": True, "style": "band"})
    inside = {
        name: [row for row in kept[name] if x_axis.low <= row["ms"] <= x_axis.high]
        for name in ("components", "quantiles")
    }
    panel.add(inside["components"], parts.MARK_RULE, y=None)
    panel.layers += parts.notes_at(inside["components"], x_axis, "ms", [8 + 16 * i for i in range(3)])
    tick: Spec = {"type": "tick", "style": "ref", "thickness": 2, "size": 10, "y": "height"}
    panel.add(inside["quantiles"], tick, y=None)
    panel.layers += parts.notes_at(inside["quantiles"], x_axis, "ms", (190, 176, 162))
    return Drawing(panel.spec(width, 200))
