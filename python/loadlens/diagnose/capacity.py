"""The capacity of a curve as a figure, and where it is only a lower bound.

A throughput is that of the service only while clients ask as much as they would. Where something kept them
from it on the levels that the capacity is taken from, the service may be able to do more, by nobody knows
how much: then the lower end of the interval is all that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from loadlens.diagnose.rules.measurement import gen_bottleneck
from loadlens.diagnose.rules.network import accept_drops
from loadlens.measure.curve import Capacity, plateau_figure, plateau_steps
from loadlens.measure.curves import CurveCases
from loadlens.model.facts import Curve, Step
from loadlens.model.finding import Estimate, Figure

WAITED: Final = "clients waited to ask for connections again"
GENERATOR: Final = "the generator was the limit"
FEWEST_FREE: Final = 2  # levels where nothing kept clients: one alone does not show that more bring nothing


@dataclass(frozen=True, slots=True)
class Most:
    """The most that a service did, as successes per second."""

    figure: Figure
    bounded_by: str = ""  # what kept clients from asking more: it is a lower bound; empty: nothing did


@dataclass(frozen=True, slots=True)
class Reached:
    """A curve that has a capacity, with its cases."""

    group: CurveCases
    capacity: Capacity
    bounded_by: str  # what kept clients from asking more; empty: nothing did


def most_of(curve: Curve, found: Capacity, *, beside: Callable[[Step], float] = lambda _: 0.0) -> Most:
    """Return the capacity over the levels that are trials of it; a lower bound where clients were kept.

    Args:
        curve: That reached it.
        found: What the curve says of it.
        beside: Successes per second of a step that belong to the capacity beside those of the load.
    """
    plateau = _plateau(curve, found)
    why = _bound(plateau)
    steps = [step for step, kept in plateau if why or not kept]
    figure = plateau_figure(curve, found, steps, beside=beside)
    return Most(_at_least(figure, why) if why else figure, why)


def bounded_by(curve: Curve, found: Capacity) -> str:
    """What kept clients from asking more on the levels of the capacity; empty: enough are free of it."""
    return _bound(_plateau(curve, found))


def _plateau(curve: Curve, found: Capacity) -> list[tuple[Step, str]]:
    """The levels of the capacity, each with what kept clients from asking more there; empty: nothing did."""
    return [(step, _kept(curve, step)) for step in plateau_steps(curve, found)]


def _bound(plateau: Sequence[tuple[Step, str]]) -> str:
    kept = [why for _, why in plateau if why]
    return kept[-1] if kept and len(plateau) - len(kept) < FEWEST_FREE else ""


def _kept(curve: Curve, step: Step) -> str:
    if accept_drops.are_kept_waiting(curve, step):
        return WAITED
    return GENERATOR if gen_bottleneck.is_limit(curve, step) else ""


def _at_least(figure: Figure, why: str) -> Figure:
    """The lower end of an interval, open above; where that is open, what was reached."""
    if not isinstance(figure, Estimate):
        return figure
    least = figure.point if figure.low is None else figure.low
    return replace(figure, point=least, low=least, high=None, method=f"lower bound: {why}; {figure.method}")
