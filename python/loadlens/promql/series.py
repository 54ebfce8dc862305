"""Samples of one series, and which of them an expression sees at a moment.

Source: Prometheus 2, promql/engine.go: a range holds both its ends, an instant sees the last sample of the
five minutes before, and nothing of a series that the last scrape of its target did not show.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LOOK_BACK_S = 300.0
# Times here are seconds as floats: the end of a range must not fall out of it by rounding.
ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True)
class Series:
    """One series in order of time; `scrapes`: when its target was asked, if that is known."""

    labels: Mapping[str, str]  # with __name__
    times: Sequence[float]  # seconds
    values: Sequence[float]
    scrapes: Sequence[float] = ()

    def at(self, when: float) -> float | None:
        """Return the value at a moment; none: there is none, it is too old, or the series is gone."""
        place = bisect_right(self.times, when + ROUNDING_S) - 1
        if place < 0 or when - self.times[place] >= LOOK_BACK_S:
            return None
        later = bisect_right(self.scrapes, self.times[place] + ROUNDING_S)
        if later < len(self.scrapes) and self.scrapes[later] <= when + ROUNDING_S:
            return None  # a later scrape did not show it
        return self.values[place]

    def between(self, begin: float, end: float) -> tuple[Sequence[float], Sequence[float]]:
        """Return times and values within a part, both ends included."""
        first = bisect_left(self.times, begin - ROUNDING_S)
        last = bisect_right(self.times, end + ROUNDING_S)
        return self.times[first:last], self.values[first:last]
