"""Looks at a load while it runs: too many requests a second, or hardly any that succeed, end it at once.

A plan keeps below the rate cap by what was seen so far. A service that suddenly answers faster, as one does
that only fails, is seen here, some ten times a second.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Literal

from loadlens.search.ladder import Bounds

OVER: Final = 1.05  # of the cap, and what chance adds within a second
CHANCE: Final = 3.0  # standard deviations of a Poisson count
WINDOW_S: Final = 1.0  # users who wait for each other ask in bursts
FEWEST_FAILURES: Final = 20
HARM_NOW: Final = 0.5  # of what ended in the last second

Progress = Mapping[str, Any]


class Guard:
    """Says why the running load must end, or nothing; one for each trial."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._issued: deque[tuple[float, int]] = deque([(0.0, 0)])
        self.tripped: Literal["rate", "harm"] | None = None

    def __call__(self, progress: Progress) -> str | None:
        """Look once."""
        if progress["phase"] not in ("warmup", "measure") or not progress["streams"]:
            return None
        rate = self._rate(progress)
        cap = self._bounds.rate_cap_per_s
        if rate > OVER * cap + CHANCE * math.sqrt(cap):
            self.tripped = "rate"
            return f"{rate:,.0f} requests were sent a second, at most {cap:,.0f} are allowed"
        words = _harm(progress["streams"][0]["last"])
        if words is not None:
            self.tripped = "harm"
        return words

    def _rate(self, progress: Progress) -> float:
        """Requests of all streams in the last second, or since the start when that is less ago."""
        now, issued = float(progress["elapsed_s"]), sum(int(s["issued"]) for s in progress["streams"])
        self._issued.append((now, issued))
        while len(self._issued) > 2 and now - self._issued[1][0] >= WINDOW_S:
            self._issued.popleft()
        then, before = self._issued[0]
        return (issued - before) / max(WINDOW_S, now - then)


def _harm(last: Mapping[str, Any]) -> str | None:
    """What is wrong with the last second: half of its requests came to nothing, or none succeeded.

    Refusals cannot be told from other unexpected answers here; a service that refuses still serves some.
    """
    ok = float(last["rps"]) * float(last["seconds"])
    lost = int(last["failed"])
    unexpected = int(last["unexpected_status"]) + int(last["check_failed"])
    ended = ok + lost + unexpected
    if lost >= max(FEWEST_FAILURES, HARM_NOW * ended):
        return f"{lost} of {ended:.0f} requests came to nothing within a second"
    if not ok and unexpected + lost >= FEWEST_FAILURES:
        return f"not one of {ended:.0f} requests succeeded within a second"
    return None
