"""Pieces of Markdown in which text from outside can do nothing: no markup, no link, no broken table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from loadlens.present import words
from loadlens.present.numbers import Shown

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
    """A cell of a table: never empty, never broken by a bar."""
    return escaped(text) or "none"


def table(heads: Sequence[str], aligns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table of cells that were already made safe, and an empty line after it."""
    rules = ["---:" if align == "right" else "---" for align in aligns]
    lines = [_row(heads), _row(rules)]
    lines += [_row(row) for row in rows]
    return [*lines, ""]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def figure(shown: Shown) -> str:
    """A figure in a cell: value, unit and interval, or the state with its reason."""
    return cell(shown.with_interval)


def folded(summary: str, body: Sequence[str], *, is_open: bool = False) -> list[str]:
    """A fold; the summary is HTML, so it is escaped as such."""
    clean = words.plain(summary).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    opened = " open" if is_open else ""
    return [f"<details{opened}><summary>{clean}</summary>", "", *body, "</details>", ""]
