"""The live view of a search: what runs now, what each level gave, how much of the budget is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

from loadlens.live import screen
from loadlens.live.run import EIGHTHS, FRAMES_PER_S, PER_SECOND, RunState, now_words
from loadlens.looks import numbers, words
from loadlens.model.trial import TrialStatus
from loadlens.run import progress as events

if TYPE_CHECKING:
    from rich.live import Live

BAR_WIDTH = 30
MOST_LEVELS = 6  # of the levels so far, the last ones


@dataclass(slots=True)
class SearchState:
    """What is known of the search so far."""

    title: str
    budget_s: float
    began: float
    run: RunState = field(default_factory=RunState)
    trials: int = 0
    levels: dict[str, str] = field(default_factory=dict)  # case -> what it gave

    def take(self, event: events.Event, at: float) -> None:
        """Learn from one event."""
        self.run.take(event, at)
        match event:
            case events.TrialStarted():
                self.trials += 1
            case events.TrialEnded() if event.throughput_rps is not None:
                rate = f"{numbers.value(event.throughput_rps, PER_SECOND)}/s"
                is_valid = event.status is TrialStatus.COMPLETE
                self.levels[event.planned.case.name] = rate if is_valid else event.status.value


class ExplainView:
    """Draws a search on the terminal; a `Progress`.

    Args:
        title: What is explained.
        budget_s: Seconds that the search may take.
        clock: Seconds; replaced in tests.
    """

    def __init__(self, title: str, budget_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._state = SearchState(title, budget_s, clock())
        self._live: Live | None = None
        self._drawn = 0.0

    def __enter__(self) -> ExplainView:
        self._live = screen.opened()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, fault, trace)
            self._live = None

    def tell(self, event: events.Event) -> None:
        """Take one event and draw, at most five times a second."""
        at = self._clock()
        self._state.take(event, at)
        frequent = isinstance(event, events.Load | events.Building)
        if self._live is None or (frequent and at - self._drawn < 1 / FRAMES_PER_S):
            return
        self._drawn = at
        from rich.text import Text

        width = self._live.console.width
        text = Text("\n".join(line[: width - 1] for line in lines(self._state, at)), no_wrap=True, end="")
        for state, glyph in words.GLYPHS.items():
            text.highlight_regex(glyph, f"loadlens.{state}")
        self._live.update(text, refresh=True)


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
    drawn += [f"  note   ▲ {words.plain(said)}" for said in state.run.warnings[-1:]]
    ending = "ending this trial in order; Ctrl-C again ends at once" if state.run.stopping else ""
    drawn.append(f"  {ending or 'Ctrl-C gives the answer so far'}")
    return drawn
