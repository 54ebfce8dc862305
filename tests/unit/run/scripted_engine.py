"""A scripted engine: no load, the documented live files, the documented result."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from loadlens.model.workload import Plan
from tests import records

Script = Callable[["ScriptedRun"], None]


def quantity(value: float) -> dict[str, Any]:
    """A number with an interval of no width."""
    return {"value": value, "low": value, "high": value, "undecided": None, "independent_above": 1.0}


class ScriptedRun:
    """Takes the place of `engine.Run`; `script` may change the result or ask for more turns.

    Class attributes are set by a test through `scripted`.
    """

    script: Script = staticmethod(lambda run: None)
    runs: ClassVar[list[ScriptedRun]]

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.turns = 1
        self.stopped = False
        self.status = "complete"
        self.verdict = "kept_up"
        self.law_holds = True
        self.errors: dict[str, Any] = {}
        self.intervals: str | None = None  # an interval log in the place of the usual one
        type(self).runs.append(self)

    def notes(self) -> list[str]:
        return []

    def start(self) -> None:
        self.t0 = time.monotonic_ns()
        type(self).script(self)
        if self.plan.record is not None:
            live = Path(self.plan.record.dir)
            records.write_live_of_engine(live, samples=10)
            if self.intervals is not None:
                (live / "intervals.hlog").write_text(self.intervals)

    def wait(self, timeout_s: float) -> bool:
        self.turns -= 1
        if self.turns < 0 or self.stopped:
            return True
        time.sleep(min(timeout_s, 0.01))
        return False

    def progress(self) -> dict[str, Any]:
        return {
            "phase": "measure",
            "elapsed_s": 0.1,
            "total_s": 1.0,
            "t0_monotonic_ns": self.t0,
            "streams": [],
        }

    def stop(self) -> None:
        self.stopped = True
        self.status = "stopped"

    def result(self) -> dict[str, Any]:
        stream = records.stream_result(
            requests=records.request_counts(due=10, issued=10, answered=10, ok=10),
            law_holds=self.law_holds,
            law="due 10 = issued 10 + dropped 0 + waiting 0",
            errors=self.errors,
            throughput_rps=quantity(33.0),
        )
        return {
            "schema_version": 1,
            "status": self.status,
            "reasons": [],
            "t0_unix_ns": time.time_ns(),
            "t0_monotonic_ns": self.t0,
            "warmup_s": 0.0,
            "measured_s": 0.3,
            "elapsed_s": 0.3,
            "streams": [stream],
            "generator": {"verdict": self.verdict, "reasons": []},
        }
