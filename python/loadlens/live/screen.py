"""A place on stderr that is drawn in place and erased at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from loadlens.present import numbers, terminal, words

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live


LABEL: Final = 7  # columns of "now    ", "note   "
NEAR_LIMIT: Final = 0.95  # busy share of a thread of the generator


WIDTH: Final = 79  # columns of a terminal of 80


class Size(NamedTuple):
    """Room for a picture."""

    columns: int = WIDTH
    rows: int = 23


class Place:
    """Drawing area of a live view inside a `with`; leaving it erases the drawing.

    Args:
        shown: Whether there is a terminal to draw on; without one nothing is drawn.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self._shown = shown
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._shown:
            self._live = _opened()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, fault, trace)
            self._live = None

    @property
    def console(self) -> Console | None:
        """The terminal; `None` outside the `with`, and without a terminal."""
        return None if self._live is None else self._live.console

    def draw(self, picture: RenderableType) -> None:
        """Put a picture in the place of the one before."""
        if self._live is not None:
            self._live.update(picture, refresh=True)

    @property
    def size(self) -> Size:
        """Room on the terminal: a column is left free, so that no line wraps, and a row for the cursor."""
        if self._live is None:
            return Size()
        return Size(self._live.console.width - 1, self._live.console.height - 1)

    def draw_lines(self, lines: Iterable[str]) -> None:
        """Draw lines, wrapped at the width of the terminal, with the glyphs of states in their colours."""
        from rich.text import Text

        if self._live is None:
            return
        wrapped = terminal.fitted(lines, self.size.columns, indent=LABEL)
        text = Text("\n".join(wrapped), no_wrap=True, end="")
        for state, glyph in words.GLYPHS.items():
            text.highlight_regex(glyph, f"loadlens.{state}")
        self.draw(text)


def sparkline(values: Sequence[float | None], *, from_zero: bool = False) -> str:
    """Bars of equal width, scaled to the largest; a dot where nothing was measured."""
    drawn = [value for value in values if value is not None]
    if not drawn:
        return "·" * len(values)
    top = max(drawn)
    bottom = 0.0 if from_zero else min(drawn) / 2
    span = top - bottom
    return "".join(
        "·"
        if value is None
        else words.BLOCKS[round((len(words.BLOCKS) - 1) * (value - bottom) / span) if span > 0 else 0]
        for value in values
    )


def health(busy: float, late_s: float | None) -> str:
    """Return whether the generator keeps up, with its busiest thread and its lateness.

    Args:
        busy: Share of time of the busiest thread.
        late_s: 99th percentile of lateness; none: nothing was due.
    """
    late = "" if late_s is None else f", late {numbers.with_unit(late_s, 's')} at p99"
    verdict = "▲ generator is near its limit" if busy >= NEAR_LIMIT else "● generator keeps up"
    return f"{verdict}: busy {100 * busy:.0f} %{late}"


def stacked(
    above: Iterable[str], middle: Callable[[int], Sequence[str]], below: Iterable[str], size: Size
) -> list[str]:
    """Return lines above and below, wrapped, and between them what fits into the rows that are left.

    Args:
        above: First lines.
        middle: Lines for a number of rows.
        below: Last lines; where there is too little room for all, the first lines stay.
        size: Of the terminal.
    """
    first, last = (list(terminal.fitted(lines, size.columns, indent=LABEL)) for lines in (above, below))
    return [*first, *middle(max(0, size.rows - len(first) - len(last))), *last][: size.rows]


def in_one_row(line: str, size: Size) -> str:
    """Return a line without what is too long for a row."""
    return line if len(line) <= size.columns else f"{line[: size.columns - 2]}.."


def _opened() -> Live:
    from rich.console import Console
    from rich.live import Live
    from rich.theme import Theme

    from loadlens.present import tokens

    console = Console(stderr=True, theme=Theme(tokens.rich_styles()), highlight=False)
    live = Live(
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    live.__enter__()
    return live
