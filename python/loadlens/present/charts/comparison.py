"""Side by side: published against measured (C6), where a request's time goes (C8), one figure a case (C9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadlens.model.report import Chart
from loadlens.present import numbers, tokens, words
from loadlens.present.charts import parts
from loadlens.present.charts.parts import Axis, Drawing, Panel, Row, Spec

NAMES_PX = 260  # at most, for the names at the left
BELOW_PX = 11  # a prediction stands so far under what was measured


def published(chart: Chart, width: int) -> Drawing:
    """C6: each case as a multiple of the reference; diamond published, circle measured, dotted the link."""
    columns = ("published", "point", "low", "high")
    rows = parts.rows_of(chart, "rows")
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
    title = str(chart.options.get("x_label", "multiple of the reference case")) + " (log)"
    x = parts.channel("published", axis, title, title_px=width + 60, labelExpr="datum.label+'×'")
    bars = _Bars(rows, x, names, grid=True)
    both = [row for row in rows if row["published"] is not None and row["point"] is not None]
    bars.add(both, parts.REF_RULE, x=x, x2={"field": "point"})
    bars.add_measured(rows, axis, chart.options.get("trials"))
    quoted = [row for row in rows if row["published"] is not None]
    bars.add([row for row in quoted if row["shape"] != "impossible"], parts.PUBLISHED)
    bars.add([row for row in quoted if row["shape"] == "impossible"], parts.BAD)
    right = [{**row, "_x": float(width)} for row in rows]
    bars.add(right, {**parts.NOTE, "dx": 8}, x=parts.pixel("_x"), text=parts.field("shape", "nominal"))
    return Drawing(bars.spec(width, 26 * len(names)), parts.zero_note(zeros, ""))


class _Bars(Panel):
    """A row for each case, with the names of cases at the left."""

    def __init__(self, rows: Sequence[Row], x: Spec, names: Sequence[str], *, grid: bool) -> None:
        self.x = parts.field(str(x["field"]), scale=x["scale"])
        self.y = {"field": "case", "type": "nominal", "sort": list(names)}
        self.ink = None
        self.named = {**self.y, "axis": {"title": None, "grid": grid, "labelLimit": NAMES_PX}}
        # an invisible rule carries both axes, so that any other layer may be left out
        self.layers = [parts.layer(rows, {"type": "rule", "opacity": 0}, y=self.named, x=x)] if grid else []

    def add_measured(self, rows: Sequence[Row], axis: Axis, trials: object) -> None:
        """Draw measured values with intervals along x; an open end runs to the edge and is named there."""
        drawn = [
            parts.with_ends(row, "low", "high", axis)
            for row in rows
            if row["point"] is not None and (row["low"] is not None or row["high"] is not None)
        ]
        low = parts.field("_low", scale=axis.scale)
        self.add(drawn, {"type": "rule", "style": "ci"}, x=low, x2={"field": "_high"})
        opened = [{**row, "_x": float(axis.length) - 4} for row in drawn if row["high"] is None]
        self.add(opened, parts.ARROW_RIGHT, x=parts.pixel("_x"))
        self.add(opened, {"type": "text", "style": "noter", "dy": -8, "text": "open"}, x=parts.pixel("_x"))
        seen = [row for row in rows if row["point"] is not None]
        self.add(seen, parts.measured_point(trials), x=parts.field("point", scale=axis.scale))


def _short_names(rows: list[dict[str, Any]], width: int) -> list[str]:
    """Names of cases as they fit, in order; the rows' `case` becomes the short name."""
    shown = words.cut_names((parts.text(row["case"], 200) for row in rows), parts.name_length(width))
    for row in rows:
        row["case"] = shown[parts.text(row["case"], 200)]
    return list(shown.values())


def demand(chart: Chart, width: int) -> Drawing:
    """C8: mean time a request by where it goes, stacked from zero, with the total and its interval."""
    stack, totals = parts.rows_of(chart, "parts"), parts.rows_of(chart, "totals")
    unit = parts.time_unit(row["ms"] for row in totals or stack)
    unit.convert(stack, "ms")
    unit.convert(totals, "ms", "lo", "hi")
    names = _short_names([*totals, *stack], width)
    narrow = width < parts.HALF_PX
    legend_columns = 4 if width >= parts.WIDE_PX else 1 if narrow else 2
    width = parts.plot_width(width, names)
    named = iter(dict.fromkeys(p for row in stack if (p := str(row["part"])) not in tokens.DEMAND_PARTS))
    order = {part or next(named, f"part {i}"): i for i, part in enumerate(tokens.DEMAND_PARTS)}
    if unknown := list(named):
        raise ValueError(f"demand has no room for {', '.join(unknown)}; it has {', '.join(order)}")
    stacked = [{**row, "o": order[row["part"]]} for row in stack if (row["ms"] or 0) > 0]
    ended = _ended(totals, unit.name, narrow=narrow)
    axis = _demand_axis(stacked, ended, width)
    used = [name for name in order if any(row["part"] == name for row in stacked)]
    colour: Spec = {
        "field": "part",
        "type": "nominal",
        "title": None,
        "legend": {"columns": legend_columns, "values": used, "columnPadding": 28},
        "scale": {"domain": list(order), "range": "ordinal"},
    }
    x = parts.channel("ms", axis, str(chart.options.get("x_label", f"mean {unit.name} per request")))
    bars = _Bars(stacked, x, names, grid=False)
    stacked_x = {**x, "stack": "zero"}
    bar: Spec = {"type": "bar", "height": 20}
    bars.add(stacked, bar, y=bars.named, x=stacked_x, color=colour, order=parts.field("o"))
    high = parts.field("_high", scale=axis.scale)
    bars.add(ended, parts.TOTAL_RULE, x=parts.field("_low", scale=axis.scale), x2={"field": "_high"})
    bars.add(ended, parts.NOTE, x=high, text=parts.field("label", "nominal"))
    return Drawing(bars.spec(width, 44 * len(names)))


