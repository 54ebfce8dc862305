"""Charts: one function a kind, rows in, Vega-Lite out. The only importer of vl-convert, lazily.

`columns` is the contract of the datasets. A spec names styles and holds no theme; the config of `tokens` is
added here. What a chart leaves out (zeros on a log axis, series beyond six) it returns as notes for the
caption.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from loadlens.model.report import Chart
from loadlens.model.study import ChartKind
from loadlens.present import tokens, words
from loadlens.present.charts import chart_tables, columns, comparison, load_curves, parts, tails, timeline
from loadlens.present.charts.parts import CHARACTER_PX, LABEL_SLACK, Drawing

has_rows = columns.has_rows
table = chart_tables.table

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH_PX = 720  # of the picture, labels included
HALF_PX = parts.HALF_PX
NARROW_PX = 330

_Draw = Callable[[Chart, int], Drawing]
_DRAWN_BY: Mapping[ChartKind, _Draw] = {
    "load_curve": load_curves.load_curve,
    "quantiles": tails.quantiles,
    "heat": timeline.heat,
    "resources": timeline.resources,
    "density": tails.density,
    "published": comparison.published,
    "bystander": load_curves.bystander,
    "demand": comparison.demand,
    "comparison": comparison.comparison,
    "predicted": comparison.predicted,
}


def draw(chart: Chart, *, width: int = WIDTH_PX) -> Drawing:
    """The spec of a chart, without config, and what its caption must add.

    Raises:
        ValueError: A dataset, a column or an option that the kind does not know, or no rows.
    """
    faults = columns.faults(chart) or ([] if has_rows(chart) else ["no rows to draw"])
    if faults:
        raise ValueError(f"chart {chart.anchor!r}: {'; '.join(faults)}")
    return _DRAWN_BY[chart.kind](chart, width)


def spec(
    chart: Chart, theme: tokens.Theme = "light", *, width: int = WIDTH_PX, titled: bool = False
) -> dict[str, Any]:
    """The whole Vega-Lite spec, config included.

    Args:
        chart: Datasets and options.
        theme: Static charts in a page are drawn light and recoloured by CSS.
        width: Of the picture in px, with room for the labels outside the panel.
        titled: Put the headline into the picture, for an image that leaves the page.
    """
    drawing = draw(chart, width=width)
    full: dict[str, Any] = {"$schema": SCHEMA, "config": tokens.vega_config(theme), **drawing.spec}
    # labels outside the panel are measured with narrower fonts than a browser has
    left, right = _slack(chart, parts.name_length(width))
    full["padding"] = {"left": 8 + left, "top": 4, "bottom": 4, "right": 4 + right}
    if titled:
        full["title"] = {"text": _wrapped(chart.headline, width), "subtitle": _wrapped(chart.caption, width)}
    return full


_LEFT: Mapping[ChartKind, tuple[str, ...]] = {
    "published": ("case",),
    "demand": ("case",),
    "comparison": ("case",),
    "predicted": ("case",),
}
_RIGHT: Mapping[ChartKind, tuple[str, ...]] = {
    "load_curve": ("series",),
    "quantiles": ("label", "metric"),  # a curve without a label of its own ends in its metric's name
    "resources": ("process",),
    "bystander": ("level",),
    "published": ("shape",),
}


def _slack(chart: Chart, length: int) -> tuple[int, int]:
    """Pixels to keep free left and right of the longest labels outside the panel."""

    def room(columns: tuple[str, ...]) -> int:
        names = {str(row.get(c) or "") for rows in chart.datasets.values() for row in rows for c in columns}
        longest = max((len(words.cut(name, length)) for name in names), default=0)
        return round(longest * CHARACTER_PX * (LABEL_SLACK - 1))

    legend = 26 if chart.kind == "heat" else 12 if chart.kind == "demand" else 0
    return room(_LEFT.get(chart.kind, ())), room(_RIGHT.get(chart.kind, ())) + legend


def _wrapped(sentence: str, width: int) -> list[str]:
    return parts.wrapped(parts.text(sentence, 400), width)


def svg(chart: Chart, theme: tokens.Theme = "light", *, width: int = WIDTH_PX) -> str:
    """A static picture in exact tokens, so that CSS can recolour it; the same rows give the same text."""
    return _drawn(json.dumps(spec(chart, theme, width=width)))


def themed_svg(spec: Mapping[str, Any]) -> str:
    """A picture of a spec that has neither config nor schema, for a page that recolours it."""
    edge = {"left": 8, "top": 4, "bottom": 4, "right": 12}
    full = {"$schema": SCHEMA, "config": tokens.vega_config("light"), **spec, "padding": edge}
    return standalone_svg(full)


def standalone_svg(spec: Mapping[str, Any]) -> str:
    """A picture in light colours that brings the rules by which a browser recolours it on a dark page."""
    drawn = _drawn(json.dumps(spec))
    light, dark = tokens.css_variables("light"), tokens.css_variables("dark")
    themes = f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
    head, end, rest = drawn.partition(">")
    return f"{head}{end}<style>{themes}{tokens.css_chart_rules('svg')}</style>{rest}\n"


@lru_cache(maxsize=64)  # the page and its Markdown twin show the same pictures
def _drawn(content: str) -> str:
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(content)
    # Vega numbers the parts of its drawings through the life of the process
    numbers = {
        name: f"clip{i}" for i, name in enumerate(dict.fromkeys(re.findall(r'id="(clip\d+)"', svg)), 1)
    }
    svg = re.sub(r'id="(clip\d+)"', lambda m: f'id="{numbers[m[1]]}"', svg)
    return re.sub(r"url\(#(clip\d+)\)", lambda m: f"url(#{numbers[m[1]]})", svg)


def interactive_spec(chart: Chart) -> dict[str, Any]:
    """The spec for a page that has the script: what a mark encodes shows at the pointer."""
    full = spec(chart)
    full["config"]["mark"]["tooltip"] = True
    full["config"]["background"] = "transparent"  # the page's own, in either theme
    return full


def script_bundle(snippet: str) -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that ends with the snippet."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(snippet)
    return bundle


def caption(chart: Chart) -> str:
    """Return the caption of the report with what the drawing left out."""
    return " · ".join(part for part in (chart.caption, *draw(chart).notes) if part)


def as_csv(chart: Chart) -> str:
    """Every row of every dataset with full precision, the dataset's name in the first column.

    A text that a spreadsheet would read as a formula gets an apostrophe before it.
    """
    names = list(dict.fromkeys(name for rows in chart.datasets.values() for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["dataset", *names])
    for dataset, rows in chart.datasets.items():
        for row in rows:
            writer.writerow([dataset, *(csv_cell(row.get(name)) for name in names)])
    return out.getvalue()


def csv_cell(value: object) -> object:
    """A cell that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    if isinstance(value, str):
        clean = words.plain(value)
        return f"'{clean}" if clean.lstrip()[:1] in ("=", "+", "-", "@") and clean else clean
    return value
