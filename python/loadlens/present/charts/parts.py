"""Parts shared by the chart kinds: axes chosen in Python, colours by slot, labels that do not touch.

Domains are explicit, so the pixel of every value is known here: labels are staggered before anything is
drawn, an open interval can end at the panel's edge, and panels that are compared share their scale. Vega's
own choice would stretch a log axis through a zero without an error. A layer with data of its own inherits no
transform, so every column is computed here and specs hold no expression over data.
"""

from __future__ import annotations

import math
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from loadlens.model.report import Chart
from loadlens.present import numbers, tokens, words

Row = Mapping[str, Any]
Spec = dict[str, Any]

LINE_PX = 14  # two labels closer than this touch
LABEL_SLACK = 1.2  # browser fonts run wider than the ones that static output is measured with
CHARACTER_PX = 6.2  # mean width of a character of axis type
REST = "the rest"
WIDE_PX = 520  # from this picture width on names stand at full length and small multiples three a row
HALF_PX = 456  # of two pictures next to each other
LEFT_PX = 56  # a vertical axis with its labels
_SYMBOLS = frozenset("–−×·≥≤±")

# The marks of all charts; their colours and dashes are styles of `tokens.vega_config`.
LINE: Spec = {"type": "line"}
THIN_LINE: Spec = {"type": "line", "strokeWidth": 1.5}
MODEL_LINE: Spec = {"type": "line", "style": "model", "clip": True}
REF_RULE: Spec = {"type": "rule", "style": "ref"}
MARK_RULE: Spec = {"type": "rule", "style": "mark"}
TOTAL_RULE: Spec = {"type": "rule", "style": "model", "strokeDash": [1, 0]}
SHADE: Spec = {"type": "rect", "style": "shade"}
TRIAL_DOT: Spec = {"type": "point", "size": 12, "opacity": 0.6}
PUBLISHED: Spec = {"type": "point", "style": "published"}
PREDICTED: Spec = {"type": "point", "style": "predicted"}
BAD: Spec = {"type": "point", "style": "bad"}
NOTE: Spec = {"type": "text", "style": "note"}
ARROW_UP: Spec = {"type": "point", "shape": "triangle-up", "size": 40}
ARROW_RIGHT: Spec = {"type": "point", "shape": "triangle-right", "size": 40}
LINE_KEY: Spec = {"type": "point", "shape": "stroke", "size": 60, "strokeWidth": 2, "filled": False}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A spec without config, and what the caption must add to it."""

    spec: Spec
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Axis:
    """A quantitative axis that was decided here: where values lie is known before drawing."""

    low: float
    high: float
    length: int  # px
    is_log: bool = False
    ticks: tuple[float, ...] = ()
    padding: int = 0  # px at each end

    def position(self, value: float) -> float:
        """Pixels from the low end."""
        room = self.length - 2 * self.padding
        if self.high == self.low:
            return self.length / 2
        if self.is_log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.padding + share * room

    def y(self, value: float) -> float:
        """Pixels from the top, for a vertical axis."""
        return self.length - self.position(value)

    @property
    def scale(self) -> Spec:
        """The scale of a Vega-Lite channel."""
        scale: Spec = {"domain": [self.low, self.high], "nice": False, "zero": False}
        if self.is_log:
            scale["type"] = "log"
        if self.padding:
            # Vega widens the domain by pixels; ours stays, the range shrinks
            scale["padding"] = self.padding
        return scale


def plot_width(picture: int, left: Iterable[str] = (), right: Iterable[str] = ()) -> int:
    """Return the panel size that a picture of given pixels leaves.

    Args:
        picture: The whole width.
        left: Names that stand where the axis labels would stand.
        right: Labels outside the right edge of the panel.
    """
    names, ends = _text_px(left), _text_px(right)
    return max(130, round(picture - (names + 14 if names else LEFT_PX) - (ends + 18 if ends else 12)))


def _text_px(labels: Iterable[str]) -> float:
    return max((len(label) for label in labels), default=0) * CHARACTER_PX * LABEL_SLACK


def name_length(picture: int) -> int:
    """Characters that a name may have in a picture of so many pixels."""
    return words.NAME_LENGTH if picture >= WIDE_PX else 22 if picture >= HALF_PX else 18


def wrapped(title: str, width: float) -> list[str]:
    """A title in as few lines as fit, none much shorter than the others; titles do not wrap by themselves."""
    most = max(12, int(width / (CHARACTER_PX * LABEL_SLACK * 0.95)))
    lines = textwrap.wrap(title, most) or [""]
    for narrower in range(most - 1, len(title) // len(lines), -1):
        evener = textwrap.wrap(title, narrower)
        if len(evener) > len(lines):
            break
        lines = evener
    return lines


def text(label: object, length: int = 60) -> str:
    """A label that any font can show: letters and digits of all scripts, ASCII, and – × · ≥ ≤ ±.

    One glyph that the font lacks turns the whole line into another typeface in static output.
    """
    clean = words.plain(str(label))
    shown = "".join(
        c if c.isascii() or c in _SYMBOLS or unicodedata.category(c)[0] in "LNM" else "?" for c in clean
    )
    return words.cut(shown, length)


def rows_of(chart: Chart, name: str) -> list[dict[str, Any]]:
    """Return a copy of a dataset's rows; no rows when it is not there."""
    return [dict(row) for row in chart.datasets.get(name, ())]


