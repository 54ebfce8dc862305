"""Measurements made by hand."""

from __future__ import annotations

from pathlib import Path

from benches.measuring import Used
from benches.results import Cost, Results


def used(requests: int, cpu_s: float, wall_s: float = 1.0, connections: int = 10) -> Used:
    return Used(requests, cpu_s, cpu_s, wall_s, 0.0, 0, connections)


def cost(
    generator: str, us: float, *, work: str = "get-100", number: int = 0, set_number: int = 0, **more: str
) -> Cost:
    """A measurement whose marginal cost is `us`: 1,000 requests with start-up against 101,000."""
    start_s = 0.5
    short = used(1_000, start_s)
    long = used(101_000, start_s + 0.1 * us, wall_s=3.0)
    return Cost(work, generator, set_number, number, short, long, **more)


def results(*costs: Cost) -> Results:
    about = {"processors": 2, "hypervisor": True, "processor": "some", "memory_gib": 8}
    about |= {"distribution": "a system", "kernel": "6.1", "congestion_control": "cubic"}
    sets = [{"began": "2026-01-01 10:00 UTC", "versions": {"wrk": "wrk 4"}}]
    return Results(Path("x.json"), {"commit": "c0ffee"}, about, sets, cost=list(costs))
