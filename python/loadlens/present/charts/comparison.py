"""Side by side: published against measured (C6), where a request's time goes (C8), one figure a case (C9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadlens.present import numbers, tokens, words
from loadlens.present.charts import parts
from loadlens.present.charts.parts import Axis, Drawing, Row, Spec

NAMES_PX = 260  # at most, for the names at the left
BELOW_PX = 11  # a prediction stands so far under what was measured


def published(
    datasets: Mapping[str, Sequence[Row]],
    options: Mapping[str, Any],
    entities: Mapping[str, int] | None,
    width: int,
) -> Drawing:
    """C6: each case as a multiple of the reference; diamond published, circle measured, dotted the link."""
    columns = ("published", "point", "low", "high")
    rows = parts.rows_of(datasets, "rows")
    zeros = [row["case"] for row in rows if any(row[c] is not None and row[c] <= 0 for c in columns[:2])]
    names = _short_names(rows, width)
    for row in rows:
        row |= {c: row[c] if row[c] is not None and row[c] > 0 else None for c in columns}
        row["shape"] = parts.text(row["shape"], 20)
    width = parts.plot_width(width, names, [row["shape"] for row in rows])
    axis = parts.log_axis((row[c] for row in rows for c in columns), width, padding=14)
    axis = Axis(
        axis.low, axis.high, width, True, parts.log_ticks(axis.low, axis.high, max(2, width // 60)), 14
    )
    title = str(options.get("x_label", "multiple of the reference case")) + " (log)"
    by_case: Spec = {"field": "case", "type": "nominal", "sort": names}
    named: Spec = {**by_case, "axis": {"title": None, "grid": True, "labelLimit": NAMES_PX}}
    x = parts.channel("published", axis, title, title_px=width + 60, labelExpr="datum.label+'×'")
    spot = parts.field("published", scale=axis.scale)
    both = [row for row in rows if row["published"] is not None and row["point"] is not None]
    measured = [row for row in rows if row["point"] is not None]
    quoted = [row for row in rows if row["published"] is not None and row["shape"] != "impossible"]
    false = [row for row in rows if row["published"] is not None and row["shape"] == "impossible"]
    right = [{**row, "_x": float(width)} for row in rows]
    verdict = parts.field("shape", "nominal")
    beside: Spec = {"type": "text", "style": "note", "dx": 8}
    layers = [
        parts.layer(rows, {"type": "rule", "opacity": 0}, y=named),
        parts.layer(both, {"type": "rule", "style": "ref"}, y=by_case, x=x, x2={"field": "point"}),
        *_sideways(rows, by_case, axis),
        parts.layer(
            measured,
            parts.measured_point(options.get("trials")),
            y=by_case,
            x=parts.field("point", scale=axis.scale),
        ),
        parts.layer(quoted, {"type": "point", "style": "published"}, y=by_case, x=spot),
        parts.layer(false, {"type": "point", "style": "bad"}, y=by_case, x=spot),
        parts.layer(right, beside, y=by_case, x=parts.pixel("_x"), text=verdict),
    ]
    return Drawing({"width": width, "height": 26 * len(names), "layer": layers}, parts.zero_note(zeros, ""))


def _short_names(rows: list[dict[str, Any]], width: int) -> list[str]:
    """Names of cases as they fit, in order; the rows' `case` becomes the short name."""
    shown = words.cut_names((parts.text(row["case"], 200) for row in rows), parts.name_length(width))
    for row in rows:
        row["case"] = shown[parts.text(row["case"], 200)]
    return list(shown.values())


def _sideways(rows: Sequence[Row], by_case: Spec, axis: Axis) -> list[Spec]:
    """Intervals along x; an open end runs to the panel's edge with an arrowhead and says so."""
    drawn = [
        {
            **row,
            "_low": axis.low if row["low"] is None else row["low"],
            "_high": axis.high if row["high"] is None else row["high"],
        }
        for row in rows
        if row["point"] is not None and (row["low"] is not None or row["high"] is not None)
    ]
    x = parts.field("_low", scale=axis.scale)
    layers = [parts.layer(drawn, {"type": "rule", "style": "ci"}, y=by_case, x=x, x2={"field": "_high"})]
    opened = [{**row, "_x": float(axis.length) - 4} for row in drawn if row["high"] is None]
    if opened:
        head: Spec = {"type": "point", "shape": "triangle-right", "size": 40}
        word: Spec = {"type": "text", "style": "noter", "dy": -8, "text": "open"}
        layers.append(parts.layer(opened, head, y=by_case, x=parts.pixel("_x")))
        layers.append(parts.layer(opened, word, y=by_case, x=parts.pixel("_x")))
    return layers


