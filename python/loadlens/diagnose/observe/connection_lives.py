"""What rules about connections that end too soon share: the levels whose client would keep them."""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.model.facts import ConnectionWatch, Curve, Facts, Step


@dataclass(frozen=True, slots=True)
class Kept:
    """The connections of one level."""

    curve: Curve
    step: Step
    watch: ConnectionWatch


def levels(facts: Facts, *, needs: str) -> list[Kept] | str:
    """All levels whose client keeps connections; why there is none, where `needs` says what must be told."""
    known = [
        Kept(curve, step, step.connections)
        for curve in facts.curves
        for step in curve.steps
        if step.connections is not None
    ]
    if not known:
        return f"needs {needs}: what made the load tells of none"
    kept = [level for level in known if level.watch.reuses]
    return kept or "needs a client that keeps connections: this one closes them itself"
