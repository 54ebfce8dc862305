"""The display of a search: the load that runs, the levels so far, the provisional answer, the budget left.

On a terminal the first screen of its page within 80 x 24, drawn in place; elsewhere lines, one at least every
ten seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TextIO

from loadlens.live.followed import Followed
from loadlens.live.run_view import (
    EIGHTHS,
    EventView,
    LinePrinter,
    RunState,
    cases_lines,
    progress_words,
    seconds_lines,
)
from loadlens.live.screen import Size, in_one_row, stacked
from loadlens.model.study import Case
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Closed
from loadlens.present import words
from loadlens.run import progress as events

BAR_WIDTH = 30
MOST_DISCOVERED = 2


@dataclass(slots=True)
class SearchState:
    """State of the search so far."""

    title: str
    budget_s: float
    began: float
    run: RunState = field(default_factory=RunState)
    discovered: list[str] = field(default_factory=list)
    provisional: str = ""

    def take(self, event: events.Event, at: float) -> None:
        """Learn from one event."""
        self.run.take(event, at)
        match event:
            case events.Found(text):
                self.discovered.append(text)
            case events.Provisional(text):
                self.provisional = text


def explain_view(title: str, budget_s: float, record: Path) -> EventView:
    """The view of a search that may take some seconds."""
    state, followed = SearchState(title, budget_s, time.monotonic()), Followed(record)
    return EventView(followed, state.take, partial(lines, state, followed), time.monotonic)


def lines(state: SearchState, followed: Followed, at: float, size: Size) -> list[str]:
    """The picture of one moment.

    Args:
        state: What is known from events.
        followed: What is known from the record.
        at: Seconds on the clock of its beginning.
        size: Of the terminal.
    """
    used = max(0.0, at - state.began)
    eighths = round(min(1.0, used / state.budget_s) * BAR_WIDTH * 8)
    bar = "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
    drawn = [
        words.plain(state.title),
        f"{used:.0f} of {state.budget_s:.0f} s ▕{bar:<{BAR_WIDTH}}▏",
    ]
    now = words.plain(progress_words(state.run, followed))
    trial = state.run.trial
    drawn.append(f"  now    {now if trial is None else f'{step_name(trial.planned.case)}: {now}'}")
    drawn += seconds_lines(followed, size)
    below = [in_one_row(f"  {words.plain(text)}", size) for text in state.discovered[-MOST_DISCOVERED:]]
    if state.provisional:
        below.append(f"  so far {words.plain(state.provisional)}")
    below += [in_one_row(f"  note   ▲ {words.plain(text)}", size) for text in state.run.warnings[-1:]]
    ending = "ending this trial in order; Ctrl-C again ends at once" if state.run.stopping else ""
    below.append(f"  {ending or 'Ctrl-C gives the answer so far'}")
    return stacked(drawn, partial(cases_lines, followed, size), below, size)


def search_printer(
    budget_s: float,
    record: Path,
    out: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> LinePrinter:
    """Lines of a search, for logs."""
    state, began = RunState(), clock()

    def place(at: float) -> str:
        trial = "" if state.trial is None else step_name(state.trial.planned.case)
        return f"{at - began:.0f} of {budget_s:.0f} s: {trial}"

    return LinePrinter(Followed(record), state, place, _line_of, out=out, clock=clock)


def _line_of(event: events.Event) -> str | None:
    return _ended_line(event) if isinstance(event, events.TrialEnded) else events.line_of(event)


def _ended_line(event: events.TrialEnded) -> str | None:
    """Return why a level does not count; none for one that does: a provisional line follows it."""
    if event.status is TrialStatus.COMPLETE:
        return None
    reasons = f" ({words.plain('; '.join(event.reasons))})" if event.reasons else ""
    return f"{step_name(event.planned.case)}: {event.status.value}{reasons}"


def step_name(case: Case) -> str:
    """Return the name of a step of a search: its users, or its purpose."""
    if case.purpose == "look":
        return "single requests"
    users = words.users(case.workload.users) if isinstance(case.workload, Closed) else case.name
    if case.purpose == "rate":
        return case.name.rpartition("=")[2]
    also = {"dense": ", frequent probes", "stacks": ", sampling stacks"}.get(case.purpose, "")
    return words.plain(f"{users}{also}")