def demand(
    datasets: Mapping[str, Sequence[Row]],
    options: Mapping[str, Any],
    entities: Mapping[str, int] | None,
    width: int,
) -> Drawing:
    """C8: mean time a request by where it goes, stacked from zero, with the total and its interval."""
    stack, totals = parts.rows_of(datasets, "parts"), parts.rows_of(datasets, "totals")
    unit = parts.time_unit(row["ms"] for row in totals or stack)
    unit.convert(stack, "ms")
    unit.convert(totals, "ms", "lo", "hi")
    names = _short_names([*totals, *stack], width)
    is_wide = width >= parts.WIDE_PX
    width = parts.plot_width(width, names)
    order = {name: i for i, name in enumerate(tokens.DEMAND_PARTS)}
    unknown = sorted({str(row["part"]) for row in stack} - set(order))
    if unknown:
        raise ValueError(f"demand has no part {', '.join(unknown)}; it has {', '.join(order)}")
    stacked = [{**row, "o": order[row["part"]]} for row in stack if (row["ms"] or 0) > 0]
    ended = _ended(totals, unit.name)
    axis = _demand_axis(stacked, ended, width)
    used = [name for name in order if any(row["part"] == name for row in stacked)]
    colour: Spec = {
        "field": "part",
        "type": "nominal",
        "title": None,
        "legend": {"columns": 4 if is_wide else 2, "values": used, "columnPadding": 28},
        "scale": {"domain": list(order), "range": "ordinal"},
    }
    by_case: Spec = {"field": "case", "type": "nominal", "sort": names}
    named: Spec = {**by_case, "axis": {"title": None, "grid": False, "labelLimit": NAMES_PX}}
    x = parts.channel("ms", axis, str(options.get("x_label", f"mean {unit.name} per request")))
    x["stack"] = "zero"
    bar: Spec = {"type": "bar", "height": 20}
    rule: Spec = {"type": "rule", "style": "model", "strokeDash": [1, 0]}
    low, high = parts.field("_low", scale=axis.scale), parts.field("_high", scale=axis.scale)
    layers = [
        parts.layer(stacked, bar, y=named, x=x, color=colour, order=parts.field("o")),
        parts.layer(ended, rule, y=by_case, x=low, x2={"field": "_high"}),
        parts.layer(
            ended, {"type": "text", "style": "note"}, y=by_case, x=high, text=parts.field("label", "nominal")
        ),
    ]
    return Drawing({"width": width, "height": 44 * len(names), "layer": layers})


def comparison(
    datasets: Mapping[str, Sequence[Row]],
    options: Mapping[str, Any],
    entities: Mapping[str, int] | None,
    width: int,
) -> Drawing:
    """C9: one figure of every case, a bar from zero with its interval; diamond: published."""
    rows = parts.rows_of(datasets, "rows")
    on = numbers.scale(str(options.get("unit", "")), [row["value"] for row in rows])
    columns = ("value", "low", "high", "published")
    for row in rows:
        row |= {c: None if row[c] is None else float(row[c]) / on.factor for c in columns}
    names = _short_names(rows, width)
    ended = _ended(
        [{**row, "ms": row["value"], "lo": row["low"], "hi": row["high"]} for row in rows], on.name
    )
    width = parts.plot_width(width, names)
    for row in ended:  # its words stand beyond the published figure too
        row["_end"] = max(row["_high"], row["published"] or 0.0)
    published = [row for row in rows if row["published"] is not None]
    axis = _bar_axis([row["_end"] for row in ended], ended, width)
    by_case: Spec = {"field": "case", "type": "nominal", "sort": names}
    named: Spec = {**by_case, "axis": {"title": None, "grid": False, "labelLimit": NAMES_PX}}
    label = str(options.get("x_label", ""))
    title = label if label.endswith(on.name) else f"{label}, {on.name}"
    x = parts.channel("value", axis, title, title_px=width + 60)
    low = parts.field("_low", scale=axis.scale)
    spot = parts.field("published", scale=axis.scale)
    rule: Spec = {"type": "rule", "style": "model", "strokeDash": [1, 0]}
    beyond = parts.field("_end", scale=axis.scale)
    words_: Spec = {"type": "text", "style": "note", "dx": 8}
    layers = [
        parts.layer(rows, {"type": "bar", "height": 16}, y=named, x=x),
        parts.layer(ended, rule, y=by_case, x=low, x2={"field": "_high"}),
        parts.layer(published, {"type": "point", "style": "published"}, y=by_case, x=spot),
        parts.layer(ended, words_, y=by_case, x=beyond, text=parts.field("label", "nominal")),
    ]
    return Drawing({"width": width, "height": 32 * len(names), "layer": layers})


