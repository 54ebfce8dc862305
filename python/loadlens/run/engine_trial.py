"""One trial of the engine: start, progress, orderly end, result.

The only path by which our engine makes load: `hit`, `run` and every search use it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from loadlens import engine
from loadlens.engine import Progress, Result
from loadlens.errors import EngineError
from loadlens.model.workload import Plan, RecordTo

POLL_S = 0.1  # interval of progress, and the longest delay of a stop
GRACE_S = 5.0  # beyond the latest end that the plan allows
NS = 1e9

Start = Callable[[engine.Run], None]


class Listener:
    """Receives the events of a load and may end it early. This one ignores them all."""

    def warned(self, notes: Sequence[str]) -> None:
        """Receive warnings about this machine before the start; not called without any."""

    def started(self, t0_monotonic_ns: int, t0_unix_ns: int) -> None:
        """Receive the start time, once: CLOCK_MONOTONIC and since 1970."""

    def must_stop(self, progress: Progress | None) -> bool:
        """Return True to end the load early; called at least ten times per second.

        `progress` is the engine's; None from an external tool.
        """
        return False


def run_trial(
    plan: Plan,
    listener: Listener | None = None,
    *,
    record: RecordTo | None = None,
    start: Start | None = None,
) -> Result:
    """Run a plan to its end, or until the listener ends it.

    Args:
        plan: The load.
        listener: Receives the events of the load; none by default.
        record: Where the live files go, an existing folder; None writes nothing.
        start: Starts the run, for loads with a script; `Run.start` by default.

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
    slowest_s = max(stream.timeout_ns for stream in plan.streams) / NS + GRACE_S
    latest_end_s = float("inf")
    if plan.duration_ns is not None:
        latest_end_s = (plan.warmup_ns + plan.duration_ns + plan.drain_ns) / NS + slowest_s
    is_started = False
    stopped_at: float | None = None
    began = time.monotonic()
    try:
        while not run.wait(POLL_S):
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
    result = run.result()
    if not is_started:  # the run ended before the first turn
        listener.started(result["t0_monotonic_ns"], result["t0_unix_ns"])
    return result
