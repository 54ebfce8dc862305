"""The part of each trial that figures are taken from (`report.window`)."""

from __future__ import annotations

from loadlens.model.counters import Counters, GeneratorCounters, StreamCounters
from loadlens.model.study import Edge, Window

CLOSE_S = 1e-6
WHOLE = Window()


def narrowed(counters: Counters, window: Window) -> Counters:
    """The rows without those of the measured part that do not lie in the window as a whole."""
    measured = [row for row in counters.intervals if row.phase == "measure"]
    if window == WHOLE or not measured:
        return counters
    first, last = window.of(min(row.start_s for row in measured), max(row.end_s for row in measured))

    def is_kept(row: StreamCounters | GeneratorCounters) -> bool:
        is_inside = row.start_s >= first - CLOSE_S and row.end_s <= last + CLOSE_S
        return row.phase != "measure" or is_inside

    return Counters(
        tuple(row for row in counters.streams if is_kept(row)),
        tuple(row for row in counters.generator if is_kept(row)),
    )


def in_words(window: Window) -> str:
    """`from 25 % to 35 s of each measured part`."""
    begin = "the beginning" if window.begin is None else _place(window.begin)
    end = "the end" if window.end is None else _place(window.end)
    return f"from {begin} to {end} of each measured part"


def _place(edge: Edge) -> str:
    return f"{100 * edge.share:g} %" if edge.share is not None else f"{edge.seconds:g} s"
