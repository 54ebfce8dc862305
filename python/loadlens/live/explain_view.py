"""The display of a search: what runs now, each level's rate, the provisional answer, the budget left.

On a terminal a view that is drawn in place; elsewhere lines, one at least every ten seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TextIO

from loadlens.live.run_view import EIGHTHS, PER_SECOND, EventView, RunState, now_words
from loadlens.model.study import Case
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Closed
from loadlens.present import numbers, words
from loadlens.run import progress as events

BAR_WIDTH = 30
MOST_LEVELS = 6  # of the levels so far, the last ones
LINE_EVERY_S: Final = 9.0  # off a terminal; events come some ten times per second


@dataclass(slots=True)
class SearchState:
    """State of the search so far."""

    title: str
    budget_s: float
    began: float
    run: RunState = field(default_factory=RunState)
    trials: int = 0
    levels: dict[str, str] = field(default_factory=dict)  # name of a level -> its rate
    discovered: list[str] = field(default_factory=list)
    provisional: str = ""

    def take(self, event: events.Event, at: float) -> None:
        """Learn from one event."""
        self.run.take(event, at)
        match event:
            case events.TrialStarted():
                self.trials += 1
            case events.Found(text):
                self.discovered.append(text)
            case events.Provisional(text):
                self.provisional = text
            case events.TrialEnded() if event.throughput_rps is not None and _is_level(event.planned.case):
                rate = f"{numbers.value(event.throughput_rps, PER_SECOND)}/s"
                is_valid = event.status is TrialStatus.COMPLETE
                self.levels[step_name(event.planned.case)] = rate if is_valid else event.status.value


def explain_view(title: str, budget_s: float) -> EventView:
    """The view of a search that may take some seconds."""
    state = SearchState(title, budget_s, time.monotonic())
    return EventView(state.take, partial(lines, state), time.monotonic)


def lines(state: SearchState, at: float) -> list[str]:
    """The picture of one moment.

    Args:
        state: What is known.
        at: Seconds on the clock of its beginning.
    """
    used = max(0.0, at - state.began)
    eighths = round(min(1.0, used / state.budget_s) * BAR_WIDTH * 8)
    bar = "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
    drawn = [
        words.plain(state.title),
        f"{used:.0f} of {state.budget_s:.0f} s ▕{bar:<{BAR_WIDTH}}▏",
    ]
    if state.run.trial is not None:
        drawn.append(f"  trial {state.trials}: {step_name(state.run.trial.planned.case)}")
    drawn.append(f"  now    {words.plain(now_words(state.run))}")
    if state.levels:
        shown = list(state.levels.items())[-MOST_LEVELS:]
        drawn.append(f"  so far {' · '.join(f'{name} {rate}' for name, rate in shown)}")
    drawn += [f"  {words.plain(text)}" for text in state.discovered]
    if state.provisional:
        drawn.append(f"  provisional: {words.plain(state.provisional)}")
    drawn += [f"  note   ▲ {words.plain(warning)}" for warning in state.run.warnings[-1:]]
    ending = "ending this trial in order; Ctrl-C again ends at once" if state.run.stopping else ""
    drawn.append(f"  {ending or 'Ctrl-C gives the answer so far'}")
    return drawn


class SearchPrinter:
    """Prints the lines of a search, and what runs now when none came for some seconds; a `Progress`.

    Args:
        budget_s: Of the search.
        out: Where to print; stderr by default.
        clock: Seconds.
    """

    def __init__(
        self, budget_s: float, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._printer = events.PlainPrinter(out)
        self._state = SearchState("", budget_s, clock())
        self._clock = clock
        self._printed = clock()

    def tell(self, event: events.Event) -> None:
        """Print the line of an event; of a load that runs, one line every few seconds."""
        at = self._clock()
        self._state.take(event, at)
        line = _ended_line(event) if isinstance(event, events.TrialEnded) else events.line_of(event)
        if line is None and at - self._printed >= LINE_EVERY_S and self._state.run.trial is not None:
            used = f"{at - self._state.began:.0f} of {self._state.budget_s:.0f} s"
            name = step_name(self._state.run.trial.planned.case)
            line = f"{used}: {name}: {words.plain(now_words(self._state.run))}"
        if line is not None:
            self._printer.print_line(line)
            self._printed = at


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


def _is_level(case: Case) -> bool:
    return case.purpose == "load"
