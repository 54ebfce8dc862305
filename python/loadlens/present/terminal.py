"""The terminal at a stream: its width, and if it shows colours.

`NO_COLOR` (any value) switches colours off, `FORCE_COLOR` (any value but 0) on where there is no terminal,
as in logs of CI; `TERM=dumb` has neither colours nor a cursor to move. https://no-color.org, force-color.org
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final, TextIO

USUAL_WIDTH: Final = 80
LEAST_WIDTH, MOST_WIDTH = 60, 120


def width() -> int:
    """Return the columns for text on stdout: those of the terminal from 60 to 120, elsewhere 80."""
    if not sys.stdout.isatty():
        return USUAL_WIDTH
    return min(max(shutil.get_terminal_size((USUAL_WIDTH, 24)).columns, LEAST_WIDTH), MOST_WIDTH)


def fitted(lines: Iterable[str], width: int, *, indent: int = 2) -> Iterator[str]:
    """Return lines of which each that is too long goes on below, further in by `indent`."""
    for line in lines:
        inside = " " * (len(line) - len(line.lstrip()) + indent)
        yield from textwrap.wrap(line, width, subsequent_indent=inside) if len(line) > width else [line]


def has_colour(stream: TextIO | None = None) -> bool:
    """Return true if colours are wanted on a stream; `None` means stdout."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return (sys.stdout if stream is None else stream).isatty() and not is_dumb()


def can_draw(stream: TextIO) -> bool:
    """Return true if a picture can be drawn in place on a stream."""
    return stream.isatty() and not is_dumb()


def is_dumb() -> bool:
    """Return true if the terminal says that it has neither colours nor a cursor to move."""
    return os.environ.get("TERM") == "dumb"
