"""One trial of the engine: start, progress, orderly end, result.

The only path by which our engine makes load: `hit`, `run` and every search use it.
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

POLL_S = 0.1  # interval of progress, and the longest delay of a stop
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
    """Run a plan to its end, or until it is stopped.

    Args:
        plan: The load.
        record_dir: Existing folder for the live files; None writes nothing.
        on_progress: Receives the engine's progress about ten times per second.
        stop: Once set, the engine ends early and in order.
        on_started: Called once with the start time.
        watch: Polled each turn; return True to end the trial early.
        on_notes: Receives warnings about this machine before the start; not called without any.
        start: Starts the run, for loads with a script; `Run.start` by default.

    Returns:
        The result of the engine (docs/reference/record.md); status `stopped` if it ended early.

    Raises:
        PlanError: The engine refuses the plan.
        EngineError: The engine hit a limit of its own, or did not end.
    """
    if record_dir is not None:
        plan = replace(plan, record=RecordTo(str(record_dir)) if plan.record is None else plan.record)
    run = engine.Run(plan)
    if on_notes is not None and (notes := run.notes()):
        on_notes(notes)
    run.start() if start is None else start(run)
    latest_end = _latest_end_s(plan)
    stopped_at: float | None = None
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
            must_stop = (stop is not None and stop.is_set()) or (watch is not None and watch())
            if stopped_at is None and (must_stop or now - began > latest_end):
                run.stop()
                stopped_at = now
            if stopped_at is not None and now - stopped_at > _slowest_timeout_s(plan) + GRACE_S:
                raise EngineError(f"the engine did not end within {now - stopped_at:.0f} s of its stop")
    except BaseException:
        run.stop()  # no load may outlive this call
        run.wait(GRACE_S)
        raise
    result = run.result()
    if on_started is not None:  # the run ended before the first turn
        on_started(result["t0_monotonic_ns"], result["t0_unix_ns"])
    return result


def _latest_end_s(plan: Plan) -> float:
    """Return the seconds after which the engine must have ended; infinite without a duration."""
    if plan.duration_ns is None:
        return float("inf")
    planned_ns = plan.warmup_ns + plan.duration_ns + plan.drain_ns
    return planned_ns / NS + _slowest_timeout_s(plan) + GRACE_S


def _slowest_timeout_s(plan: Plan) -> float:
    return max(stream.timeout_ns for stream in plan.streams) / NS


def _unix_of(monotonic_ns: int) -> int:
    return time.time_ns() - (time.monotonic_ns() - monotonic_ns)
