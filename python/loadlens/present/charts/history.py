"""One metric of many records in the order of time, with its change points."""

from __future__ import annotations

from itertools import pairwise

from loadlens.model.comparison import Series
from loadlens.model.finding import Estimate
from loadlens.present import history_text, numbers
from loadlens.present.charts import parts
from loadlens.present.charts.parts import Axis, Panel, Spec

HEIGHT = 180


def history(series: Series, width: int) -> Spec | None:
    """Return the picture of a series as a spec with neither theme nor schema; none: there is nothing to draw.

    The axis need not begin at zero. A line is the mean between two change points.
    """
    measured = [(i, p, p.figure) for i, p in enumerate(series.points, 1) if isinstance(p.figure, Estimate)]
    if not measured:
        return None
    on = numbers.scale(series.unit, [figure.point for _, _, figure in measured])
    rows = [
        {
            "n": number,
            "value": figure.point / on.factor,
            "low": None if figure.low is None else figure.low / on.factor,
            "high": None if figure.high is None else figure.high / on.factor,
        }
        for number, _, figure in measured
    ]
    width = parts.plot_width(width)
    y = parts.range_axis((row[end] for row in rows for end in ("value", "low", "high")), HEIGHT)
    last = len(series.points)
    numbered = parts.linear_axis([last], width, headroom=1.0).ticks
    x = Axis(0.5, last + 0.5, width, ticks=tuple(tick for tick in numbered if tick >= 1 and tick % 1 == 0))
    title = f"{history_text.metric(series)}, {on.name}"
    panel = Panel(
        parts.channel("n", x, "record, in the order of time"),
        parts.channel("value", y, title, title_px=width, grid=False),
    )
    firsts = {point.record: number for number, point, _ in measured}
    panel.layers += parts.event_layers(
        [
            {"t": firsts[shift.record] - 0.5, "label": shift.commit[:8] or shift.record}
            for shift in series.shifts
        ],
        x,
        HEIGHT,
    )
    begins = [0.5, *(firsts[shift.record] - 0.5 for shift in series.shifts), last + 0.5]
    means = [series.shifts[0].before, *(shift.after for shift in series.shifts)] if series.shifts else []
    panel.add(
        [
            {"n": begin, "end": end, "value": mean / on.factor}
            for (begin, end), mean in zip(pairwise(begins), means, strict=False)
        ],
        {"type": "rule", "style": "model"},
        x2={"field": "end"},
    )
    spans = [row for row in rows if row["low"] is not None or row["high"] is not None]
    panel.layers += parts.interval_layers(
        spans, panel.x, y, "low", "high", None, lambda row: x.position(row["n"])
    )
    panel.add(rows, {"type": "point"})
    return panel.spec(width, HEIGHT)
