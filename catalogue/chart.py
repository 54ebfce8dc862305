"""The picture of the page: the main shares of a score with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from catalogue.cases import Share
from loadlens.present import tokens
from loadlens.present.charts import SCHEMA, parts, standalone_svg

WIDTH_PX: Final = 680
ROW_PX: Final = 26
NAMES_PX: Final = 280


def svg(shares: Sequence[tuple[str, Share]]) -> str:
    """A picture with one line per share: the value as a dot, its 95 % interval as a bar."""
    return standalone_svg(spec(shares))


def spec(shares: Sequence[tuple[str, Share]]) -> dict[str, Any]:
    """The picture as a Vega-Lite specification; shares of nothing are left out."""
    rows = [
        {
            "name": f"{name}: {share.part} of {share.whole}",
            "value": 100 * share.part / share.whole,
            "low": 100 * share.interval[0],
            "high": 100 * share.interval[1],
        }
        for name, share in shares
        if share.whole
    ]
    ticks = tuple(range(0, 101, 20))
    axis = parts.Axis(0.0, 100.0, WIDTH_PX - NAMES_PX, ticks=ticks, padding=6)
    names: dict[str, Any] = {"field": "name", "type": "nominal", "sort": [row["name"] for row in rows]}
    named = {**names, "axis": {"title": None, "grid": True, "labelLimit": NAMES_PX, "minExtent": NAMES_PX}}
    spot = parts.field("value", scale=axis.scale)
    ends = {"x": parts.field("low", scale=axis.scale), "x2": {"field": "high"}}
    percent = parts.channel("value", axis, None, labelExpr="datum.label+' %'")
    return {
        "$schema": SCHEMA,
        "config": tokens.vega_config("light"),
        "width": axis.length,
        "height": ROW_PX * len(rows),
        "padding": 8,
        "layer": [
            parts.layer(rows, {"type": "rule", "opacity": 0}, y=named, x=percent),
            parts.layer(rows, {"type": "rule", "style": "ci"}, y=names, **ends),
            parts.layer(rows, {"type": "point"}, y=names, x=spot),
        ],
    }
