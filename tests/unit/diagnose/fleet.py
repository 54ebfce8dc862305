"""Facts of a load that three machines made."""

from __future__ import annotations

from typing import Any

from loadlens.model.facts import Facts
from loadlens.model.quality import NodeWatch, Quality
from tests.unit.diagnose.build import curve, estimate, facts, step


def node(label: str, **changes: Any) -> NodeWatch:
    """A machine with a third of the load that sees 10 ms, 0.4 ms from the service, and kept up."""
    built: dict[str, Any] = {
        "label": label, "host": f"{label}.example", "part": 1 / 3, "due": 1_000,
        "rate": estimate(100.0, unit="1/s"), "p50": estimate(0.010), "p99": estimate(0.030),
        "connect": estimate(0.0004), "start_late_s": 0.0001, "clock_error_s": 0.00005, "verdict": "kept_up",
    }  # fmt: skip
    return NodeWatch(**(built | changes))


def fleet(**changes: Any) -> Facts:
    """Three machines, of which the last one has these changes."""
    return of(node("gen1"), node("gen2"), node("gen3", **changes))


def of(*nodes: NodeWatch) -> Facts:
    return facts(curve(step(100, 300.0, 0.012, quality=Quality(nodes=nodes))))
