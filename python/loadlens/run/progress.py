"""Progress of a run as events, the same for every display.

`PlainPrinter` is for streams other than terminals: one line per trial, and one per important event.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from loadlens.errors import visible
from loadlens.model.study import PlannedTrial
from loadlens.model.trial import TrialStatus
from loadlens.run.time_left import Remaining

if TYPE_CHECKING:
    from loadlens.record import RunWriter


@dataclass(frozen=True, slots=True)
class Building:
    """One line of output from a build."""

    line: str


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The record exists and trials begin."""

    path: Path
    study: str
    question: str
    trials: int  # total planned
    done: int  # complete before --resume
    planned_s: float  # of the remaining trials, without overhead


@dataclass(frozen=True, slots=True)
class TrialStarted:
    """A trial begins."""

    planned: PlannedTrial
    number: int  # position among all trials, from 1
    trials: int
    attempt: int
    remaining: Remaining


@dataclass(frozen=True, slots=True)
class Step:
    """Activity of the running trial outside the load, such as starting services or sealing."""

    words: str


@dataclass(frozen=True, slots=True)
class Load:
    """The engine's progress, about ten times per second."""

    progress: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A trial is sealed."""

    planned: PlannedTrial
    number: int
    trials: int
    attempt: int
    status: TrialStatus
    reasons: tuple[str, ...]
    throughput_rps: float | None  # of the load stream; None: it never ran
    failed: int
    will_repeat: bool
    remaining: Remaining
    unexpected_status: int = 0
    check_failed: int = 0


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning that does not stop the run."""

    words: str


@dataclass(frozen=True, slots=True)
class Found:
    """A line about parts of a service that a search found by itself, or missed."""

    words: str


@dataclass(frozen=True, slots=True)
class Provisional:
    """The answer of a search so far, in one line."""

    words: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """Prediction of a held-out case before its first trial, or the reason why there is none."""

    case: str
    words: str


@dataclass(frozen=True, slots=True)
class Stopping:
    """The run was interrupted; the running trial is ending in order."""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is over."""

    path: Path
    complete: int
    trials: int
    stopped: bool


Event = (
    Building
    | RunStarted
    | TrialStarted
    | Step
    | Load
    | TrialEnded
    | Warned
    | Found
    | Provisional
    | Prediction
    | Stopping
    | RunEnded
)


class Progress(Protocol):
    """Receiver of a run's events. Must return quickly and never raise."""

    def tell(self, event: Event) -> None:
        """Receive one event."""


class Silent:
    """Discards all events."""

    def tell(self, event: Event) -> None:
        """Do nothing."""


class Keeping:
    """Passes events on, and keeps in the record what a search found, concluded and warned about.

    Args:
        writer: Of the record.
        to: Receives the events.
    """

    def __init__(self, writer: RunWriter, to: Progress) -> None:
        self._writer, self._to = writer, to

    def tell(self, event: Event) -> None:
        """Keep the words of an event if it has any, and pass it on."""
        match event:
            case Provisional(words):
                self._writer.event("provisional", words=words)
            case Found(words):
                self._writer.event("found", words=words)
            case Warned(words):
                self._writer.event("warned", words=words)
        self._to.tell(event)


class PlainPrinter:
    """Prints one line per trial, without cursor movements.

    Args:
        out: Where to print; stderr by default.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr

    def tell(self, event: Event) -> None:
        """Print the line of an event, if it has one."""
        line = line_of(event)
        if line is not None:
            self.print_line(line)

    def print_line(self, line: str) -> None:
        """Print a line with the time of day."""
        print(f"{time.strftime('%H:%M:%S')}  {visible(line)}", file=self._out, flush=True)


def line_of(event: Event) -> str | None:
    """Return the line of an event off a terminal; none if it has none."""
    match event:
        case Building(line):
            return line
        case RunStarted():
            resumed = f", {event.done} done before" if event.done else ""
            planned = in_short(event.planned_s)
            trials = f"{event.trials} trial{'s' * (event.trials != 1)}{resumed}"
            return f"{event.study}: {trials}, planned {planned}, record {event.path}"
        case TrialEnded():
            return _trial_line(event)
        case Warned(words) | Found(words):
            return words
        case Provisional(words):
            return f"provisional: {words}"
        case Prediction(case, words):
            return f"predicted {case}: {words}"
        case Stopping():
            return "stopping: the running trial ends in order; press Ctrl-C again to end at once"
        case RunEnded():
            words = f"{event.complete} of {event.trials} trials valid, record {event.path}"
            return f"stopped: {words}; continue with --resume" if event.stopped else words
        case _:
            return None


def _trial_line(event: TrialEnded) -> str:
    """Format a trial: `23/132 alone workers=2 users=10 block=1 valid 9.1/s failed 0 left 48m`."""
    word = "valid" if event.status is TrialStatus.COMPLETE else event.status.value
    rate = "" if event.throughput_rps is None else f" {event.throughput_rps:.4g}/s failed {event.failed}"
    rate += f" unexpected status {event.unexpected_status}" if event.unexpected_status else ""
    rate += f" check failed {event.check_failed}" if event.check_failed else ""
    reasons = f" ({'; '.join(event.reasons)})" if event.reasons else ""
    again = ", will be repeated" if event.will_repeat else ""
    name = f"{event.planned.case.name} block={event.planned.block}"
    return f"{event.number}/{event.trials} {name} {word}{rate}{reasons}{again}{_left(event.remaining)}"


def _left(left: Remaining) -> str:
    """Format the time left, labelled `planned` until finished trials support it; empty at the end."""
    if left.seconds <= 0:
        return ""
    return f" {'planned' if left.low is None else 'left'} {in_short(left.seconds)}"


def in_short(seconds: float) -> str:
    """Format a duration: `48m`, `1h05m`, `32s`."""
    whole = round(seconds)
    if whole < 90:
        return f"{whole}s"
    minutes = round(whole / 60)
    return f"{minutes}m" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02d}m"
