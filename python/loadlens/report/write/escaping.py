"""Pieces of Markdown in which text from outside can do nothing: no markup, no link, no broken table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from loadlens.present import words
from loadlens.report.write.cells import CellView, TableView

# What CommonMark and GitHub's tables give a meaning; `<` and `&` also stop HTML, `@` and `#` stop mentions.
_MARKS = re.compile(r"([\\`*_{}\[\]<>()#+!|~@&$^=:-])")
_AT_START = re.compile(r"^(\d+)([.)])(?=\s|$)")
_ONLY_WHERE_NEEDED = frozenset("()+-=:^!{}")


def escaped(text: object) -> str:
    """Text as text. Marks that act only at the start of a line or before a bracket stay elsewhere."""
    clean = words.plain(str(text)).strip()
    shown = "".join(_escape(clean, i) for i in range(len(clean)))
    return _AT_START.sub(r"\1\\\2", shown)


def _escape(text: str, at: int) -> str:
    character = text[at]
    if not _MARKS.match(character):
        return character
    if character == "<":
        return "&lt;"
    if character == "&":
        return "&amp;"
    if character == "@":
        return "@\u2060" if at + 1 < len(text) and text[at + 1].isalnum() else "@"
    if character == ":":
        # an address written out becomes a link by itself
        return ":\u2060" if text[at + 1 : at + 3] == "//" else ":"
    if character == "_":
        inside = 0 < at < len(text) - 1 and text[at - 1].isalnum() and text[at + 1].isalnum()
        return "_" if inside else "\\_"
    if character in _ONLY_WHERE_NEEDED:
        starts = at == 0 and character in "+-=:"
        bang = character == "!" and text[at + 1 : at + 2] == "["
        return f"\\{character}" if starts or bang else character
    return f"\\{character}"


def code(text: str) -> str:
    """Text as code, whatever ticks it holds."""
    clean = words.plain(text).strip() or " "
    fence = "`" * (max((len(run) for run in re.findall(r"`+", clean)), default=0) + 1)
    space = " " if clean.startswith("`") or clean.endswith("`") else ""
    return f"{fence}{space}{clean}{space}{fence}"


def block(text: str) -> list[str]:
    """Lines as a code block, whatever fences they hold."""
    clean = words.plain_lines(text)
    fence = "`" * max(3, max((len(run) for run in re.findall(r"`+", clean)), default=0) + 1)
    return [fence, *clean.splitlines(), fence]


def cell(text: object) -> str:
    """Return the text of a cell: never empty, never broken by a bar."""
    return escaped(text) or "none"


def cell_text(view: CellView) -> str:
    """Return value and interval on one line; a value that is not used is struck out."""
    glyph = f"{words.GLYPHS[view.state]} " if view.state else ""
    value = f"~~{cell(view.text)}~~" if view.look == "invalid" else cell(view.text)
    if not view.second:
        return f"{glyph}{value}"
    is_reason = view.state or view.look in ("undecided", "not-measured")
    return f"{glyph}{value}: {escaped(view.second)}" if is_reason else f"{value} ({escaped(view.second)})"


def table(view: TableView) -> list[str]:
    """Return the lines of a table and its note, and an empty line after them."""
    rules = ["---:" if align == "right" else "---" for align in view.aligns]
    rows = [map(cell, view.heads), rules, *(map(cell_text, row) for row in view.rows)]
    note = [escaped(view.note), ""] if view.note else []
    return [*(f"| {' | '.join(row)} |" for row in rows), "", *note]


def folded(title: str, body: Sequence[str]) -> list[str]:
    """Return the lines of a fold."""
    return [f"<details><summary>{summary(title)}</summary>", "", *body, "</details>", ""]


def summary(text: str) -> str:
    """Return the summary of a fold, which is HTML and escaped as such."""
    return words.plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
