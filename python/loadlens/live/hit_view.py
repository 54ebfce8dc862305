"""The live view of one load: some twelve lines drawn in place on stderr, erased before the summary.

`frame` is a pure function of what the engine said; `HitView` only remembers seconds and draws.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loadlens.live.screen import Place, health, sparkline
from loadlens.present import numbers, words
from loadlens.present.numbers import Scale

if TYPE_CHECKING:
    from rich.text import Text

COLUMNS = 20  # seconds in the small histories
BINS_PER_DECADE = 8  # of the heat strip
STRIP_DECADES = 5
STRIP_ROWS = 3
PER_SECOND = numbers.scale("1/s")

LINE_EVERY_S = 10.0  # without a terminal

Progress = Mapping[str, Any]


class HitView(Place):
    """Draws progress in place; shows nothing when `shown` is false.

    Args:
        title: One line that names the load.
        shown: Whether there is a terminal to draw on.
        has_lines: Without a terminal, print a line every ten seconds.
    """

    def __init__(self, title: str, *, shown: bool, has_lines: bool = False) -> None:
        super().__init__(shown=shown)
        self._has_lines = has_lines and not shown
        self._next_line_s = LINE_EVERY_S
        self._title = title
        self._seconds: deque[Mapping[str, Any]] = deque(maxlen=COLUMNS)
        self._last_second = -1

    def caution(self, words_: str) -> None:
        """Print one caution about the load, above the live view."""
        line = f"{words.GLYPHS['caution']} {words.plain(words_)}"
        if self.console is None:
            encoding = sys.stderr.encoding or "ascii"
            print(line.encode(encoding, "replace").decode(encoding), file=sys.stderr)
        else:
            self.console.print(line, highlight=False, markup=False)

    def update(self, progress: Progress) -> None:
        """Take one snapshot and draw it."""
        if not progress["streams"]:
            return
        if self._has_lines and progress["elapsed_s"] >= self._next_line_s:
            self._next_line_s += LINE_EVERY_S
            print(progress_line(progress), file=sys.stderr, flush=True)
        if self.console is None:
            return
        second = int(progress["elapsed_s"])
        if second != self._last_second:
            self._last_second = second
            self._seconds.append(progress["streams"][0]["last"])
        self.draw(frame(self._title, progress, tuple(self._seconds), self.console.width))


def progress_line(progress: Progress) -> str:
    """Return one moment as a line: time, rate, p99 and errors so far."""
    so_far = progress["streams"][0]["so_far"]
    errors = so_far["failed"] + so_far["unexpected_status"] + so_far["check_failed"]
    p99 = "" if so_far["p99_s"] is None else f", p99 {numbers.with_unit(so_far['p99_s'], 's')}"
    total = f" of {progress['total_s']:.0f}" if progress["total_s"] else ""
    rate = numbers.value(so_far["rps"], PER_SECOND)
    return f"{progress['elapsed_s']:.0f}{total} s: {rate} requests/s{p99}, errors {numbers.count(errors)}"


def frame(title: str, progress: Progress, seconds: tuple[Mapping[str, Any], ...], width: int) -> Text:
    """Return the picture of one moment.

    Args:
        title: What runs.
        progress: The engine's snapshot (docs/reference/engine-api.md).
        seconds: The `last` blocks of the latest whole seconds, oldest first.
        width: Columns of the terminal.
    """
    from rich.text import Text

    stream, own = progress["streams"][0], progress["generator"]
    last, so_far = stream["last"], stream["so_far"]
    scale = numbers.scale("s", [last["p50_s"], so_far["p50_s"]])

    def line(name: str, now: str, all_: str, note: str = "") -> str:
        return f"  {name:<18}{now:>12}{all_:>12}   {note}".rstrip()

    def times(key: str) -> list[float | None]:
        return [second[key] for second in seconds]

    def in_unit(value: float | None) -> str:
        return "not yet" if value is None else numbers.value(value, scale)

    def rate(value: float) -> str:
        return numbers.value(value, PER_SECOND)

    bad = [key for key in ("unexpected_status", "check_failed") if so_far[key]]
    is_good = not bad and not so_far["failed"]
    lines = [
        _heading(title, progress, width),
        f" {'preliminary':<19}{'last 1 s':>12}{'so far':>12}   each column 1 s",
        line(
            "successes/s",
            rate(last["rps"]),
            rate(so_far["rps"]),
            sparkline([second["rps"] for second in seconds], from_zero=True),
        ),
        line(
            f"p50  {scale.name}", in_unit(last["p50_s"]), in_unit(so_far["p50_s"]), sparkline(times("p50_s"))
        ),
        line(
            f"p99  {scale.name}", in_unit(last["p99_s"]), in_unit(so_far["p99_s"]), sparkline(times("p99_s"))
        ),
        *(line(key.replace("_", " "), numbers.count(last[key]), numbers.count(so_far[key])) for key in bad),
        line(
            "failed",
            numbers.count(last["failed"]),
            numbers.count(so_far["failed"]),
            "no failures yet" if is_good else "",
        ),
        line("in flight", numbers.count(stream["in_flight"]), ""),
        *_strip(seconds, scale),
        f" {health(own['busy'] or 0.0, own['lag_p99_s'])}   Ctrl-C stops and reports",
    ]
    text = Text("\n".join(entry[:width] for entry in lines), no_wrap=True, end="")
    text.highlight_regex(r"(?m)^ ●", "loadlens.ok")
    text.highlight_regex(r"(?m)^ ▲", "loadlens.caution")
    return text


def _heading(title: str, progress: Progress, width: int) -> str:
    total, elapsed = progress["total_s"], progress["elapsed_s"]
    if total:
        share = min(1.0, elapsed / total)
        done = f"{elapsed:.0f} of {total:.0f} s ▕{'█' * round(18 * share):<18}▏"
    else:
        done = f"{elapsed:.0f} s"
    if progress["phase"] in ("warmup", "drain", "starting"):
        done = (
            f"{ {'warmup': 'warm-up', 'drain': 'last answers'}.get(progress['phase'], 'starting') } · {done}"
        )
    room = width - len(done) - 2
    return f"{words.cut(words.plain(title), max(8, room)):<{max(0, room)}}  {done}"


def _strip(seconds: tuple[Mapping[str, Any], ...], scale: Scale) -> list[str]:
    """The last seconds as densities on one log axis: a second hump or a stall shows as a band."""
    uppers = [upper for second in seconds for upper, count in second["histogram"] if count]
    low = math.floor(math.log10(min(uppers))) if uppers else -4
    low = min(low, 1 - STRIP_DECADES + (math.ceil(math.log10(max(uppers))) if uppers else 1))
    decades = (10.0 ** (low + decade) / scale.factor for decade in range(STRIP_DECADES))
    marks = "".join(f"{mark:<{BINS_PER_DECADE}g}" for mark in decades)
    rows = [f"  {scale.name + ' (log)':<12}{marks}"]
    for age in range(STRIP_ROWS):
        name = "now" if age == 0 else f"-{age} s"
        bins = [0] * (BINS_PER_DECADE * STRIP_DECADES)
        if age < len(seconds):
            for upper, count in seconds[-1 - age]["histogram"]:
                place = int((math.log10(upper) - low) * BINS_PER_DECADE) if upper > 0 else 0
                bins[min(max(place, 0), len(bins) - 1)] += count
        top = max(bins)
        drawn = "".join("·" if not n else words.BLOCKS[min(7, math.ceil(7 * n / top))] for n in bins)
        rows.append(f"   {name:<11}{drawn}")
    return rows
