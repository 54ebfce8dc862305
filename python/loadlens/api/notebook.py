"""Results in a notebook: headline, picture, table; and a chart as an object of its own."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

from loadlens import named_pipes
from loadlens.errors import RecordError, UsageError, reason_of
from loadlens.model.report import Chart
from loadlens.present import numbers, words
from loadlens.report.write.result import Result

MOST_ROWS: Final = 30
CELL: Final = 'style="text-align:left"'


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A drawing of a result, which follows the light or dark theme of where it is shown."""

    title: str
    svg: Callable[[], str]
    chart: Chart | None = None  # with its rows; none: drawn without Vega-Lite

    def spec(self) -> dict[str, Any]:
        """Return the chart for Vega-Lite, its rows included.

        Raises:
            UsageError: It was drawn without Vega-Lite.
        """
        from loadlens.present import charts

        if self.chart is None:
            raise UsageError("this picture has no spec", where="spec()", hint="svg()")
        return charts.spec(self.chart, titled=True)

    def save(self, path: str | Path) -> None:
        """Write the drawing to a file.

        Raises:
            RecordError: It cannot be written.
        """
        try:
            named_pipes.write(Path(path), self.svg())
        except OSError as fault:
            raise RecordError(f"cannot write {path}: {reason_of(fault)}") from None

    def __repr__(self) -> str:
        return f"<Picture: {self.title}>"

    def _repr_html_(self) -> str:
        return image(self.svg(), self.title)


def picture_of(chart: Chart) -> Picture:
    """Return a chart of a report as a picture."""

    def svg() -> str:
        from loadlens.present import charts

        return charts.standalone_svg(charts.spec(chart))

    return Picture(chart.headline, svg, chart)


def image(svg: str, title: str) -> str:
    """Return a drawing as an image, so that its rules reach nothing else on the page."""
    content = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{_text(title)}" src="data:image/svg+xml;base64,{content}">'


def html(result: Result, pictures: Sequence[Picture]) -> str:
    """Return a result for a notebook; without the packages of the lab there is no picture."""
    from loadlens.cli.lab import is_installed

    head, *others = result.lines
    parts = [f"<p><b>{_text(head)}</b><br>{_text(result.title)}</p>"]
    if pictures and is_installed():
        parts.append(pictures[0]._repr_html_())
    if others:
        parts.append("<ul>" + "".join(f"<li>{_text(line)}</li>" for line in others) + "</ul>")
    parts.append(_table(result))
    return f'<div class="loadlens">{"".join(parts)}</div>'


def _table(result: Result) -> str:
    rows = [row for row in result.rows if row.label and row.figure is not None]
    if not rows:
        return ""
    cells = [("", "value", "95 % interval")]
    for row in rows[:MOST_ROWS]:
        shown = numbers.show(row.figure) if row.figure is not None else None
        name = " · ".join(part for part in (row.case, row.step, row.label) if part)
        if shown is not None:
            cells.append((name, shown.short, shown.interval))
    if len(rows) > MOST_ROWS:
        cells.append((f"and {len(rows) - MOST_ROWS} more in .figures", "", ""))
    lines = ("<tr>" + "".join(f"<td {CELL}>{_text(cell)}</td>" for cell in row) + "</tr>" for row in cells)
    return f"<table>{''.join(lines)}</table>"


def _text(text: str) -> str:
    return escape(words.plain(text))
