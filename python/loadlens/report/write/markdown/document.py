"""The Markdown report and the files next to it, from the same view as the page.

What would make the report long (cases beyond the cited ones) is in a file of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from loadlens.model.report import Chart, Report
from loadlens.present import charts, words
from loadlens.report.write import escaping
from loadlens.report.write.sections import view

MAIN = "report.md"
CASES = "cases.md"
PICTURES = "charts"
CASES_INLINE = 16  # reports with more cases have them in a file of their own


def page(report: Report) -> str:
    """Return `report.md`: at most about 300 lines for 36 cases, because `cases.md` has the others."""
    return _rendered(MAIN, report)


def files(report: Report) -> Mapping[str, str]:
    """Return every file by its name: the report, its pictures, and the cases where there are many."""
    texts = {MAIN: page(report)}
    if _is_apart(report):
        texts[CASES] = _rendered(CASES, report)
    drawn = filter(charts.has_rows, report.charts)
    return texts | {_picture_name(chart): charts.svg(chart) for chart in drawn}


def _is_apart(report: Report) -> bool:
    return len(report.details) > CASES_INLINE


def _rendered(name: str, report: Report) -> str:
    template = _environment().get_template(name)
    names = {"main": Markup(MAIN), "cases": Markup(CASES)}
    text = template.render(report=report, view=view(report), is_apart=_is_apart(report), **names)
    return text.rstrip() + "\n"


def _picture_name(chart: Chart) -> Markup:
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in chart.anchor)
    return Markup(f"{PICTURES}/{safe.strip('.-') or 'chart'}.svg")


@cache
def _environment() -> Environment:
    """Return the templates' environment; whatever they print is escaped unless it is Markdown already."""
    environment = Environment(
        loader=PackageLoader("loadlens.report.write.markdown", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: value if isinstance(value, Markup) else Markup(escaping.escaped(value)),
    )
    environment.globals |= {
        "words": words,
        "picture_name": _picture_name,
        "html": lambda text: Markup(escaping.summary(text)),
        "code": lambda text: Markup(escaping.code(text)),
        "block": lambda text: Markup("\n".join(escaping.block(text))),
        "cell": lambda view: Markup(escaping.cell_text(view)),
        "table": lambda view: Markup("\n".join(escaping.table(view)[:-1])),
    }
    return environment
