"""The live view of a search: what runs now, each level's rate, the provisional answer, the budget left."""

from __future__ import annotations

import textwrap
import time
from dataclasses import dataclass, field
from functools import partial

from loadlens.live.run_view import EIGHTHS, PER_SECOND, EventView, RunState, now_words
from loadlens.model.trial import TrialStatus
from loadlens.present import numbers, words
from loadlens.run import progress as events

WIDTH = 79
BAR_WIDTH = 30
MOST_LEVELS = 6  # of the levels so far, the last ones


@dataclass(slots=True)
class SearchState:
    """State of the search so far."""

    title: str
    budget_s: float
    began: float
    run: RunState = field(default_factory=RunState)
    trials: int = 0
    levels: dict[str, str] = field(default_factory=dict)  # case -> what it gave
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
            case events.TrialEnded() if event.throughput_rps is not None:
                rate = f"{numbers.value(event.throughput_rps, PER_SECOND)}/s"
                is_valid = event.status is TrialStatus.COMPLETE
                self.levels[event.planned.case.name] = rate if is_valid else event.status.value


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
        drawn.append(f"  trial {state.trials}   {words.plain(state.run.trial.planned.case.name)}")
    drawn.append(f"  now    {words.plain(now_words(state.run))}")
    if state.levels:
        shown = list(state.levels.items())[-MOST_LEVELS:]
        drawn.append("  so far " + "   ".join(f"{words.plain(name)} {gave}" for name, gave in shown))
    for text in state.discovered:
        drawn += _wrapped(text)
    if state.provisional:
        drawn += _wrapped(f"provisional: {state.provisional}")
    drawn += [f"  note   ▲ {words.plain(warning)}" for warning in state.run.warnings[-1:]]
    ending = "ending this trial in order; Ctrl-C again ends at once" if state.run.stopping else ""
    drawn.append(f"  {ending or 'Ctrl-C gives the answer so far'}")
    return drawn


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(words.plain(text), WIDTH, initial_indent="  ", subsequent_indent=" " * 9)
