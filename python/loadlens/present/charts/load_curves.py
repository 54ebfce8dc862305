"""Load curves (C1) and the innocent bystander (C7): a level of load against what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadlens.model.report import Chart
from loadlens.present import tokens
from loadlens.present.charts import parts
from loadlens.present.charts.parts import Axis, Colours, Drawing, Panel, Row, Spec

LOG_FROM = 20  # a range of loads this wide is drawn on a log axis
PROBE_LOG_FROM = 50  # the bystander's later: its wait grows with the number of users, not with their ratio
PANELS_A_ROW = 3
BAND = 0.16  # opacity of a band in which a value lies
_C1_SETS = ("steps", "trials", "fit", "published", "predicted", "invalid", "knee", "plateau", "objective")

_Sets = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class _Quantity:
    """Content of one of the two stacked panels."""

    column: str  # "x" or "r"
    title: str
    axis: Axis


def load_curve(chart: Chart, width: int) -> Drawing:
    """C1: throughput from zero over the load, and under it the time on a log axis.

    Rows with a `panel` make small multiples on shared scales.
    """
    rates = {name: parts.rows_of(chart, name) for name in _C1_SETS}
    unit = parts.time_unit(row["r"] for row in rates["steps"])
    for rows in rates.values():
        unit.convert(rows, "r", "r_lo", "r_hi")
    times, zeros = _without_zeros(rates)
    names = [str(row["series"]) for row in rates["steps"] if row.get("series") is not None]
    colours = Colours(names, chart.entities, parts.name_length(width))
    for rows in (*rates.values(), *times.values()):
        colours.paint(rows, "series")
    panels = list(dict.fromkeys(row["panel"] for row in rates["steps"] if row.get("panel") is not None))
    beside = min(len(panels), PANELS_A_ROW if width >= parts.WIDE_PX else 2) or 1
    wide = parts.plot_width(width // beside, right=colours.labels())
    high = 96 if panels else 170 if width >= parts.WIDE_PX else 120
    users = _load_axis([row["users"] for row in rates["steps"]], wide)
    x_title = str(chart.options.get("x_label", "users in the closed loop"))
    x_title += " (log)" if users.is_log else ""
    time_title = f"{chart.options.get('time_label', 'mean response time')}, {unit.name} (log)"
    rate_title = str(chart.options.get("rate_label", "throughput"))
    rate_title += "" if "/s" in rate_title else ", requests/s"
    rate = _Quantity("x", rate_title, parts.linear_axis(_values(rates, "x"), high, headroom=1.14))
    time = _Quantity("r", time_title, parts.log_axis(_values(times, "r"), high, room=1.3))
    look = _Style(users, colours, chart.options.get("trials"), bool(panels))

    def pair(of: object) -> Spec:
        """The two panels of one small multiple, or of the whole chart when `of` is none."""

        def own(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [row for row in rows if row.get("panel") in (of, None)]

        above = _panel({name: own(rows) for name, rows in rates.items()}, rate, None, look)
        below = _panel({name: own(rows) for name, rows in times.items()}, time, x_title, look)
        stacked: Spec = {"vconcat": [above, below], "spacing": 26}
        if of is not None:
            stacked["title"] = {"text": parts.text(of), "fontSize": tokens.TYPE["axis"].size, "offset": 14}
        return stacked

    grid: Spec = {"concat": [pair(panel) for panel in panels], "columns": beside, "spacing": 30}
    return Drawing(grid if panels else pair(None), (*colours.note(), *parts.zero_note(zeros, "users")))


@dataclass(frozen=True, slots=True)
class _Style:
    """Style shared by both panels and all small multiples."""

    users: Axis
    colours: Colours
    trials: object  # 1: hollow marks
    small: bool  # one of several small multiples: no words inside


def _without_zeros(rates: _Sets) -> tuple[_Sets, list[Any]]:
    """The sets for the log panel, and the loads whose measured time was zero."""
    times: _Sets = {}
    zeros: list[Any] = []
    for name, rows in rates.items():
        copied = [dict(row) for row in rows]
        times[name], dropped = parts.drop_zeros(copied, "users", "r", "r_lo", "r_hi")
        zeros += dropped if name == "steps" else []
    return times, zeros


def _load_axis(levels: Sequence[float], width: int, log_from: float = LOG_FROM) -> Axis:
    levels_drawn = [v for v in parts.known(levels) if v >= 0]
    low, high = (min(levels_drawn), max(levels_drawn)) if levels_drawn else (1.0, 2.0)
    if low > 0 and high / low >= log_from:
        axis = Axis(low, high, width, True, padding=14)
    else:
        axis = Axis(0.0, high * 1.08 if high else 1.0, width)
    return Axis(axis.low, axis.high, width, axis.is_log, parts.level_ticks(levels_drawn, axis), axis.padding)


def _values(sets: _Sets, column: str) -> list[Any]:
    """Return all values of a column and all ends of its intervals."""
    columns = (column, f"{column}_lo", f"{column}_hi")
    return [row.get(c) for rows in sets.values() for row in rows for c in columns]


def _panel(sets: _Sets, quantity: _Quantity, x_title: str | None, look: _Style) -> Spec:
    """Return one panel; knee and plateau are named in the upper only, series at the right edge of both."""
    column, axis, users, colours = quantity.column, quantity.axis, look.users, look.colours
    is_rate, several = column == "x", len(colours.slots) > 1
    ink = colours.channel() if colours.slots else None
    x_channel = parts.channel("users", users, x_title, **({} if x_title else {"labels": False}))
    panel = Panel(x_channel, parts.channel(column, axis, quantity.title, title_px=users.length + 30), ink)
    panel.layers += _knees(sets["knee"], look, ink if several else None, axis.length, named=is_rate)
    panel.layers += _plateaus(sets, axis, look, ink if several else None) if is_rate else []
    panel.layers += [] if is_rate else parts.limit_layers(sets["objective"], axis, "r")
    ends = colours.ends(sets["steps"], "series", column, "users") if several else []
    _draw_points(panel, {**sets, "model": sets["fit"], "measured": sets["steps"]}, "series", axis, look, ends)
    return panel.spec(users.length, axis.length)


def _draw_points(
    panel: Panel, sets: _Sets, entity: str, axis: Axis, look: _Style, ends: Sequence[Row]
) -> None:
    """Draw what is known at each load, and the names of lines at their ends.

    The form shows the source: dashed the model, diamond published, triangle predicted, dots the trials,
    circle measured with its interval, cross invalid.
    """
    column = str(panel.y["field"])
    by_entity = parts.field(entity, "nominal") if entity == "level" or len(look.colours.slots) > 1 else None
    panel.add(sets["model"], parts.MODEL_LINE, detail=by_entity)
    panel.add(sets["published"], {**parts.PUBLISHED, "clip": True})
    panel.add(sets["predicted"], {**parts.PREDICTED, "clip": True})
    panel.add(sets["trials"], parts.TRIAL_DOT, color=panel.ink)
    # a thin line where no model's curve joins the steps; a series of one point gets none
    modelled = {row.get(entity) for row in sets["model"]}
    free = [row for row in sets["measured"] if row.get(entity) not in modelled]
    panel.add(free, parts.THIN_LINE, color=panel.ink, detail=by_entity)
    low, high = (f"{column}_lo", f"{column}_hi") if column != "ms" else ("lo", "hi")
    panel.layers += parts.interval_layers(sets["measured"], panel.x, axis, low, high, panel.ink)
    panel.add(sets["measured"], parts.measured_point(look.trials), color=panel.ink)
    panel.add(sets.get("invalid", ()), parts.BAD)
    panel.layers += parts.end_labels(ends, axis, column, look.users.length, panel.ink) if ends else []


def _knees(rows: Sequence[Row], look: _Style, ink: Spec | None, height: int, *, named: bool) -> list[Spec]:
    """Rules where more load brings no more throughput, in their series' colours where there are several."""
    users = look.users
    inside = [row for row in rows if users.low <= row["users"] <= users.high]
    if not inside:
        return []
    mark = {"type": "rule", "strokeWidth": 1} if ink else parts.MARK_RULE
    rule = parts.layer(inside, mark, x=parts.field("users", scale=users.scale), color=ink)
    heights = [height - 8 - 14 * i for i in range(len(inside))]
    words_ = parts.notes_at(inside, users, "users", heights) if named and not look.small else []
    return [rule, *words_]


