"""One trial of the engine: start, progress, orderly end, result.

The only path by which our engine makes load: `hit`, `run` and every search use it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from loadlens import engine
from loadlens.engine import Progress, Result
from loadlens.errors import EngineError
from loadlens.load_control import LoadControl, Refused, WantedChange
from loadlens.machine import calibration
from loadlens.model.result import LoadChange
from loadlens.model.workload import Plan, RecordTo

POLL_S = 0.1  # interval of progress, and the longest delay of a stop
GRACE_S = 5.0  # beyond the latest end that the plan allows
NS = 1e9
NODE_VARIABLE = (
    "LOADLENS_NODE"  # in the environment of a fleet's engines, so that monitors count them as the lab
)

Start = Callable[[engine.Run], None]


class Listener:
    """Receives the events of a load and may end it early. This one ignores them all."""

    def warned(self, notes: Sequence[str]) -> None:
        """Receive warnings about this machine before the start; not called without any."""

    def started(self, t0_monotonic_ns: int, t0_unix_ns: int) -> None:
        """Receive the start time, once: CLOCK_MONOTONIC and since 1970."""

    def load_changed(self, change: LoadChange) -> None:
        """Receive a change of the load, which lies a moment ahead."""

    def must_stop(self, progress: Progress | None) -> bool:
        """Return True to end the load early; called at least ten times per second.

        `progress` is the engine's; None from an external tool.
        """
        return False


class MakeLoad(Protocol):
    """Makes a load and returns its result, as `run_trial` does: on other machines, or on several."""

    def __call__(
        self,
        plan: Plan,
        listener: Listener | None = None,
        *,
        record: RecordTo | None = None,
        start: Start | None = None,
        controlled: Path | None = None,
    ) -> Result:
        """Run a plan to its end, or until the listener ends it."""


def run_trial(
    plan: Plan,
    listener: Listener | None = None,
    *,
    record: RecordTo | None = None,
    start: Start | None = None,
    controlled: Path | None = None,
) -> Result:
    """Run a plan to its end, or until the listener ends it.

    Args:
        plan: The load.
        listener: Receives the events of the load; none by default.
        record: Where the live files go, an existing folder; None writes nothing.
        start: Starts the run, for loads with a script; `Run.start` by default.
        controlled: Folder of a record whose load may be changed while it runs; None: it cannot be.

    Returns:
        The result of the engine (docs/reference/record.md); status `stopped` if it ended early.

    Raises:
        PlanError: The engine refuses the plan.
        EngineError: The engine hit a limit of its own, or did not end.
    """
    listener = listener or Listener()
    if record is not None:
        plan = replace(plan, record=record)
    run = engine.Run(plan)
    if notes := run.notes():
        listener.warned(notes)
    run.start() if start is None else start(run)
    slowest_s, latest_end_s = time_to_stop_s(plan), time_to_end_s(plan)
    is_started = False
    stopped_at: float | None = None
    began = time.monotonic()
    control = LoadControl(controlled)
    try:
        while not run.wait(POLL_S):
            control.serve(lambda wanted: _change(run, plan, wanted, listener))
            progress = run.progress()
            t0_ns = progress["t0_monotonic_ns"]
            if t0_ns and not is_started:
                listener.started(t0_ns, time.time_ns() - (time.monotonic_ns() - t0_ns))
                is_started = True
            must_stop = listener.must_stop(progress)
            now = time.monotonic()
            if stopped_at is None and (must_stop or now - began > latest_end_s):
                run.stop()
                stopped_at = now
            if stopped_at is not None and now - stopped_at > slowest_s:
                raise EngineError(f"the engine did not end within {now - stopped_at:.0f} s of its stop")
    except BaseException:
        run.stop()  # no load may outlive this call
        run.wait(GRACE_S)
        raise
    finally:
        control.close()
    result = run.result()
    if not is_started:  # the run ended before the first turn
        listener.started(result["t0_monotonic_ns"], result["t0_unix_ns"])
    return result


def time_to_stop_s(plan: Plan) -> float:
    """Return the longest time from a stop to the end: that of the slowest request, and some grace."""
    return max(stream.timeout_ns for stream in plan.streams) / NS + GRACE_S


def time_to_end_s(plan: Plan) -> float:
    """Return the longest time from the start to the end; infinite where users or counts decide."""
    if plan.duration_ns is None:
        return float("inf")
    return (plan.warmup_ns + plan.duration_ns + plan.drain_ns) / NS + time_to_stop_s(plan)


def _change(run: engine.Run, plan: Plan, wanted: WantedChange, listener: Listener) -> LoadChange:
    """Change the load as wanted.

    Raises:
        Refused: It cannot be; the text says why.
    """
    loads = [stream.name for stream in plan.streams if stream.role == "load"]
    if wanted.stream is None and len(loads) > 1:
        raise Refused(f"there are several loads: {', '.join(loads)}")
    made = calibration.of_this_machine()
    if wanted.rate_per_s is not None and made is not None:
        most_per_s = made.most_per_s(plan.threads or len(os.sched_getaffinity(0)))
        if wanted.rate_per_s > most_per_s:
            raise Refused(
                f"this machine can send {most_per_s:,.0f} requests/s as measured by loadlens doctor"
            )
    try:
        change = run.change(wanted.stream or loads[0], rate_per_s=wanted.rate_per_s, users=wanted.users)
    except (ValueError, OverflowError) as fault:
        raise Refused(str(fault)) from None
    listener.load_changed(change)
    return change
