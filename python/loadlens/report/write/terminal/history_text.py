"""The answer of `history` on a terminal: change points, then a line per metric and record."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from functools import partial
from typing import Final

from loadlens.model.comparison import History, Series
from loadlens.present import history_text, numbers, terminal, words
from loadlens.report.write.terminal.printing import cut_to_width, labelled, print_lines

NAME: Final = 20  # characters of a record's name


def print_history(answer: History, *, quiet: bool = False) -> None:
    """Print the answer on stdout; quietly only the first line and the change points."""
    width = terminal.width()
    head = len(textwrap.wrap(words.plain(answer.sentence), width))
    print_lines(list(history_lines(answer, quiet=quiet, width=width)), headings=range(head))


def history_lines(
    answer: History, *, quiet: bool = False, width: int = terminal.USUAL_WIDTH
) -> Iterator[str]:
    """Yield the lines of an answer."""
    yield from textwrap.wrap(words.plain(answer.sentence), width)
    rows = partial(labelled, width=width)
    shifts = [history_text.shift_in_words(each, shift) for each in answer.series for shift in each.shifts]
    yield from rows("changes", shifts)
    if quiet:
        return
    yield from rows("from", [answer.method])
    yield from rows("left out", answer.left_out)
    for each in answer.series:
        yield ""
        heading = f"{history_text.load(each)}: {history_text.metric(each)}"
        yield cut_to_width(words.plain(heading), width)
        if each.lacking:
            yield cut_to_width(f"  {history_text.lacking(each)}", width)
        yield from (cut_to_width(words.plain(line), width) for line in _points(each))


def _points(series: Series) -> Iterator[str]:
    widest = min(NAME, max(len(point.record) for point in series.points))
    changes = {shift.record: history_text.change(shift) for shift in series.shifts}
    for point in series.points:
        change = f"  change: {changes[point.record]}" if point.record in changes else ""
        shown = numbers.show(point.figure).with_interval
        name = words.cut(point.record, NAME)
        when, commit = history_text.began(point), history_text.commit(point)
        yield f"  {when}  {commit:<9}  {name:<{widest}}  {shown}{change}"
