"""The part of each trial that figures are taken from (`report.window`)."""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.measure.source import Json
from loadlens.model.study import Edge, Window

CLOSE_S = 1e-6
WHOLE = Window()


def narrowed(counters: Sequence[Json], window: Window) -> list[Json]:
    """The rows without those of the measured part that do not lie in the window as a whole."""
    if window == WHOLE:
        return list(counters)
    measured = [row for row in counters if row["phase"] == "measure"]
    if not measured:
        return list(counters)
    begin = min(float(row["start_s"]) for row in measured)
    end = max(_end(row) for row in measured)
    first, last = window.of(begin, end)
    return [
        row
        for row in counters
        if row["phase"] != "measure" or (row["start_s"] >= first - CLOSE_S and _end(row) <= last + CLOSE_S)
    ]


def _end(row: Json) -> float:
    return float(row["start_s"]) + float(row["length_s"])


def in_words(window: Window) -> str:
    """`from 25 % to 35 s of each measured part`."""
    begin = "the beginning" if window.begin is None else _place(window.begin)
    end = "the end" if window.end is None else _place(window.end)
    return f"from {begin} to {end} of each measured part"


def _place(edge: Edge) -> str:
    return f"{100 * edge.share:g} %" if edge.share is not None else f"{edge.seconds:g} s"