def _plateaus(sets: _Sets, axis: Axis, look: _Style, ink: Spec | None) -> list[Spec]:
    """The capacity as a line from the knee on, with the band of its interval, and its value over the line."""
    users = look.users
    rows = [
        parts.with_ends({**row, "_from": max(row["users"], users.low)}, "x_lo", "x_hi", axis)
        for row in sets["plateau"]
        if row["users"] < users.high
    ]
    if not rows:
        return []
    x = parts.field("_from", scale=users.scale)
    band: Spec = {"type": "rect", "opacity": BAND, "clip": True}
    line: Spec = {"type": "rule", "clip": True, "strokeDash": [6, 3]}
    drawn = [
        parts.layer(
            rows, band, x=x, x2={"value": "width"}, y=parts.field("_low"), y2={"field": "_high"}, color=ink
        ),
        parts.layer(rows, line, x=x, x2={"value": "width"}, y=parts.field("x"), color=ink),
    ]
    if look.small:
        return drawn
    heights = parts.staggered([axis.y(row["_high"]) - 8 for row in rows], axis.length)
    pairs = zip(rows, heights, strict=True)
    named = [{"_x": float(users.length) - 4, "_y": y, "label": parts.text(row["label"])} for row, y in pairs]
    return [*drawn, *parts.words_over(named, "noter")]


