"""Distributions: quantiles (C2) and density (C5). Both stop where the evidence stops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from loadlens.present.charts import parts
from loadlens.present.charts.parts import Axis, Colours, Drawing, Row, Spec


def quantiles(
    datasets: Mapping[str, Sequence[Row]],
    options: Mapping[str, Any],
    entities: Mapping[str, int] | None,
    width: int,
) -> Drawing:
    """C2: time on a log axis over nines, log 1/(1-p), with its band; the shade is beyond the evidence."""
    sets = {name: parts.rows_of(datasets, name) for name in ("curve", "ends", "cut", "objective")}
    unit = parts.time_unit(row["ms"] for row in sets["curve"])
    for name in ("curve", "ends", "objective"):
        unit.convert(sets[name], "ms", "lo", "hi")
    sets["curve"], zeros = parts.drop_zeros(sets["curve"], "nines", "ms", "lo", "hi")
    colours = Colours((str(row["metric"]) for row in sets["curve"]), entities, parts.name_length(width))
    for rows in (sets["curve"], sets["ends"]):
        colours.paint(rows, "metric")
    ends = sets["ends"] or _curve_ends(sets["curve"], colours)
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
    title = f"{options.get('time_label', 'time')}, {unit.name} (log)"
    x_title = str(options.get("x_label", "share of requests answered within, log 1/(1-p)"))
    # the only expression: over the tick's own number, never over a name
    percent = "format(100*(1-1/datum.value),'~r')+' %'"
    x_channel = parts.channel("nines", x_axis, x_title, labelExpr=percent)
    layers = [parts.frame(x_channel, parts.channel("ms", y_axis, title, title_px=width + 30))]
    layers += _beyond(sets["cut"], x_axis, y_axis.length)
    layers += parts.limit_layers(sets["objective"], y_axis, "ms")
    layers += _band(sets["curve"], x_axis, y_axis, colours)
    layers += parts.end_labels(ends, y_axis, "ms", width, colours.channel())
    zero = parts.zero_note(zeros, "1/(1-p) =")
    return Drawing(
        {"width": width, "height": y_axis.length, "layer": layers},
        (*(f"shade: {row['label']}" for row in sets["cut"][:1]), *colours.note(), *zero),
    )


def _band(rows: Sequence[Row], x_axis: Axis, y_axis: Axis, colours: Colours) -> list[Spec]:
    """Interval band, line and points; an end that is open reaches the panel's edge."""
    x, y, ink = parts.field("nines", scale=x_axis.scale), parts.field("ms"), colours.channel()
    by_metric = parts.field("metric", "nominal")
    measured = [row for row in rows if row.get("ms") is not None]
    bands = [
        {
            **row,
            "lo": y_axis.low if row.get("lo") is None else row["lo"],
            "hi": y_axis.high if row.get("hi") is None else row["hi"],
        }
        for row in measured
    ]
    area: Spec = {"type": "area", "style": "band", "clip": True}
    layers = [
        parts.layer(bands, area, x=x, y=parts.field("lo"), y2={"field": "hi"}, color=ink, detail=by_metric)
    ]
    layers.append(parts.layer(rows, {"type": "line"}, x=x, y=y, color=ink, detail=by_metric))
    layers.append(parts.layer(measured, {"type": "point", "size": 24}, x=x, y=y, color=ink))
    opened = [{**row, "_edge": 4.0, "_at": 9.0, "_open": "open"} for row in measured if row.get("hi") is None]
    if opened:
        head: Spec = {"type": "point", "shape": "triangle-up", "size": 40}
        word: Spec = {"type": "text", "style": "note"}
        layers.append(parts.layer(opened, head, x=x, y=parts.pixel("_edge"), color=ink))
        layers.append(
            parts.layer(opened[-1:], word, x=x, y=parts.pixel("_at"), text=parts.field("_open", "nominal"))
        )
    return layers


def _curve_ends(rows: Sequence[Row], colours: Colours) -> list[dict[str, Any]]:
    ends: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = str(row["metric"])
        if row.get("ms") is not None and name not in colours.rest:
            ends[name] = {**row, "label": colours.label(name)}
    return list(ends.values())


def _end_label(row: Row, most: int) -> str:
    """The label of a line's end; where it is too long the name of the metric, which is shorter."""
    return parts.text(row["label"] if len(row["label"]) <= most else row["metric"], most)


def _beyond(rows: Sequence[Row], x_axis: Axis, height: int) -> list[Spec]:
    """From the last quantile with evidence to the edge of the panel; its words only where they fit."""
    if not rows:
        return []
    left, label = x_axis.position(min(rows[0]["nines"], x_axis.high)), parts.text(rows[0]["label"])
    shade = [{"_x": left, "_x2": float(x_axis.length), "_top": 0.0, "_bottom": float(height)}]
    box = parts.layer(
        shade,
        {"type": "rect", "style": "shade"},
        x=parts.pixel("_x"),
        x2={"field": "_x2"},
        y=parts.pixel("_top"),
        y2={"field": "_bottom"},
    )
    # quantiles rise, so the foot of the panel is free at the right
    needed = len(label) * parts.CHARACTER_PX + 8
    if max(x_axis.length - left, left - 60) < needed:
        return [box]
    at = [{"_x": left, "_y": height - 10.0, "label": label}]
    return [box, *parts.words_over(at, "note" if x_axis.length - left >= needed else "noter")]


def density(
    datasets: Mapping[str, Sequence[Row]],
    options: Mapping[str, Any],
    entities: Mapping[str, int] | None,
    width: int,
) -> Drawing:
    """C5: how many populations answer; equal areas over log time are equal shares of requests."""
    sets = {name: parts.rows_of(datasets, name) for name in ("density", "components", "quantiles")}
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
    x_title = f"{options.get('time_label', 'response time')}, {unit.name} (log)"
    quiet: Spec = {"labels": False, "ticks": False, "grid": False}
    layers = [
        parts.frame(
            parts.channel("ms", x_axis, x_title),
            parts.channel("share", y_axis, title, title_px=width, **quiet),
        )
    ]
    x = parts.field("ms", scale=x_axis.scale)
    area: Spec = {"type": "area", "line": True, "style": "band"}
    layers.append(parts.layer(kept["density"], area, x=x, y=parts.field("share")))
    inside = {
        name: [r for r in kept[name] if x_axis.low <= r["ms"] <= x_axis.high]
        for name in ("components", "quantiles")
    }
    layers.append(parts.layer(inside["components"], {"type": "rule", "style": "mark"}, x=x))
    layers += parts.notes_at(inside["components"], x_axis, "ms", [8 + 16 * i for i in range(3)])
    tick: Spec = {"type": "tick", "style": "ref", "thickness": 2, "size": 10, "y": "height"}
    layers.append(parts.layer(inside["quantiles"], tick, x=x))
    layers += parts.notes_at(inside["quantiles"], x_axis, "ms", (190, 176, 162))
    return Drawing({"width": width, "height": 200, "layer": layers})
