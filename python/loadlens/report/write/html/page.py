"""Assembles the page: templates, style, script and the policy that allows exactly that script.

Everything that the page shows comes from the Report. Text from outside is made plain and escaped at one
place, the environment below; only what `pictures` draws is put in as markup.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from loadlens.model.report import Report
from loadlens.present import charts, tokens, words
from loadlens.report.write.html import explore as interactive
from loadlens.report.write.html import pictures
from loadlens.report.write.html.flame import flame_view
from loadlens.report.write.sections import view

_HERE = "loadlens.report.write.html"


def page(report: Report, *, explore: bool = False) -> str:
    """The whole page as one string of HTML.

    Args:
        report: What to show.
        explore: Put the script of Vega into the page (0.9 MB), so that charts can answer to the pointer.

    Raises:
        ValueError: A chart of the report has columns or options that its kind does not know.
    """
    script = _file("page.js")
    shown = view(report)
    bundle = interactive.bundle() if explore else ""
    explored = interactive.specs((figure.id, figure.chart) for figure in shown.figures) if explore else ""
    return (
        _environment()
        .get_template("page.html")
        .render(
            report=report,
            view=shown,
            policy=_policy(script, bundle),
            bundle=Markup(bundle),
            specs=Markup(explored),
            style=Markup(_style(report.record_digest)),
            script=Markup(script),
        )
    )


def _policy(*scripts: str) -> str:
    """Content-Security-Policy: nothing is loaded from anywhere, and no script runs but these."""
    digests = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts if s)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"script-src {allowed}"
    )


def _style(digest: str) -> str:
    """Tokens of both themes, then the page's rules.

    The dark values stand twice, once for the reader's system and once for the toggle: a media query and a
    selector cannot share one block.
    """
    light, dark = tokens.css_variables("light"), tokens.css_variables("dark")
    by_system = f":root:not([data-theme=light]){{color-scheme:dark;{dark}}}"
    return (
        f":root{{color-scheme:light;{light}{tokens.css_type()}}}"
        f"@media screen and (prefers-color-scheme:dark){{{by_system}}}"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}"
        f"{tokens.css_chart_rules('.picture svg')}{_file('page.css')}{_foot(digest)}"
    )


def _foot(digest: str) -> str:
    """Return the rules for the foot of every sheet of paper: the record that the page is made from."""
    safe = "".join(c for c in digest if c.isascii() and c.isalnum())[:16]
    record = f'@bottom-left{{content:"record {safe}";font:8pt sans-serif}}' if safe else ""
    pages = '@bottom-right{content:counter(page) " of " counter(pages);font:8pt sans-serif}'
    return f"@media print{{@page{{{record}{pages}}}}}"


@cache
def _file(name: str) -> str:
    return resources.files(_HERE).joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_HERE, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_final,
    )
    environment.globals |= {
        "picture": pictures.picture,
        "flame_view": flame_view,
        "words": words,
        "charts": charts,
    }
    return environment


def _final(value: object) -> object:
    """Return text without characters that could reorder or hide it; escaping comes after."""
    return words.plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value
