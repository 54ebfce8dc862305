"""Static charts as markup: drawn light, made small, recoloured by the page's rules.

This is the only place from which markup reaches the page unescaped. It comes from vl-convert, whose SVG
escapes the text that it draws; a drawing that holds more than shapes and text is refused here all the same.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

from markupsafe import Markup

from loadlens.model.report import Chart
from loadlens.present import charts

CSV_ROWS = 3000  # beyond that the rows stay in the record


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart as the page shows it."""

    wide: Markup
    narrow: Markup | None  # for screens too narrow for the wide one
    csv: str | None  # a data: address


def picture(chart: Chart, name: str, *, narrow: bool = True, width: int = charts.WIDTH_PX) -> Picture:
    """Draw a chart.

    Args:
        chart: Of the report.
        name: Unique on the page; names inside the drawing are made unique with it.
        narrow: Also draw it for narrow screens.
        width: Of the wide drawing in px.
    """
    rows = sum(len(rows) for rows in chart.datasets.values())
    return Picture(
        wide=inline(charts.svg(chart, width=width), f"{name}-w"),
        narrow=inline(charts.svg(chart, width=charts.NARROW_PX), f"{name}-n") if narrow else None,
        csv=_address(charts.as_csv(chart)) if rows <= CSV_ROWS else None,
    )


def _address(text: str) -> str:
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(text.encode()).decode()


def inline(svg: str, name: str) -> Markup:
    """SVG for the inside of a page: names of its parts made unique, its own accessibility tree removed.

    The figure around it is the image for a screen reader, with a text of its own.
    """
    if re.search(r"<(script|foreignObject|image|a)\b|\bon\w+\s*=|href\s*=", _without_text(svg)):
        raise ValueError(f"picture {name!r}: a drawing may hold shapes and text only")
    body = svg[svg.index("<svg") :]
    body = re.sub(r'\s(?:aria-[\w-]+|role|xmlns(?::\w+)?|version)="[^"]*"', "", body)
    body = re.sub(r'\bid="([^"]+)"', lambda m: f'id="{name}-{m[1]}"', body)
    body = re.sub(r"url\(#([^)]+)\)", lambda m: f"url(#{name}-{m[1]})", body)
    body = re.sub(r'\sfont-family="[^"]*"', "", body)  # the page's own stack
    body = re.sub(r'\sclass="[^"]*"', "", body)
    body = re.sub(r'\s(?:d|transform|x|y|width|height)="[^"]*"', _shorter, body)
    body = body.replace("<svg", '<svg aria-hidden="true" focusable="false"', 1)
    return Markup(body)


def _shorter(attribute: re.Match[str]) -> str:
    """Geometry in hundredths of a pixel."""
    return re.sub(r"(\d+\.\d{2})\d+", r"\1", attribute[0])


def _without_text(svg: str) -> str:
    """The drawing without what stands in its text elements and attribute values: its structure."""
    return re.sub(r'"[^"]*"', '""', re.sub(r"(<text[^>]*>)[^<]*", r"\1", svg))