def predicted(
    datasets: Mapping[str, Sequence[Row]],
    options: Mapping[str, Any],
    entities: Mapping[str, int] | None,
    width: int,
) -> Drawing:
    """C10: a figure of each case as predicted (triangle, dashed its interval), over it as measured."""
    rows = parts.rows_of(datasets, "rows")
    on = numbers.scale(str(options.get("unit", "")), [row["predicted"] for row in rows])
    columns = ("predicted", "predicted_low", "predicted_high", "point", "low", "high")
    for row in rows:
        row |= {c: None if row[c] is None or row[c] <= 0 else float(row[c]) / on.factor for c in columns}
    names = _short_names(rows, width)
    width = parts.plot_width(width, names)
    axis = parts.log_axis((row[c] for row in rows for c in columns), width, padding=14)
    ticks = parts.log_ticks(axis.low, axis.high, max(2, width // 60))
    axis = Axis(axis.low, axis.high, width, True, ticks, 14)
    by_case: Spec = {"field": "case", "type": "nominal", "sort": names}
    named: Spec = {**by_case, "axis": {"title": None, "grid": True, "labelLimit": NAMES_PX}}
    label = str(options.get("x_label", ""))
    title = (label if label.endswith(on.name) else f"{label}, {on.name}") + " (log)"
    x = parts.channel("predicted", axis, title, title_px=width + 60)
    spot = parts.field("predicted", scale=axis.scale)
    ends = parts.field("predicted_low", scale=axis.scale)
    spanned = [row for row in rows if None not in (row["predicted_low"], row["predicted_high"])]
    predicted = [row for row in rows if row["predicted"] is not None]
    seen = [row for row in rows if row["point"] is not None]
    below = {"yOffset": BELOW_PX}
    layers = [
        parts.layer(rows, {"type": "rule", "opacity": 0}, y=named, x=x),
        parts.layer(
            spanned,
            {"type": "rule", "style": "model", **below},
            y=by_case,
            x=ends,
            x2={"field": "predicted_high"},
        ),
        parts.layer(predicted, {"type": "point", "style": "predicted", **below}, y=by_case, x=spot),
        *_sideways(rows, by_case, axis),
        parts.layer(
            seen,
            parts.measured_point(options.get("trials")),
            y=by_case,
            x=parts.field("point", scale=axis.scale),
        ),
    ]
    return Drawing({"width": width, "height": 38 * len(names), "layer": layers})


def _ended(totals: Sequence[Row], unit: str) -> list[dict[str, Any]]:
    """Totals with their interval's ends and the words that stand at the end of the bar."""
    on = numbers.Scale(unit, 1.0)
    layers = []
    for row in totals:
        ms, lo, hi = row["ms"], row["lo"], row["hi"]
        if ms is None:
            continue
        span = "" if lo is None and hi is None else f" ({numbers.interval(lo, hi, on, point=ms)})"
        label = f"{numbers.value(ms, on, low=lo, high=hi)} {unit}{span}"
        layers.append(
            {**row, "label": label, "_low": ms if lo is None else lo, "_high": ms if hi is None else hi}
        )
    return layers


def _demand_axis(stacked: Sequence[Row], ended: Sequence[Row], width: int) -> Axis:
    """Axis from zero, with room for the label of the longest bar."""
    sums: dict[str, float] = {}
    for row in stacked:
        sums[row["case"]] = sums.get(row["case"], 0.0) + row["ms"]
    return _bar_axis([*sums.values(), *(row["_high"] for row in ended)], ended, width)


def _bar_axis(values: Sequence[float], ended: Sequence[Row], width: int) -> Axis:
    """Axis from zero, with room for the label of the longest bar."""
    longest = max((len(row["label"]) for row in ended), default=0) * parts.CHARACTER_PX * parts.LABEL_SLACK
    headroom = 1 / max(0.3, 1 - (longest + 12) / width)
    return parts.linear_axis(values, width, headroom=headroom)