def comparison(chart: Chart, width: int) -> Drawing:
    """C9: one figure of every case, a bar from zero with its interval; diamond: published."""
    rows = parts.rows_of(chart, "rows")
    on = numbers.scale(str(chart.options.get("unit", "")), [row["value"] for row in rows])
    columns = ("value", "low", "high", "published")
    for row in rows:
        row |= {c: None if row[c] is None else float(row[c]) / on.factor for c in columns}
    names = _short_names(rows, width)
    ended = _ended(
        [{**row, "ms": row["value"], "lo": row["low"], "hi": row["high"]} for row in rows],
        on.name,
        narrow=width < parts.HALF_PX,
    )
    width = parts.plot_width(width, names)
    for row in ended:  # its words stand beyond the published figure too
        row["_end"] = max(row["_high"], row["published"] or 0.0)
    published = [row for row in rows if row["published"] is not None]
    axis = _bar_axis([row["_end"] for row in ended], ended, width)
    x = parts.channel("value", axis, _title(chart, on), title_px=width + 60)
    bars = _Bars(rows, x, names, grid=False)
    bars.add(rows, {"type": "bar", "height": 16}, y=bars.named, x=x)
    bars.add(ended, parts.TOTAL_RULE, x=parts.field("_low", scale=axis.scale), x2={"field": "_high"})
    bars.add(published, parts.PUBLISHED, x=parts.field("published", scale=axis.scale))
    end = parts.field("_end", scale=axis.scale)
    bars.add(ended, {**parts.NOTE, "dx": 8}, x=end, text=parts.field("label", "nominal"))
    return Drawing(bars.spec(width, 32 * len(names)))


def _title(chart: Chart, on: numbers.Scale) -> str:
    """Return the title of the axis with its unit, unless the label ends with the unit."""
    label = str(chart.options.get("x_label", ""))
    return label if label.endswith(on.name) else f"{label}, {on.name}"


def predicted(chart: Chart, width: int) -> Drawing:
    """C10: a figure of each case as predicted (triangle, dashed its interval), over it as measured."""
    rows = parts.rows_of(chart, "rows")
    on = numbers.scale(str(chart.options.get("unit", "")), [row["predicted"] for row in rows])
    columns = ("predicted", "predicted_low", "predicted_high", "point", "low", "high")
    for row in rows:
        row |= {c: None if row[c] is None or row[c] <= 0 else float(row[c]) / on.factor for c in columns}
    names = _short_names(rows, width)
    width = parts.plot_width(width, names)
    axis = parts.log_axis((row[c] for row in rows for c in columns), width, padding=14)
    ticks = parts.log_ticks(axis.low, axis.high, max(2, width // 60))
    axis = Axis(axis.low, axis.high, width, True, ticks, 14)
    x = parts.channel("predicted", axis, f"{_title(chart, on)} (log)", title_px=width + 60)
    bars = _Bars(rows, x, names, grid=True)
    below = {"yOffset": BELOW_PX}
    spanned = [row for row in rows if None not in (row["predicted_low"], row["predicted_high"])]
    low = parts.field("predicted_low", scale=axis.scale)
    bars.add(spanned, {"type": "rule", "style": "model", **below}, x=low, x2={"field": "predicted_high"})
    bars.add([row for row in rows if row["predicted"] is not None], {**parts.PREDICTED, **below})
    bars.add_measured(rows, axis, chart.options.get("trials"))
    return Drawing(bars.spec(width, 38 * len(names)))


def _ended(totals: Sequence[Row], unit: str, *, narrow: bool) -> list[dict[str, Any]]:
    """Totals with their interval's ends and the words at the end of the bar; narrow: without the interval."""
    on = numbers.Scale(unit, 1.0)
    layers = []
    for row in totals:
        ms, lo, hi = row["ms"], row["lo"], row["hi"]
        if ms is None:
            continue
        span = "" if narrow or (lo is None and hi is None) else f" ({numbers.interval(lo, hi, on, point=ms)})"
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
