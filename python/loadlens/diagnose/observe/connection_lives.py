"""Observations for rules on connections that end too soon: the levels whose client would keep them."""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.model.facts import ConnectionWatch, Curve, Facts, Step


@dataclass(frozen=True, slots=True)
class KeptConnections:
    """The connections of one level."""

    curve: Curve
    step: Step
    watch: ConnectionWatch


def levels(facts: Facts, *, needs: str) -> list[KeptConnections] | str:
    """Return all levels whose client keeps connections, or why there is none; `needs` names the reading."""
    recorded = [
        KeptConnections(curve, step, step.connections)
        for curve in facts.curves
        for step in curve.steps
        if step.connections is not None
    ]
    if not recorded:
        return f"needs {needs}: the source of the load reports none"
    kept = [level for level in recorded if level.watch.reuses]
    return kept or "needs a client that keeps connections: this one closes them itself"
