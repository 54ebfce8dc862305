"""Moments of an evaluation over a part of a trial; the same for a server and for ourselves."""

from __future__ import annotations

import math
from dataclasses import dataclass

from loadlens.promql.parse import PromqlError, parse
from loadlens.promql.syntax import WHOLE_RANGE, reach_s

MOST_STEPS = 1_000


@dataclass(frozen=True, slots=True)
class Moments:
    """From the first to the last, both ends included, at equal steps."""

    first_s: float
    last_s: float
    step_s: float

    @property
    def count(self) -> int:
        """Number of moments."""
        return math.floor((self.last_s - self.first_s) / self.step_s + 1e-9) + 1


def moments(expression: str, begin_s: float, end_s: float, step_s: float) -> Moments:
    """Return when to evaluate an expression over the part [begin, end].

    Where its ranges are shorter than the part they lie within it, so that nothing of the warm-up gets in; one
    over the whole range is evaluated once, at the end.
    """
    if WHOLE_RANGE in expression:
        return Moments(end_s, end_s, step_s)
    try:
        reach = reach_s(parse(expression))
    except PromqlError:
        reach = 0.0  # a server may understand it
    length = end_s - begin_s
    room = length - reach if reach < length else length
    step = max(step_s, room / MOST_STEPS)
    return Moments(end_s - math.floor(room / step + 1e-9) * step, end_s, step)
