"""The chart of the page: each generator's CPU per request as a multiple of the peer's, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benches.cost import Row
from benches.works import Work, title
from loadlens.present import tokens
from loadlens.present.charts import SCHEMA, parts, standalone_svg

WIDTH_PX, ROW_PX, NAMES_PX = 640, 17, 90
OURS, LIMIT = "loadlens", "floor"
SLOTS = [
    "ours",
    "-2",
    "limit",
    "-4",
    "-5",
    "-6",
    "others",
]  # the house's palette: blue, green, and grey for the rest


def svg(rows: Sequence[Row], works: Sequence[Work]) -> str:
    """A picture that is read on light and on dark pages alike."""
    return standalone_svg(spec(rows, works))


def spec(rows: Sequence[Row], works: Sequence[Work]) -> dict[str, Any]:
    """One panel for each piece of work, all on one axis."""
    shown = [row for row in rows if row.to_peer is not None]
    ends = [
        end for row in shown if row.to_peer for end in (row.to_peer.low, row.to_peer.high, row.to_peer.value)
    ]
    axis = parts.log_axis((end for end in ends if end is not None), WIDTH_PX - NAMES_PX, padding=8)
    panels = []
    for work in works:
        mine = [row for row in shown if row.work == work.name]
        if mine:
            panels.append(_panel(work, mine, axis))
    return {
        "$schema": SCHEMA,
        "config": tokens.vega_config("light"),
        "vconcat": panels,
        "spacing": 14,
        "padding": 8,
    }


def _panel(work: Work, rows: Sequence[Row], axis: parts.Axis) -> dict[str, Any]:
    ordered = sorted(rows, key=lambda row: row.to_peer.value if row.to_peer else 0.0)
    points = [_point(row) for row in ordered]
    names = [point["name"] for point in points]
    by_name: dict[str, Any] = {"field": "name", "type": "nominal", "sort": names}
    named = {**by_name, "axis": {"title": None, "grid": True, "labelLimit": NAMES_PX, "minExtent": NAMES_PX}}
    x = parts.channel("value", axis, None, labelExpr="datum.label+'×'")
    whole = [point for point in points if point["low"] is not None]
    peer: dict[str, Any] = {"type": "rule", "style": "ref"}
    colour = parts.field("kind", "nominal", legend=None, scale={"domain": SLOTS})
    spot = parts.field("value", scale=axis.scale)
    return {
        "width": axis.length,
        "height": ROW_PX * len(names),
        "title": f"{title(work)}, CPU per request × {work.peer}",
        "layer": [
            parts.layer(points, {"type": "rule", "opacity": 0}, y=named, x=x),
            parts.layer([{"value": 1.0}], peer, x=spot),
            parts.layer(
                whole,
                {"type": "rule", "style": "ci"},
                y=by_name,
                x=parts.field("low", scale=axis.scale),
                x2={"field": "high"},
                color=colour,
            ),
            parts.layer(points, {"type": "point"}, y=by_name, x=spot, color=colour),
        ],
    }


def _point(row: Row) -> dict[str, Any]:
    assert row.to_peer is not None
    kind = "ours" if row.generator == OURS else "limit" if row.generator == LIMIT else "others"
    low, high = row.to_peer.low, row.to_peer.high
    return {"name": row.generator, "value": row.to_peer.value, "low": low, "high": high, "kind": kind}
