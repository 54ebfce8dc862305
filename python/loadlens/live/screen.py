"""A place on stderr that is drawn in place and erased at the end."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from loadlens.present import terminal, words

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live


LABEL: Final = 7  # columns of "now    ", "note   "


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

    def draw_lines(self, lines: Iterable[str]) -> None:
        """Draw lines, wrapped at the width of the terminal, with the glyphs of states in their colours."""
        from rich.text import Text

        if self._live is None:
            return
        wrapped = terminal.fitted(lines, self._live.console.width - 1, indent=LABEL)
        text = Text("\n".join(wrapped), no_wrap=True, end="")
        for state, glyph in words.GLYPHS.items():
            text.highlight_regex(glyph, f"loadlens.{state}")
        self.draw(text)


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
