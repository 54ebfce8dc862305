"""Lines on stdout: wrapped, coloured on a terminal, plain elsewhere, ASCII where the locale has no UTF-8."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from loadlens.present import terminal, words

LABEL = 11  # columns of "because", "not" ...

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


def labelled(label: str, parts: Iterable[str], *, width: int, indent: str = "") -> Iterator[str]:
    """Return parts under one label, each wrapped."""
    for part in filter(None, parts):
        for line in textwrap.wrap(words.plain(part), width - len(indent) - LABEL) or [""]:
            yield f"{indent}{label:<{LABEL}}{line}".replace(words.NO_BREAK, " ")
            label = ""


def cut_to_width(text: str, width: int) -> str:
    """Return a line that fits, cut at its end."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def as_ascii(text: str) -> str:
    """Return the same text for a terminal without UTF-8."""
    return text.translate(str.maketrans(_ASCII)).encode("ascii", "replace").decode()


def print_lines(lines: Sequence[str], *, headings: Sequence[int] = ()) -> None:
    """Print lines on stdout; glyphs are coloured and headings bold where stdout shows colours.

    Args:
        lines: Final text without control characters.
        headings: Numbers of the lines that are set in bold.
    """
    text = "\n".join(lines)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = as_ascii(text)
    if not terminal.has_colour():
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
    # Rich has no colours for TERM=dumb; where they are asked for, those that every terminal has are sent.
    system: Literal["auto", "standard"] = "standard" if terminal.is_dumb() else "auto"
    Console(
        theme=Theme(tokens.rich_styles()), highlight=False, force_terminal=True, color_system=system
    ).print(styled, soft_wrap=True)