def bystander(chart: Chart, width: int) -> Drawing:
    """C7: load of the expensive endpoint against the probe's time on a log axis; colour is the level."""
    names = ("probe", "trials", "model", "published", "predicted")
    sets = {name: parts.rows_of(chart, name) for name in (*names, "idle")}
    unit = parts.time_unit(row["ms"] for row in sets["probe"])
    for rows in sets.values():
        unit.convert(rows, "ms", "lo", "hi")
    zeros: list[Any] = []
    for name in sets:
        sets[name], dropped = parts.drop_zeros(sets[name], "users", "ms", "lo", "hi")
        zeros += dropped if name == "probe" else []
    colours = Colours((str(row["level"]) for row in sets["probe"]), chart.entities, parts.name_length(width))
    width = parts.plot_width(width, right=colours.labels())
    for rows in sets.values():
        colours.paint(rows, "level")
    users = _load_axis([row["users"] for row in sets["probe"]], width, PROBE_LOG_FROM)
    values = [row.get(c) for rows in sets.values() for row in rows for c in ("ms", "lo", "hi")]
    axis = parts.log_axis(values, 240, room=1.3)
    title = f"{chart.options.get('time_label', 'mean response time of the probe')}, {unit.name} (log)"
    x_title = str(chart.options.get("x_label", "users of the expensive endpoint"))
    x_title += " (log)" if users.is_log else ""
    y_channel = parts.channel("ms", axis, title, title_px=width + 30)
    panel = Panel(parts.channel("users", users, x_title), y_channel, colours.channel())
    panel.layers += _idle(sets["idle"], axis, users)
    look = _Style(users, colours, chart.options.get("trials"), small=False)
    ends = colours.ends(sets["probe"], "level", "ms", "users") if len(colours.slots) > 1 else []
    _draw_points(panel, {**sets, "measured": sets["probe"]}, "level", axis, look, ends)
    return Drawing(panel.spec(width, axis.length), (*colours.note(), *parts.zero_note(zeros, "users")))


def _idle(rows: Sequence[Row], axis: Axis, users: Axis) -> list[Spec]:
    """Draw the unloaded time of the probe: a dotted line, labelled under its right end."""
    if not rows:
        return []
    edge = float(users.length)
    line = parts.layer(rows, parts.REF_RULE, x={"value": 0}, x2={"value": "width"}, y=parts.field("ms"))
    heights = [axis.y(row["ms"]) for row in rows]
    beside = [y + 9 if y + 16 <= axis.length else y - 8 for y in heights]
    named = [
        {"label": parts.text(row["label"]), "_x": edge, "_y": y} for row, y in zip(rows, beside, strict=True)
    ]
    return [line, *parts.words_over(named, "noter")]
