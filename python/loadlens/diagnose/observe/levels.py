"""Levels of load of all curves, with the detail that a rule looks at there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from loadlens.model.facts import Curve, Facts, Step

D = TypeVar("D", covariant=True)


@dataclass(frozen=True, slots=True)
class Level(Generic[D]):
    """One level of a load curve, and what was measured there."""

    curve: Curve
    step: Step
    detail: D

    @property
    def label(self) -> str:
        """Curve and case, as the scope of a finding shows them."""
        return f"{self.curve.label} · {self.step.label}"


def levels(facts: Facts, detail_of: Callable[[Step], D | None]) -> list[Level[D]]:
    """Return the levels that have the detail, curve by curve."""
    return [
        Level(curve, step, detail)
        for curve in facts.curves
        for step in curve.steps
        if (detail := detail_of(step)) is not None
    ]
