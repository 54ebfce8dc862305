"""Load curves (C1) and the innocent bystander (C7): a level of load against what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadlens.present import tokens
from loadlens.present.charts import parts
from loadlens.present.charts.parts import Axis, Colours, Drawing, Row, Spec

LOG_FROM = 20  # a range of loads this wide is drawn on a log axis
PROBE_LOG_FROM = 50  # the bystander's later: its wait grows with the number of users, not with their ratio
PANELS_A_ROW = 3
_C1_SETS = ("steps", "trials", "fit", "published", "predicted", "invalid", "knee", "plateau", "objective")

_Sets = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class _Quantity:
    """Content of one of the two stacked panels."""

    column: str  # "x" or "r"
    title: str
    axis: Axis


def load_curve(
    datasets: Mapping[str, Sequence[Row]],
    options: Mapping[str, Any],
    entities: Mapping[str, int] | None,
    width: int,
) -> Drawing:
    """C1: throughput from zero over the load, and under it the time on a log axis.

    Rows with a `panel` make small multiples on shared scales.
    """
    rates = {name: parts.rows_of(datasets, name) for name in _C1_SETS}
    unit = parts.time_unit(row["r"] for row in rates["steps"])
    for rows in rates.values():
        unit.convert(rows, "r", "r_lo", "r_hi")
    times, zeros = _without_zeros(rates)
    names = [str(row["series"]) for row in rates["steps"] if row.get("series") is not None]
    colours = Colours(names, entities, parts.name_length(width))
    for rows in (*rates.values(), *times.values()):
        colours.paint(rows, "series")
    panels = list(dict.fromkeys(row["panel"] for row in rates["steps"] if row.get("panel") is not None))
    beside = min(len(panels), PANELS_A_ROW if width >= parts.WIDE_PX else 2) or 1
    wide = parts.plot_width(width // beside, right=colours.labels())
    high = 96 if panels else 170
    users = _load_axis([row["users"] for row in rates["steps"]], wide)
    x_title = str(options.get("x_label", "users in the closed loop")) + (" (log)" if users.is_log else "")
    time_title = f"{options.get('time_label', 'mean response time')}, {unit.name} (log)"
    rate_title = str(options.get("rate_label", "throughput"))
    rate_title += "" if "/s" in rate_title else ", requests/s"
    rate = _Quantity("x", rate_title, _rate_axis(rates, high))
    time = _Quantity("r", time_title, _time_axis(times, high))
    look = _Style(users, colours, options.get("trials"), bool(panels))

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


def _rate_axis(sets: Mapping[str, list[dict[str, Any]]], height: int) -> Axis:
    columns = ("x", "x_lo", "x_hi")
    return parts.linear_axis(
        [r.get(c) for rows in sets.values() for r in rows for c in columns], height, headroom=1.14
    )


def _time_axis(sets: Mapping[str, list[dict[str, Any]]], height: int) -> Axis:
    columns = ("r", "r_lo", "r_hi")
    return parts.log_axis(
        [r.get(c) for rows in sets.values() for r in rows for c in columns], height, room=1.3
    )


def _panel(sets: _Sets, quantity: _Quantity, x_title: str | None, look: _Style) -> Spec:
    """One panel; knee and plateau are named in the upper only, series at the right edge of both."""
    column, axis, users, colours = quantity.column, quantity.axis, look.users, look.colours
    is_rate = column == "x"
    several = len(colours.slots) > 1
    ink = colours.channel() if colours.slots else None
    by_series = parts.field("series", "nominal") if several else None
    x, y = parts.field("users", scale=users.scale), parts.field(column)
    labels: Spec = {} if x_title else {"labels": False}
    x_channel = parts.channel("users", users, x_title, **labels)
    layers = [parts.frame(x_channel, parts.channel(column, axis, quantity.title, title_px=users.length + 30))]
    layers += _knees(sets["knee"], look, ink if several else None, axis.length, named=is_rate)
    layers += _plateaus(sets, axis, users) if is_rate and not look.small else []
    layers += [] if is_rate else parts.limit_layers(sets["objective"], axis, "r")
    dashed: Spec = {"type": "line", "style": "model", "clip": True}
    layers.append(parts.layer(sets["fit"], dashed, x=x, y=y, detail=by_series))
    hollow: Spec = {"type": "point", "style": "published", "clip": True}
    layers.append(parts.layer(sets["published"], hollow, x=x, y=y))
    layers.append(parts.layer(sets["predicted"], {**hollow, "style": "predicted"}, x=x, y=y))
    dots: Spec = {"type": "point", "size": 12, "opacity": 0.6}
    layers.append(parts.layer(sets["trials"], dots, x=x, y=y, color=ink))
    # a thin line where no model's curve joins the steps; a series of one point gets none
    modelled = {row.get("series") for row in sets["fit"]}
    free = [row for row in sets["steps"] if row.get("series") not in modelled]
    thin: Spec = {"type": "line", "strokeWidth": 1.5}
    layers.append(parts.layer(free, thin, x=x, y=y, color=ink, detail=by_series))
    layers += parts.interval_layers(sets["steps"], x, parts.field, axis, f"{column}_lo", f"{column}_hi", ink)
    layers.append(parts.layer(sets["steps"], parts.measured_point(look.trials), x=x, y=y, color=ink))
    layers.append(parts.layer(sets["invalid"], {"type": "point", "style": "bad"}, x=x, y=y))
    if several:
        layers += parts.end_labels(_last(sets["steps"], colours, column), axis, column, users.length, ink)
    return {"width": users.length, "height": axis.length, "layer": layers}


def _last(rows: Sequence[Row], colours: Colours, column: str) -> list[dict[str, Any]]:
    """The last point of every series that has a colour of its own, with its name."""
    ends: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = row.get("series")
        if name is None or row.get(column) is None or str(name) in colours.rest:
            continue
        if str(name) not in ends or row["users"] >= ends[str(name)]["users"]:
            ends[str(name)] = {**row, "label": colours.label(str(name))}
    return list(ends.values())


def _knees(rows: Sequence[Row], look: _Style, ink: Spec | None, height: int, *, named: bool) -> list[Spec]:
    """Rules where more load brings no more throughput, in their series' colours where there are several."""
    users = look.users
    inside = [row for row in rows if users.low <= row["users"] <= users.high]
    if not inside:
        return []
    mark: Spec = {"type": "rule", "strokeWidth": 1} if ink else {"type": "rule", "style": "mark"}
    rule = parts.layer(inside, mark, x=parts.field("users", scale=users.scale), color=ink)
    heights = [height - 8 - 14 * i for i in range(len(inside))]
    words_ = parts.notes_at(inside, users, "users", heights) if named and not look.small else []
    return [rule, *words_]


