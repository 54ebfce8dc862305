"""The live view of a study, drawn in place on stderr: the first screen of its page within 80 x 24.

`RunState` takes the run's events, `lines` is a pure function of it and of the record; `EventView` only draws.
Off a terminal there are lines, one at least every ten seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TextIO

from loadlens.live import first_screen
from loadlens.live.followed import Followed
from loadlens.live.screen import Place, Size, in_one_row, stacked
from loadlens.model.trial import TrialStatus
from loadlens.present import numbers, words
from loadlens.run import progress as events
from loadlens.run.time_left import Remaining

BAR_WIDTH = 44
SHORTEST_NAME: Final = 16  # of a case, before the block is left out
FRAMES_PER_S = 5
EIGHTHS = " ▏▎▍▌▋▊▉"
PER_SECOND = numbers.scale("1/s")
PHASES: Final = {"warmup": "warm-up, ", "drain": "last answers, ", "starting": "starting, "}
LINE_EVERY_S: Final = 9.0  # off a terminal; events come some ten times per second


@dataclass(slots=True)
class RunState:
    """State of the run so far."""

    started: events.RunStarted | None = None
    trial: events.TrialStarted | None = None
    remaining: Remaining | None = None
    remaining_at: float = 0.0  # when it was said
    now: str = "preparing"
    load: dict[str, Any] | None = None
    valid: int = 0
    invalid: int = 0
    last_fault: str = ""
    warnings: list[str] = field(default_factory=list)
    stopping: bool = False
    builds_began: float | None = None

    def take(self, event: events.Event, at: float) -> None:
        """Learn from one event."""
        match event:
            case events.Building(line):
                self.builds_began = at if self.builds_began is None else self.builds_began
                self.now = f"building for {events.in_short(at - self.builds_began)}: {line}"
            case events.RunStarted():
                self.started, self.valid = event, event.done
            case events.TrialStarted():
                self.trial, self.load, self.now = event, None, "starting"
                self.remaining, self.remaining_at = event.remaining, at
            case events.Step(said):
                self.now, self.load = said, None
            case events.Load(progress):
                self.load = dict(progress)
            case events.TrialEnded():
                self._count(event)
                self.remaining, self.remaining_at = event.remaining, at
            case events.Prediction(case, said):
                self.now, self.load = f"predicted {case}: {said}", None
            case events.Warned(said):
                self.warnings.append(said)
            case events.Stopping():
                self.stopping = True
            case events.RunEnded():
                self.now = "done"

    def _count(self, event: events.TrialEnded) -> None:
        self.load = None
        if event.status is TrialStatus.COMPLETE:
            self.valid += 1
            return
        self.invalid += 1
        again = ", will be repeated" if event.will_repeat else ""
        self.last_fault = f"{event.status.value}{again}: {'; '.join(event.reasons)}"


class EventView(Place):
    """Draws the events of a run, at most five times per second; a `Progress`.

    Args:
        followed: The record of the run.
        take: Learns from one event that came at a time.
        lines: The picture of what is known at a time, for a terminal of a size.
        clock: Seconds, as both want them.
    """

    def __init__(
        self,
        followed: Followed,
        take: Callable[[events.Event, float], None],
        lines: Callable[[float, Size], list[str]],
        clock: Callable[[], float],
    ) -> None:
        super().__init__()
        self._followed, self._take, self._lines, self._clock = followed, take, lines, clock
        self._drawn = 0.0

    def tell(self, event: events.Event) -> None:
        """Take one event and draw."""
        at = self._clock()
        self._take(event, at)
        self._followed.look(at, is_loading=isinstance(event, events.Load))
        frequent = isinstance(event, events.Load | events.Building)
        if frequent and at - self._drawn < 1 / FRAMES_PER_S:
            return
        self._drawn = at
        self.draw_lines(self._lines(at, self.size))


def run_view(record: Path) -> EventView:
    """The view of a run; its clock is seconds since the epoch, unless the clock is set meanwhile."""
    state, ahead_s, followed = RunState(), time.time() - time.monotonic(), Followed(record)
    drawn = partial(lines, state, followed)
    return EventView(followed, state.take, drawn, lambda: ahead_s + time.monotonic())


def lines(state: RunState, followed: Followed, at: float, size: Size) -> list[str]:
    """The picture of one moment.

    Args:
        state: What is known from events.
        followed: What is known from the record.
        at: Seconds since the epoch.
        size: Of the terminal.
    """
    if state.started is None:
        return [words.plain(state.now)]
    drawn = [f"{state.started.study}: {words.plain(state.started.question)}"]
    if state.trial is not None and state.remaining is not None:
        drawn += [_trial_line(state, at, size.columns), _bar_line(state, at, size.columns)]
    drawn.append(f"  now    {words.plain(progress_words(state, followed))}")
    drawn += seconds_lines(followed, size)
    ending = "ending this trial in order; Ctrl-C again ends at once" if state.stopping else "stop: Ctrl-C"
    record = f"  record {state.started.path}   {ending}, go on: loadlens run ... --resume"
    below = [
        f"  done   {_done(state)}",
        *(in_one_row(f"  note   ▲ {words.plain(warning)}", size) for warning in state.warnings[-1:]),
        record if len(record) <= size.columns else f"  record {state.started.path}   {ending}",
    ]
    return stacked(drawn, partial(cases_lines, followed, size), below, size)


def seconds_lines(followed: Followed, size: Size) -> list[str]:
    """Return load, generator and service in the last seconds of a running load, as the page shows them."""
    recent = followed.recent
    if recent is None:
        return []
    load = first_screen.load_lines(recent, size.columns)
    return [*load, *first_screen.service_lines(recent.service, size.columns)]


def cases_lines(followed: Followed, size: Size, rows: int) -> list[str]:
    """Return the levels of a search, or else the cases of a study, as far as there is room."""
    run = followed.run
    if run is None:
        return []
    if levels := run.levels():
        return first_screen.level_lines(levels, run.cells, rows, size.columns)
    names = {cell.case: run.name_of(cell.case) for cell in run.cells}
    return first_screen.grid_lines(run.cells, names, rows, size.columns)


class LinePrinter:
    """Prints the lines of a run, and the load that runs when none came for some seconds; a `Progress`.

    Args:
        followed: The record of the run.
        state: Learns from the events.
        place: What runs, before the words on its load.
        line_of: Line of an event; none: it has none.
        out: Where to print; stderr by default.
        clock: Seconds.
    """

    def __init__(
        self,
        followed: Followed,
        state: RunState,
        place: Callable[[float], str],
        line_of: Callable[[events.Event], str | None] = events.line_of,
        *,
        out: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._printer = events.PlainPrinter(out)
        self._followed, self._state, self._place, self._line_of = followed, state, place, line_of
        self._clock = clock
        self._printed = clock()

    def tell(self, event: events.Event) -> None:
        """Print the line of an event; of a load that runs, one line every few seconds."""
        at = self._clock()
        self._state.take(event, at)
        self._followed.look(at, is_loading=isinstance(event, events.Load))
        line = self._line_of(event)
        if line is None and at - self._printed >= LINE_EVERY_S and self._state.trial is not None:
            parts = [self._place(at), progress_words(self._state, self._followed)]
            recent = self._followed.recent
            parts += [] if recent is None else [first_screen.in_one_line(recent)]
            line = words.plain(": ".join(parts))
        if line is not None:
            self._printer.print_line(line)
            self._printed = at


def run_printer(record: Path, out: TextIO | None = None) -> LinePrinter:
    """Lines of a run, for logs."""
    state = RunState()

    def place(_at: float) -> str:
        trial = state.trial
        return "" if trial is None else f"{trial.number}/{trial.trials} {trial.planned.case.name}"

    return LinePrinter(Followed(record), state, place, out=out)


def _left_s(state: RunState, at: float) -> tuple[float, float | None, float | None]:
    assert state.remaining is not None
    gone = max(0.0, at - state.remaining_at)
    low, high = state.remaining.low, state.remaining.high
    return (
        max(0.0, state.remaining.seconds - gone),
        None if low is None else max(0.0, low - gone),
        None if high is None else max(0.0, high - gone),
    )


def _trial_line(state: RunState, at: float, columns: int) -> str:
    assert state.trial is not None
    case, block = state.trial.planned.case, state.trial.planned.block
    left, low, high = _left_s(state, at)
    if low is None or high is None:
        text = f"planned {numbers.duration(left)} more"
    else:
        unit = 60.0 if left >= 120 else 1.0
        ends = f" ({low / unit:.0f}–{high / unit:.0f})" if round(low / unit) != round(high / unit) else ""
        text = f"{numbers.duration(left)} left{ends}"
    again = f" attempt {state.trial.attempt}" if state.trial.attempt > 1 else ""
    count = f"trial {state.trial.number} of {state.trial.trials}   "
    rest = f"   block {block} of {case.trials}{again}   {text}"
    if columns - len(count) - len(rest) < SHORTEST_NAME:
        rest = f"   {text}"
    room = max(SHORTEST_NAME, min(40, columns - len(count) - len(rest)))
    return f"{count}{words.cut(words.plain(case.name), room)}{rest}"


def _bar_line(state: RunState, at: float, columns: int) -> str:
    assert state.trial is not None
    left, low, high = _left_s(state, at)
    done = state.valid / max(1, state.trial.trials)
    early, late = at + (left if low is None else low), at + (left if high is None else high)
    ends = [time.strftime("%H:%M", time.localtime(moment)) for moment in (early, late)]
    when = ends[0] if ends[0] == ends[1] else "–".join(ends)
    text = f" {100 * done:.0f} %   done {when}"
    width = max(8, min(BAR_WIDTH, columns - 2 - len(text)))
    eighths = round(done * width * 8)
    bar = "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
    return f"▕{bar:<{width}}▏{text}"


def progress_words(state: RunState, followed: Followed) -> str:
    """Return how far the running load is, or with what is known of it where no line of its own says that."""
    if state.load is None or followed.recent is None:
        return now_words(state)
    total = f" of {state.load['total_s']:.0f}" if state.load["total_s"] else ""
    return f"{PHASES.get(state.load['phase'], '')}{state.load['elapsed_s']:.0f}{total} s"


def now_words(state: RunState) -> str:
    """Return what runs now, of a load with its last second."""
    if state.load is None or not state.load.get("streams"):
        return state.now
    load = state.load
    stream = load["streams"][0]
    last = stream["last"]
    phase = PHASES.get(load["phase"], "")
    total = f" of {load['total_s']:.0f}" if load["total_s"] else ""
    parts = [f"{phase}{load['elapsed_s']:.0f}{total} s", f"{numbers.value(last['rps'], PER_SECOND)} /s"]
    if last["p99_s"] is not None:
        parts.append(f"p99 {numbers.with_unit(last['p99_s'], 's')}")
    so_far = stream["so_far"]
    parts += [
        f"{key.replace('_', ' ')} {numbers.count(so_far[key])}"
        for key in ("unexpected_status", "check_failed", "failed")
        if so_far[key] or key == "failed"
    ]
    return "   ".join(parts)


def _done(state: RunState) -> str:
    parts = [f"{state.valid} ● valid"]
    if state.invalid:
        parts.append(f"{state.invalid} ■ {words.plain(state.last_fault)}")
    return "   ".join(parts)
