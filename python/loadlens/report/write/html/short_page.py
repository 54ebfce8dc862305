"""The frame of a page for one answer: its first line, pictures, a table; nothing is loaded or run."""

from __future__ import annotations

from html import escape
from typing import Final

from loadlens.present import tokens, words

RULES: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;"
    "background:var(--page);color:var(--ink)}h1{font-size:1.3rem}"
    # What is wider than a small screen scrolls by itself, so that words stay readable and the page in place.
    "table{border-collapse:collapse;display:block;overflow-x:auto}"
    "figure{margin:1rem 0;overflow-x:auto}svg{min-width:34rem}"
    "td,th{padding:.2rem .7rem;text-align:right;vertical-align:top}"
    "td:first-child,td:last-child,th:first-child{text-align:left}"
    "svg{width:100%;height:auto;font:13px system-ui,sans-serif}svg text{fill:currentColor}"
    ".pair{stroke:currentColor;opacity:.55}.rule{stroke:currentColor;opacity:.35}"
    ".margin{fill:currentColor;opacity:.1}.effect{stroke:currentColor;stroke-width:3}"
)


def short_page(title: str, heading: str, body: str) -> str:
    """Return a whole page.

    Args:
        title: Of the window, as markup.
        heading: The answer, as markup.
        body: What is below it, as markup.
    """
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{themes()}{RULES}</style></head><body><h1>{heading}</h1>{body}</body></html>\n"
    )


def themes() -> str:
    """Return the colours of the page in light and in dark."""
    light, dark = tokens.css_variables("light"), tokens.css_variables("dark")
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"


def text(content: str) -> str:
    """Return text as markup that shows it."""
    return escape(words.plain(content))