def _plateaus(sets: _Sets, axis: Axis, users: Axis) -> list[Spec]:
    """The plateau's value over its line, left of the last step so that no interval runs through it."""
    rows = sets["plateau"]
    heights = parts.staggered([axis.y(row["x"]) - 14 for row in rows], axis.length)
    last = max((row["users"] for row in sets["steps"]), default=users.high)
    edge = min(users.position(last) - 4, float(users.length))
    pairs = zip(rows, heights, strict=True)
    named = [{"_x": edge, "_y": y, "label": parts.text(row["label"])} for row, y in pairs]
    return parts.words_over(named, "noter") if named else []


def bystander(
    datasets: Mapping[str, Sequence[Row]],
    options: Mapping[str, Any],
    entities: Mapping[str, int] | None,
    width: int,
) -> Drawing:
    """C7: load of the expensive endpoint against the probe's time on a log axis; colour is the level."""
    names = ("probe", "trials", "model", "published", "predicted")
    sets = {name: parts.rows_of(datasets, name) for name in (*names, "idle")}
    unit = parts.time_unit(row["ms"] for row in sets["probe"])
    for rows in sets.values():
        unit.convert(rows, "ms", "lo", "hi")
    zeros: list[Any] = []
    for name in sets:
        sets[name], dropped = parts.drop_zeros(sets[name], "users", "ms", "lo", "hi")
        zeros += dropped if name == "probe" else []
    colours = Colours((str(row["level"]) for row in sets["probe"]), entities, parts.name_length(width))
    width = parts.plot_width(width, right=colours.labels())
    for rows in sets.values():
        colours.paint(rows, "level")
    users = _load_axis([row["users"] for row in sets["probe"]], width, PROBE_LOG_FROM)
    values = [row.get(c) for rows in sets.values() for row in rows for c in ("ms", "lo", "hi")]
    axis = parts.log_axis(values, 240, room=1.3)
    title = f"{options.get('time_label', 'mean response time of the probe')}, {unit.name} (log)"
    x_title = str(options.get("x_label", "users of the expensive endpoint")) + (
        " (log)" if users.is_log else ""
    )
    y_channel = parts.channel("ms", axis, title, title_px=width + 30)
    layers = [parts.frame(parts.channel("users", users, x_title), y_channel)]
    layers += _idle(sets["idle"], axis, users)
    x, y, ink = parts.field("users", scale=users.scale), parts.field("ms"), colours.channel()
    by_level = parts.field("level", "nominal")
    layers.append(
        parts.layer(
            sets["model"], {"type": "line", "style": "model", "clip": True}, x=x, y=y, detail=by_level
        )
    )
    if not sets["model"]:
        mark: Spec = {"type": "line", "strokeWidth": 1.5}
        layers.append(parts.layer(sets["probe"], mark, x=x, y=y, color=ink, detail=by_level))
    layers.append(
        parts.layer(sets["published"], {"type": "point", "style": "published", "clip": True}, x=x, y=y)
    )
    layers.append(parts.layer(sets["predicted"], {"type": "point", "style": "predicted"}, x=x, y=y))
    layers.append(
        parts.layer(sets["trials"], {"type": "point", "size": 12, "opacity": 0.6}, x=x, y=y, color=ink)
    )
    layers += parts.interval_layers(sets["probe"], x, parts.field, axis, "lo", "hi", ink)
    layers.append(
        parts.layer(sets["probe"], parts.measured_point(options.get("trials")), x=x, y=y, color=ink)
    )
    if len(colours.slots) > 1:
        named = [{**row, "series": row["level"]} for row in sets["probe"]]
        layers += parts.end_labels(_last(named, colours, "ms"), axis, "ms", width, ink)
    return Drawing(
        {"width": width, "height": axis.length, "layer": layers},
        (*colours.note(), *parts.zero_note(zeros, "users")),
    )


def _idle(rows: Sequence[Row], axis: Axis, users: Axis) -> list[Spec]:
    """Draw the unloaded time of the probe: a dotted line, labelled under its right end."""
    if not rows:
        return []
    edge, rule = float(users.length), {"type": "rule", "style": "ref"}
    line = parts.layer(rows, rule, x={"value": 0}, x2={"value": "width"}, y=parts.field("ms"))
    heights = [axis.y(row["ms"]) for row in rows]
    beside = [y + 9 if y + 16 <= axis.length else y - 8 for y in heights]
    named = [
        {"label": parts.text(row["label"]), "_x": edge, "_y": y} for row, y in zip(rows, beside, strict=True)
    ]
    return [line, *parts.words_over(named, "noter")]