def known(values: Iterable[Any]) -> list[float]:
    """The finite numbers among values."""
    return [float(v) for v in values if v is not None and math.isfinite(v)]


@dataclass(frozen=True, slots=True)
class TimeUnit:
    """The unit of a chart's times, whose datasets are in ms."""

    name: str
    per_ms: float

    def convert(self, rows: list[dict[str, Any]], *columns: str) -> list[dict[str, Any]]:
        """The rows with the columns in this unit; values that are not finite become none."""
        for row in rows:
            for column in columns:
                if column in row:
                    value = row[column]
                    finite = value is not None and math.isfinite(value)
                    row[column] = value * self.per_ms if finite else None
        return rows


def time_unit(values_ms: Iterable[float | None]) -> TimeUnit:
    """One unit for a chart, by the median of its times."""
    chosen = numbers.scale("s", [None if v is None else v / 1000 for v in values_ms])
    return TimeUnit(chosen.name, 1e-3 / chosen.factor)


def log_axis(values: Iterable[Any], length: int, *, room: float = 1.12, padding: int = 0) -> Axis:
    """A log axis over the positive ones of the values, with ticks at 1, 2 and 5 or whole decades."""
    positive = [v for v in known(values) if v > 0]
    low, high = (min(positive) / room, max(positive) * room) if positive else (1.0, 10.0)
    if high / low < 3:
        middle = math.sqrt(high * low)
        low, high = middle / math.sqrt(3), middle * math.sqrt(3)
    return Axis(low, high, length, True, log_ticks(low, high, max(2, length // 34)), padding)


def log_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Round values inside the bounds, as dense as `most` allows; two at least where the bounds allow it."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    best: tuple[float, ...] = ()
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        ticks = tuple(_round(s * 10.0**d) for d in decades for s in steps if low <= s * 10.0**d <= high)
        if len(ticks) > most and len(best) >= 2:
            return best
        best = ticks
    return best


def _round(value: float) -> float:
    return float(f"{value:.6g}")


def linear_axis(values: Iterable[Any], length: int, *, padding: int = 0, headroom: float = 1.1) -> Axis:
    """An axis from zero that leaves headroom over the largest value."""
    top = max([0.0, *known(values)])
    high = top * headroom if top > 0 else 1.0
    step = _step(high, max(2, min(6, length // 34)))
    ticks = tuple(_round(i * step) for i in range(int(high / step) + 1))
    return Axis(0.0, high, length, False, ticks, padding)


def range_axis(values: Iterable[Any], length: int, *, room: float = 0.1) -> Axis:
    """An axis over the range of the values, which need not hold zero, with room at both ends."""
    inside = known(values) or [0.0]
    low, high = min(inside), max(inside)
    margin = room * (high - low or abs(high) or 1.0)
    low, high = low - margin, high + margin
    step = _step(high - low, max(2, min(6, length // 34)))
    first, last = math.ceil(low / step), math.floor(high / step)
    return Axis(low, high, length, False, tuple(_round(i * step) for i in range(first, last + 1)))


def _step(high: float, most: int) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that gives at most so many steps, and one at least."""
    power = 10.0 ** math.floor(math.log10(high / most))
    return next(s * power for s in (1, 2, 5, 10) if high / (s * power) < most + 0.9)


def level_ticks(levels: Iterable[float], axis: Axis) -> tuple[float, ...]:
    """The levels that were run as ticks, without those whose labels would touch; the largest stays."""
    ordered = sorted(set(levels))
    return apart(ordered, axis, [f"{level:,g}" for level in ordered])


def apart(ticks: Sequence[float], axis: Axis, labels: Sequence[str]) -> tuple[float, ...]:
    """The ticks whose labels do not touch, from the high end down."""
    kept: list[float] = []
    edge = math.inf
    for tick, label in sorted(zip(ticks, labels, strict=True), reverse=True):
        half = len(label) * CHARACTER_PX * LABEL_SLACK / 2
        # labels at the ends are shifted into the panel
        middle = min(max(axis.position(tick), half), axis.length - half)
        if middle + half + 4 <= edge:
            kept.append(tick)
            edge = middle - half
    return tuple(reversed(kept))


def channel(field: str, axis: Axis, title: str | None, title_px: float = 0, **options: Any) -> Spec:
    """A quantitative channel on an axis decided here; its title gets `title_px`, or the axis' length."""
    # Vega thins given ticks to tickCount on a log axis and drops labels that seem to overlap; ours are chosen
    drawn: Spec = {"values": list(axis.ticks), "tickCount": max(1, len(axis.ticks)), "labelOverlap": False}
    drawn |= {"title": title if title is None else wrapped(title, title_px or axis.length + 20), **options}
    return {"field": field, "type": "quantitative", "scale": axis.scale, "axis": drawn}


class Panel:
    """Layers over shared axes: the position of a mark is that of the panel unless it is given."""

    def __init__(self, x: Spec, y: Spec, ink: Spec | None = None) -> None:
        self.x = field(str(x["field"]), scale=x["scale"])
        self.y = field(str(y["field"]))
        self.ink = ink
        self.layers = [frame(x, y)]

    def add(self, rows: Sequence[Row], mark: Spec, **encoding: Spec | None) -> None:
        """Draw rows, if there are any; a channel that is none is left out, also `x` and `y`."""
        if rows:
            self.layers.append(layer(rows, mark, **({"x": self.x, "y": self.y} | encoding)))

    def spec(self, width: int, height: int) -> Spec:
        """Return the panel as a spec."""
        return {"width": width, "height": height, "layer": self.layers}


def layer(rows: Sequence[Row], mark: Spec | str, **encoding: Spec | None) -> Spec:
    """One layer with its own rows; a channel that is none is left out."""
    shown = {name: spec for name, spec in encoding.items() if spec is not None}
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": shown}


def words_at(rows: Sequence[Row], style: str = "note", **mark: Any) -> Spec:
    """Text of the column `label` at the pixels in `_x` and `_y`."""
    shown = {"type": "text", "style": style, **mark}
    return layer(rows, shown, x=pixel("_x"), y=pixel("_y"), text=field("label", "nominal"))


def words_over(rows: Sequence[Row], style: str = "note") -> list[Spec]:
    """Like `words_at`, on a halo of the page's colour, for words that lines may cross."""
    halo = words_at(rows, style, stroke=ink("page"), strokeWidth=3, strokeJoin="round", opacity=0.85)
    return [halo, words_at(rows, style)]


def limit_layers(rows: Sequence[Row], axis: Axis, column: str) -> list[Spec]:
    """Objectives as dotted lines over the whole width, named over their left end."""
    inside = [row for row in rows if row.get(column) is not None and axis.low <= row[column] <= axis.high]
    if not inside:
        return []
    named = [{"label": text(row["label"]), "_x": 0.0, "_y": axis.y(row[column]) - 7} for row in inside]
    line = layer(inside, REF_RULE, x={"value": 0}, x2={"value": "width"}, y=field(column))
    return [line, *words_over(named)]


def frame(x: Spec, y: Spec) -> Spec:
    """The layer that carries both axes and draws nothing, so that any other layer may be left out."""
    lines = len(y["axis"].get("title") or ())
    if lines > 1:  # the title stands over the panel and would grow down into it
        line = tokens.TYPE["axis"].size + 2
        y = {**y, "axis": {**y["axis"], "titleY": -6 - line * (lines - 1)}}
    return {"data": {"values": []}, "mark": "rule", "encoding": {"x": x, "y": y}}


def field(name: str, kind: str = "quantitative", **more: Any) -> Spec:
    """A channel bound to a column."""
    return {"field": name, "type": kind, **more}


def pixel(name: str) -> Spec:
    """A channel bound to a column of pixels."""
    return {"field": name, "type": "quantitative", "scale": None}


class Colours:
    """Slots of a chart's entities; those without a slot of their own are the rest, in grey.

    The domain holds a name for every slot, so that the config's palette, which the spec does not know,
    is met in order and never repeats.
    """

    def __init__(self, names: Iterable[str], entities: Mapping[str, int] | None, length: int) -> None:
        seen = list(dict.fromkeys(names))
        given = entities if entities is not None else {name: i for i, name in enumerate(seen, 1)}
        self.slots = {name: min(given.get(name, 7), 7) for name in seen}
        self.rest = [name for name, slot in self.slots.items() if slot == 7]
        self._shown = words.cut_names((text(name, 200) for name in seen), length)

    def label(self, name: str) -> str:
        """The name as the chart shows it."""
        return self._shown[text(name, 200)]

    def labels(self) -> list[str]:
        """The names that stand at the ends of lines; one alone needs none."""
        return (
            [self.label(name) for name in self.slots if name not in self.rest] if len(self.slots) > 1 else []
        )

    def paint(self, rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
        """Rows with the column `ink` that the colour channel reads."""
        for row in rows:
            name = row.get(column)
            row["ink"] = REST if self.slots.get(str(name), 7) == 7 else f"slot {self.slots[str(name)]}"
        return rows

    def channel(self) -> Spec:
        """The colour channel over `ink`, without a legend: lines are named at their ends."""
        domain = [*(f"slot {i}" for i in range(1, 7)), REST]
        return {"field": "ink", "type": "nominal", "legend": None, "scale": {"domain": domain}}

    def ends(self, rows: Iterable[Row], entity: str, column: str, along: str) -> list[dict[str, Any]]:
        """Return the last row along an axis of every entity that has a colour of its own, with its name."""
        ends: dict[str, dict[str, Any]] = {}
        for row in sorted(rows, key=lambda row: row[along]):
            name = str(row.get(entity))
            if row.get(entity) is not None and row.get(column) is not None and name not in self.rest:
                ends[name] = {**row, "label": self.label(name)}
        return list(ends.values())

    def note(self) -> tuple[str, ...]:
        """Caption text for the points left out."""
        return (f"{words.plural(len(self.rest), 'more series', 'more series')} in grey",) if self.rest else ()


def drop_zeros(rows: list[dict[str, Any]], at: str, *columns: str) -> tuple[list[dict[str, Any]], list[Any]]:
    """Rows for a log axis, and where the first column was zero or below (those rows are dropped).

    Other columns (interval ends) that are zero or below become none, which is an open end.
    """
    kept: list[dict[str, Any]] = []
    zeros: list[Any] = []
    for row in rows:
        value = row.get(columns[0])
        if value is not None and value <= 0:
            zeros.append(row.get(at))
            continue
        for column in columns[1:]:
            end = row.get(column)
            if end is not None and end <= 0:
                row[column] = None
        kept.append(row)
    return kept, zeros


def zero_note(zeros: Sequence[Any], what: str) -> tuple[str, ...]:
    """`0 at: users 5, 10`: said in the caption, because a log axis has no place for it."""
    if not zeros:
        return ()
    places = list(dict.fromkeys(f"{z:g}" if isinstance(z, int | float) else text(z) for z in zeros))
    shown = ", ".join(places[:8]) + (f" and {len(places) - 8} more" if len(places) > 8 else "")
    return (f"0 at: {what} {shown}".replace("  ", " "),)


OPEN_PX: Final = 36.0  # of the word `open` and a gap


def interval_layers(
    rows: Sequence[Row],
    x: Spec,
    axis: Axis,
    low: str,
    high: str,
    colour: Spec | None,
    along: Callable[[Row], float] | None = None,
) -> list[Spec]:
    """Return interval rules; an open end runs to the panel's edge, with an arrowhead and the word `open`.

    Args:
        rows: One for each interval.
        x: The horizontal channel.
        axis: The vertical axis.
        low: Column of the lower end.
        high: Column of the upper end.
        colour: The colour channel.
        along: Horizontal place of a row, px, where rows may be close: words that would overlap are left out.
    """
    drawn = [row for row in rows if row.get(low) is not None or row.get(high) is not None]
    ends = [with_ends(row, low, high, axis) for row in drawn]
    open_top = {"_edge": 4.0, "_at": 9.0, "_open": "open", "_turn": 0}
    open_bottom = open_top | {"_edge": axis.length - 4.0, "_at": axis.length - 7.0, "_turn": 180}
    arrows = []
    for row in drawn:
        arrows += [{**row, **open_top}] if row.get(high) is None else []
        arrows += [{**row, **open_bottom}] if row.get(low) is None else []
    rule: Spec = {"type": "rule", "style": "ci", "clip": True}
    layers = [layer(ends, rule, x=x, y=field("_low"), y2={"field": "_high"}, color=colour)]
    if arrows:
        layers.append(layer(arrows, ARROW_UP, x=x, y=pixel("_edge"), angle=pixel("_turn"), color=colour))
        worded = arrows if along is None else _with_room(arrows, along)
        layers.append(layer(worded, NOTE, x=x, y=pixel("_at"), text=field("_open", "nominal")))
    return layers


def _with_room(arrows: Sequence[Row], along: Callable[[Row], float]) -> list[Row]:
    """Return the arrows whose word does not reach the next arrow of the same edge."""
    return [
        row
        for row in arrows
        if not any(
            other["_turn"] == row["_turn"] and 0 < along(other) - along(row) < OPEN_PX for other in arrows
        )
    ]


def with_ends(row: Row, low: str, high: str, axis: Axis) -> dict[str, Any]:
    """Return a row with the ends of its interval in `_low` and `_high`; an open end is the axis' end."""
    bottom, top = row.get(low), row.get(high)
    return {**row, "_low": axis.low if bottom is None else bottom, "_high": axis.high if top is None else top}


def staggered(wanted: Sequence[float], length: float, apart: float = LINE_PX) -> list[float]:
    """Positions near the wanted ones (px), in their order, `apart` from each other and inside 0..length."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [0.0] * len(wanted)
    floor = -math.inf
    for i in order:
        placed[i] = max(wanted[i], floor)
        floor = placed[i] + apart
    ceiling = length
    for i in reversed(order):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - apart
    return placed


def end_labels(
    rows: Sequence[Row], axis: Axis, column: str, width: int, colour: Spec | None = None
) -> list[Spec]:
    """Names at the right edge, each at the height of its line's end, none touching another.

    Args:
        rows: One row a line: its last value in `column`, its name in `label`, `ink` where it has a colour.
        axis: The vertical axis.
        column: Which column holds the value.
        width: Of the panel, px.
        colour: The colour channel, for the stroke that repeats the line's colour next to its name.
    """
    shown = [row for row in rows if row.get(column) is not None]
    heights = staggered([axis.y(row[column]) for row in shown], axis.length)
    placed = [{**row, "_y": y, "_x": width + 8.0} for row, y in zip(shown, heights, strict=True)]
    layers = [words_at(placed, dx=8)]
    if colour is not None:
        layers.append(layer(placed, LINE_KEY, x=pixel("_x"), y=pixel("_y"), color=colour))
    return layers


def beside(x: float, width: float) -> str:
    """Style of a label at x: it starts there in the left half and ends there in the right half."""
    return "note" if x <= width / 2 else "noter"


def notes_at(
    rows: Sequence[Row], axis: Axis, column: str, rows_px: Sequence[float], *, inside: bool = False
) -> list[Spec]:
    """Labels at values of a horizontal axis, on as many rows of text as they need to stay apart.

    A label starts at its point in the left half and ends there in the right half; where that place is taken
    it tries the other side, then the next row.

    Args:
        rows: With the value in `column` and its text in `label`.
        axis: The horizontal axis.
        column: Which column holds the value.
        rows_px: Heights to use, from the top of the panel; the first that is free is taken.
        inside: The label belongs to what begins at the value, so it starts there wherever it fits.
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in rows_px]
    placed: dict[str, list[dict[str, Any]]] = {"note": [], "noter": []}
    for row in sorted(rows, key=lambda r: r[column]):
        label = text(row["label"])
        x = axis.position(row[column])
        wide = len(label) * CHARACTER_PX * LABEL_SLACK + 10
        spans = {"note": (x, x + wide), "noter": (x - wide, x)}
        fitting = [s for s, (a, b) in spans.items() if a >= -2 and b <= axis.length + 2] or [
            beside(x, axis.length)
        ]
        if not inside and x > axis.length / 2:
            fitting.reverse()
        places = [(line, style) for line in range(len(rows_px)) for style in fitting]
        free = (p for p in places if all(spans[p[1]][1] <= a or spans[p[1]][0] >= b for a, b in taken[p[0]]))
        line, style = next(free, places[-1])
        taken[line].append(spans[style])
        placed[style].append({"_x": x, "_y": float(rows_px[line]), "label": label})
    return [layer for style, words_ in placed.items() if words_ for layer in words_over(words_, style)]


FULL_HEIGHT: Spec = {"y": pixel("_top"), "y2": {"field": "_bottom"}}


def shade_layers(rows: Sequence[Row], x: Axis, height: int, *, named: bool = True) -> list[Spec]:
    """Grey stretches of time (warm-up, not read) with their words at the top."""
    drawn = [
        {
            **row,
            "t": max(row["t"], x.low),
            "t2": min(row["t2"], x.high),
            "_top": 0.0,
            "_bottom": float(height),
        }
        for row in rows
        if row["t"] < x.high and row["t2"] > x.low
    ]
    if not drawn:
        return []
    box = layer(drawn, SHADE, x=field("t", scale=x.scale), x2={"field": "t2"}, **FULL_HEIGHT)
    return [box, *(notes_at(drawn, x, "t", (8, 22), inside=True) if named else [])]


def event_layers(rows: Sequence[Row], x: Axis, height: int, *, named: bool = True) -> list[Spec]:
    """Rules at events with their words."""
    drawn = [{**row, "_top": 0.0, "_bottom": float(height)} for row in rows if x.low <= row["t"] <= x.high]
    if not drawn:
        return []
    rule = layer(drawn, MARK_RULE, x=field("t", scale=x.scale), **FULL_HEIGHT)
    return [rule, *(notes_at(drawn, x, "t", (8, 22, 36)) if named else [])]


def gaps(rows: Sequence[Row], column: str, *, longest: int = 3) -> list[dict[str, Any]]:
    """Stretches of more than `longest` readings in a row that were missed, as rows for `shade_layers`."""
    placed: list[dict[str, Any]] = []
    run: list[Row] = []
    for row in [*sorted(rows, key=lambda r: r["t"]), None]:
        if row is not None and row.get(column) is None:
            run.append(row)
            continue
        if len(run) > longest:
            end = row["t"] if row is not None else run[-1].get("t2", run[-1]["t"])
            placed.append({"t": run[0]["t"], "t2": end, "label": "not read"})
        run = []
    return placed


def measured_point(trials: object) -> Spec:
    """The mark of a measured value; hollow when all of it is from one trial."""
    return {"type": "point", "filled": False, "strokeWidth": 1.5} if trials == 1 else {"type": "point"}


def ink(name: str) -> str:
    """A token's light colour, for the few marks that no style can name."""
    return tokens.colours()[name].light
