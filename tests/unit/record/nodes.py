"""Machines of a fleet as trial.json has them."""

from __future__ import annotations

from typing import Any

from tests import records

BEGINS = {"far": 1_000, "near": 1_002}  # of each machine by its own clock


def node(name: str, **changes: Any) -> dict[str, Any]:
    """A machine with a third or two thirds of the load, as trial.json has it."""
    share = [0, 1, 3] if name == "far" else [1, 3, 3]
    figures = {
        "throughput_rps": records.quantity(1.0),
        "p50_s": records.quantity(),
        "p99_s": records.quantity(),
    }
    return {
        "name": name,
        "host": f"{name}.example",
        "share": share,
        "threads": 1,
        "t0_unix_ns": BEGINS[name],
        "clock_offset_ns": -5,
        "clock_error_ns": 40_000,
        "clock_drift_ppm": 1.5,
        "start_late_ns": 9_000,
        "status": "complete",
        "reasons": [],
        "generator": {"verdict": "kept_up", "reasons": []},
        "streams": [{"name": "load", "due": 100, "ok": 100, "failed": 0, **figures}],
    } | changes
