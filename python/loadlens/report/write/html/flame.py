"""The flame graph as boxes of the page: places in percent of its width, colours by the change of a share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loadlens.model.report import Flame, FlameBar
from loadlens.present import numbers

ROW_PX: Final = 18
MUCH, SOME = 0.25, 0.05  # change of a share


@dataclass(frozen=True, slots=True)
class Box:
    """A bar, placed."""

    name: str
    look: str  # classes
    style: str
    title: str


@dataclass(frozen=True, slots=True)
class FlameView:
    """The whole graph."""

    boxes: tuple[Box, ...]
    height_px: int
    caption: str


def flame_view(flame: Flame) -> FlameView:
    """Return the boxes of a flame graph."""
    caption = (
        f"{flame.samples:,} samples at {flame.load} of threads at work, and of others on a CPU. Each box is "
        "a function, below the one that called it; its width is its share of the samples. Bold: the "
        "service's own code. Italic: what the thread does there."
    )
    if flame.light:
        more, less = (f"{word} than at {flame.light}" for word in ("a larger share", "a smaller one"))
        caption += f" Orange: {more}; blue: {less}, by 5 points or by 25."
    return FlameView(
        tuple(_box(bar) for bar in flame.bars),
        ROW_PX * (1 + max(bar.depth for bar in flame.bars)),
        caption,
    )


def _box(bar: FlameBar) -> Box:
    look = ["own"] if bar.is_own else [] if bar.place else ["state"]
    if bar.change is not None and abs(bar.change) >= SOME:
        look.append(("more" if bar.change > 0 else "less") + ("-much" if abs(bar.change) >= MUCH else ""))
    title = f"{bar.name} {bar.place}".rstrip()
    title += f": {numbers.with_unit(bar.width, 'share')}, {bar.samples:,} samples"
    if bar.change is not None:
        title += f"; {100 * bar.change:+.0f} points"
    style = f"left:{100 * bar.begin:.3f}%;width:{100 * bar.width:.3f}%;top:{ROW_PX * bar.depth}px"
    return Box(bar.name, " ".join(look), style, title)
