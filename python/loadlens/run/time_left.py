"""Remaining time of a run: the planned load plus the observed overhead per trial."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

FEWEST = 3  # finished trials before an interval is given


@dataclass(frozen=True, slots=True)
class Remaining:
    """Remaining seconds; the interval is None until enough trials have finished."""

    seconds: float
    low: float | None = None
    high: float | None = None


@dataclass(slots=True)
class Clock:
    """Overhead of trials: services, resets, idle brackets, sealing."""

    overheads_s: list[float] = field(default_factory=list)

    def learn(self, planned_s: float, took_s: float) -> None:
        """Add one finished trial."""
        self.overheads_s.append(max(0.0, took_s - planned_s))

    def left(self, planned_s: float, trials: int) -> Remaining:
        """Return planned seconds plus the median overhead of each remaining trial, with an interval.

        The interval is that of a sum of `trials` overheads around the median: twice their standard deviation,
        growing with the root of their number, and the uncertainty of the median itself.
        """
        if not self.overheads_s:
            return Remaining(planned_s)
        seconds = planned_s + statistics.median(self.overheads_s) * trials
        seen = len(self.overheads_s)
        if seen < FEWEST or trials == 0:
            return Remaining(seconds)
        spread = statistics.stdev(self.overheads_s)
        half = 2 * spread * (trials + trials**2 / seen) ** 0.5
        return Remaining(seconds, max(planned_s, seconds - half), seconds + half)
