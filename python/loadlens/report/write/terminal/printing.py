"""How lines reach stdout: coloured on a terminal, plain elsewhere, ASCII where the locale knows no UTF-8."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from loadlens.present import words

_ASCII: dict[str, str | int | None] = {
    **{glyph: words.ASCII_GLYPHS[state] for state, glyph in words.GLYPHS.items()},
    **dict(zip(words.BLOCKS, words.ASCII_BLOCKS, strict=True)),
    "·": "-",
    "–": "-",
    "×": "x",
    "µ": "u",
    "…": "~",
    "→": "->",
    "≥": ">=",
    "△": "^",
    "▨": "#",
}


def as_ascii(text: str) -> str:
    """The same text for a terminal that knows no UTF-8."""
    return text.translate(str.maketrans(_ASCII)).encode("ascii", "replace").decode()


def print_lines(lines: Sequence[str], *, headings: Sequence[int] = ()) -> None:
    """Print lines on stdout; glyphs are coloured and headings bold when that is a terminal.

    Args:
        lines: Final text without control characters.
        headings: Numbers of the lines that are set in bold.
    """
    text = "\n".join(lines)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = as_ascii(text)
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        print(text)
        return
    from rich.console import Console
    from rich.text import Text
    from rich.theme import Theme

    from loadlens.present import tokens

    styled = Text(text)
    for state, glyph in words.GLYPHS.items():
        styled.highlight_regex(glyph, f"loadlens.{state}")
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for number in headings:
        styled.stylize("bold", starts[number], starts[number + 1])
    Console(theme=Theme(tokens.rich_styles()), highlight=False).print(styled, soft_wrap=True)
