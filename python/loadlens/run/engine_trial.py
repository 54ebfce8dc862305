"""One trial of the engine: start it, show how it goes, end it in order, hand out its result.

The one path by which load is made: `hit`, `run` and all that searches come through here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from loadlens import engine
from loadlens.engine import Progress, Result
from loadlens.errors import EngineError
from loadlens.model.workload import Plan, RecordTo

POLL_S = 0.1  # how often progress is asked for, and how late a request to stop may be heard
GRACE_S = 5.0  # beyond the latest end that the plan allows
NS = 1e9

OnProgress = Callable[[Progress], None]
OnStarted = Callable[[int, int], None]  # t0 by CLOCK_MONOTONIC, t0 since 1970, both in ns
Watch = Callable[[], bool]
OnNotes = Callable[[Sequence[str]], None]
Start = Callable[[engine.Run], None]


def run_trial(
    plan: Plan,
    *,
    record_dir: Path | None = None,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
    on_started: OnStarted | None = None,
    watch: Watch | None = None,
    on_notes: OnNotes | None = None,
    start: Start | None = None,
) -> Result:
    """Run a plan to its end, or to the moment somebody asks for it.

    Args:
        plan: What to do.
        record_dir: Existing folder for the live files; none: nothing is written.
        on_progress: Gets the engine's progress about ten times a second.
        stop: When set, the engine ends early and in order.
        on_started: Told once when the trial began.
        watch: Asked at each turn; true ends the trial early, because it has no sense any more.
        on_notes: Gets what may go wrong on this machine, before the start; not called when there is nothing.
        start: Starts the run, where a script accompanies it; none: it is started as it is.

    Returns:
        The result of the engine (docs/reference/record.md); status `stopped` when it ended early.

    Raises:
        PlanError: The engine refuses the plan.
        EngineError: An own limit, or the engine did not end.
    """
    if record_dir is not None:
        plan = replace(plan, record=RecordTo(str(record_dir)) if plan.record is None else plan.record)
    run = engine.Run(plan)
    if on_notes is not None and (notes := run.notes()):
        on_notes(notes)
    run.start() if start is None else start(run)
    latest_end = _latest_end_s(plan)
    stop_asked_at: float | None = None
    began = time.monotonic()
    try:
        while not run.wait(POLL_S):
            progress = run.progress()
            if on_started is not None and progress["t0_monotonic_ns"]:
                on_started(progress["t0_monotonic_ns"], _unix_of(progress["t0_monotonic_ns"]))
                on_started = None
            if on_progress is not None:
                on_progress(progress)
            now = time.monotonic()
            asked = (stop is not None and stop.is_set()) or (watch is not None and watch())
            if stop_asked_at is None and (asked or now - began > latest_end):
                run.stop()
                stop_asked_at = now
            if stop_asked_at is not None and now - stop_asked_at > _slowest_timeout_s(plan) + GRACE_S:
                raise EngineError(f"the engine did not end within {now - stop_asked_at:.0f} s of being asked")
    except BaseException:
        run.stop()  # whoever raised, no load goes on behind their back
        run.wait(GRACE_S)
        raise
    result = run.result()
    if on_started is not None:  # it was over before the first turn
        on_started(result["t0_monotonic_ns"], result["t0_unix_ns"])
    return result


def _latest_end_s(plan: Plan) -> float:
    """Seconds after which the engine must have ended by its own plan; endless without a duration."""
    if plan.duration_ns is None:
        return float("inf")
    planned_ns = plan.warmup_ns + plan.duration_ns + plan.drain_ns
    return planned_ns / NS + _slowest_timeout_s(plan) + GRACE_S


def _slowest_timeout_s(plan: Plan) -> float:
    return max(stream.timeout_ns for stream in plan.streams) / NS


def _unix_of(monotonic_ns: int) -> int:
    return time.time_ns() - (time.monotonic_ns() - monotonic_ns)
