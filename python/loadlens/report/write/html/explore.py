"""Charts that answer to the pointer, for those who ask: the script of Vega inside the page, and the specs.

The static pictures stay: nothing that a reader needs is behind a pointer. The specs run as syntax trees, so
the page's policy needs no `unsafe-eval`, and they can load nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache

from loadlens.model.report import Chart
from loadlens.present import charts

MOST_ROWS = 5000  # a chart with more stays static


@cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that sets `loadlensEmbed`; about 0.9 MB."""
    return charts.script_bundle("window.loadlensEmbed = vegaEmbed;")


def specs(figures: Iterable[tuple[str, Chart]]) -> str:
    """The specs by the id of their figure, as JSON that cannot end the element it stands in."""
    by_name = {name: charts.interactive_spec(chart) for name, chart in figures if _is_small(chart)}
    text = json.dumps(by_name, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _is_small(chart: Chart) -> bool:
    return charts.has_rows(chart) and sum(len(rows) for rows in chart.datasets.values()) <= MOST_ROWS
