"""The live view of a study: seven lines drawn in place on stderr, below which nothing moves.

`RunState` takes the run's events, `lines` is a pure function of it; `EventView` only draws.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from loadlens.live.screen import Place
from loadlens.model.trial import TrialStatus
from loadlens.present import numbers, words
from loadlens.run import progress as events
from loadlens.run.time_left import Remaining

BAR_WIDTH = 44
FRAMES_PER_S = 5
EIGHTHS = " ▏▎▍▌▋▊▉"
PER_SECOND = numbers.scale("1/s")


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
        take: Learns from one event that came at a time.
        lines: The picture of what is known at a time.
        clock: Seconds, as both want them.
    """

    def __init__(
        self,
        take: Callable[[events.Event, float], None],
        lines: Callable[[float], list[str]],
        clock: Callable[[], float],
    ) -> None:
        super().__init__()
        self._take, self._lines, self._clock = take, lines, clock
        self._drawn = 0.0

    def tell(self, event: events.Event) -> None:
        """Take one event and draw."""
        at = self._clock()
        self._take(event, at)
        frequent = isinstance(event, events.Load | events.Building)
        if frequent and at - self._drawn < 1 / FRAMES_PER_S:
            return
        self._drawn = at
        self.draw_lines(self._lines(at))


def run_view() -> EventView:
    """The view of a run; its clock is seconds since the epoch, unless the clock is set meanwhile."""
    state, ahead_s = RunState(), time.time() - time.monotonic()
    return EventView(state.take, partial(lines, state), lambda: ahead_s + time.monotonic())


def lines(state: RunState, at: float) -> list[str]:
    """The picture of one moment.

    Args:
        state: What is known.
        at: Seconds since the epoch.
    """
    if state.started is None:
        return [words.plain(state.now)]
    drawn = [f"{state.started.study}: {words.plain(state.started.question)}"]
    if state.trial is not None and state.remaining is not None:
        drawn += [_trial_line(state, at), _bar_line(state, at)]
    drawn.append(f"  now    {words.plain(now_words(state))}")
    drawn.append(f"  done   {_done(state)}")
    drawn += [f"  note   ▲ {words.plain(warning)}" for warning in state.warnings[-1:]]
    ending = "ending this trial in order; Ctrl-C again ends at once" if state.stopping else "stop: Ctrl-C"
    drawn.append(f"  record {state.started.path}   {ending}, go on: loadlens run ... --resume")
    return drawn


def _left_s(state: RunState, at: float) -> tuple[float, float | None, float | None]:
    assert state.remaining is not None
    gone = max(0.0, at - state.remaining_at)
    low, high = state.remaining.low, state.remaining.high
    return (
        max(0.0, state.remaining.seconds - gone),
        None if low is None else max(0.0, low - gone),
        None if high is None else max(0.0, high - gone),
    )


def _trial_line(state: RunState, at: float) -> str:
    assert state.trial is not None
    case, block = state.trial.planned.case, state.trial.planned.block
    left, low, high = _left_s(state, at)
    if low is None or high is None:
        text = f"planned {numbers.duration(left)} more"
    else:
        unit = 60.0 if left >= 120 else 1.0
        ends = f" ({low / unit:.0f}–{high / unit:.0f})" if round(low / unit) != round(high / unit) else ""
        text = f"{numbers.duration(left)} left{ends}"
    name = words.cut(words.plain(case.name), 40)
    again = f" attempt {state.trial.attempt}" if state.trial.attempt > 1 else ""
    count = f"trial {state.trial.number} of {state.trial.trials}"
    return f"{count}   {name}   block {block} of {case.trials}{again}   {text}"


def _bar_line(state: RunState, at: float) -> str:
    assert state.trial is not None
    left, low, high = _left_s(state, at)
    done = state.valid / max(1, state.trial.trials)
    eighths = round(done * BAR_WIDTH * 8)
    bar = "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
    early, late = at + (left if low is None else low), at + (left if high is None else high)
    ends = [time.strftime("%H:%M", time.localtime(moment)) for moment in (early, late)]
    when = ends[0] if ends[0] == ends[1] else "–".join(ends)
    return f"▕{bar:<{BAR_WIDTH}}▏ {100 * done:.0f} %   done {when}"


def now_words(state: RunState) -> str:
    if state.load is None or not state.load.get("streams"):
        return state.now
    load = state.load
    stream = load["streams"][0]
    last = stream["last"]
    phase = {"warmup": "warm-up, ", "drain": "last answers, ", "starting": "starting, "}.get(
        load["phase"], ""
    )
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
