"""A place on stderr that is drawn in place and erased at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.live import Live


def opened() -> Live:
    """Return the place, ready to be drawn on; leaving it erases what was drawn."""
    from rich.console import Console
    from rich.live import Live
    from rich.theme import Theme

    from loadlens.looks import tokens

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
