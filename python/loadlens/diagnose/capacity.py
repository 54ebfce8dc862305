"""The capacity of a curve as a figure, and where it is only a lower bound.

A throughput is that of the service only while clients send as much as they would. If something held them back
on the levels that the capacity is taken from, the service may be able to do more, by an unknown amount: then
only the lower end of the interval is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from loadlens.diagnose.observe import clocks
from loadlens.diagnose.rules.measurement import gen_bottleneck
from loadlens.diagnose.rules.network import accept_drops
from loadlens.measure.curve import Capacity, plateau_figure, plateau_steps
from loadlens.measure.curves import CurveCases
from loadlens.model.facts import Curve, Step
from loadlens.model.finding import Estimate, Figure
from loadlens.present import numbers

WAITED: Final = "clients waited to ask for connections again"
GENERATOR: Final = "the generator was the limit"
FEWEST_FREE: Final = 2  # levels where nothing kept clients: one alone does not show that more bring nothing


@dataclass(frozen=True, slots=True)
class Most:
    """The highest throughput of a service, as successes per second."""

    figure: Figure
    bounded_by: str = ""  # what kept clients from asking more: it is a lower bound; empty: nothing did

    @property
    def words(self) -> str:
        """The capacity in a sentence: `4.9 /s`, `at least 4.9 /s`; or the word of its state."""
        if isinstance(self.figure, Estimate) and self.bounded_by:
            return numbers.at_least(self.figure)
        return numbers.short(self.figure)

    def part(self, share: float) -> Most:
        """A share of it: what one of several processes does, or one of several requests."""
        if not isinstance(self.figure, Estimate):
            return self
        low, high = (None if end is None else end * share for end in (self.figure.low, self.figure.high))
        return replace(self, figure=replace(self.figure, point=self.figure.point * share, low=low, high=high))


@dataclass(frozen=True, slots=True)
class CurveCapacity:
    """A curve that reached its capacity, with its cases."""

    group: CurveCases
    capacity: Capacity
    most: Most


def most_of(curve: Curve, capacity: Capacity, *, besides: Callable[[Step], float] = lambda _: 0.0) -> Most:
    """Return the capacity over the levels that are trials of it; a lower bound where clients were held back.

    Where levels begin with a burst, it is the rate that they keep afterwards.

    Args:
        curve: The curve that reached it.
        capacity: The capacity as the curve shows it.
        besides: Successes per second of a step that belong to the capacity besides those of the load.
    """
    plateau = _plateau(curve, capacity)
    why = _bound(plateau)
    steps = [step for step, kept in plateau if why or not kept]
    figure = clocks.settled_rate(curve, besides) or plateau_figure(curve, capacity, steps, extra=besides)
    return Most(_at_least(figure, why) if why else figure, why)


def _plateau(curve: Curve, capacity: Capacity) -> list[tuple[Step, str]]:
    """Return the levels of the capacity, each with why clients sent less there; empty: they did not."""
    steps = plateau_steps(curve, capacity)
    waited = [accept_drops.are_kept_waiting(curve, step) for step in steps]
    return [
        (step, WAITED if waits else GENERATOR if gen_bottleneck.is_limit(curve, step) else "")
        for step, waits in zip(steps, waited, strict=True)
    ]


def _bound(plateau: Sequence[tuple[Step, str]]) -> str:
    kept = [why for _, why in plateau if why]
    return kept[-1] if kept and len(plateau) - len(kept) < FEWEST_FREE else ""


def _at_least(figure: Figure, why: str) -> Figure:
    """Return the lower end of an interval, open above; where that is open, what was reached."""
    if not isinstance(figure, Estimate):
        return figure
    least = figure.point if figure.low is None else figure.low
    return replace(figure, point=least, low=least, high=None, method=f"lower bound: {why}; {figure.method}")
