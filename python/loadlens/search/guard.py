"""Looks at a load while it runs: too many requests a second, or hardly any that succeed, end it at once.

A plan keeps below the rate cap by what was seen so far. A service that suddenly answers faster, as one does
that only fails, is seen here, some ten times a second.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from loadlens.model.plain import read
from loadlens.model.search import Bounds

OVER: Final = 1.05  # of the cap, and what chance adds within a second
CHANCE: Final = 3.0  # standard deviations of a Poisson count
WINDOW_S: Final = 1.0  # users who wait for each other ask in bursts
FEWEST_FAILURES: Final = 20
HARM_NOW: Final = 0.5  # of what ended in the last second
TIMES_KNOWN: Final = 2.0  # the time of a success at lower loads: how long the first one may take


@dataclass(frozen=True, slots=True)
class _LastSecond:
    rps: float  # successes
    seconds: float
    failed: int
    unexpected_status: int
    check_failed: int


@dataclass(frozen=True, slots=True)
class _Stream:
    issued: int
    last: _LastSecond


@dataclass(frozen=True, slots=True)
class _Progress:
    phase: str
    elapsed_s: float
    streams: tuple[_Stream, ...]


class Guard:
    """Checks the running load; one for each trial.

    Args:
        bounds: Of the search.
        success_s: Mean response time of successes at lower loads, the longest; 0: not known. Failures may
            come sooner than any success can, so a load that has just begun is not judged by them.
        goes_on: Failures do not end the load: how it fails is of interest, and the load is short.
    """

    def __init__(self, bounds: Bounds, success_s: float = 0.0, *, goes_on: bool = False) -> None:
        self._goes_on = goes_on
        self._cap = bounds.rate_cap_per_s
        self._patience_s = max(WINDOW_S, TIMES_KNOWN * success_s)
        self._succeeded_s = 0.0  # when successes were last seen; at first the begin of the load
        self._issued: deque[tuple[float, int]] = deque([(0.0, 0)])
        self.tripped: Literal["rate", "harm"] | None = None

    def __call__(self, progress: Mapping[str, object]) -> str | None:
        """Return why the load must end; none if it may go on."""
        now = read(_Progress, progress)
        if now.phase not in ("warmup", "measure") or not now.streams:
            return None
        rate = self._rate(now)
        if rate > OVER * self._cap + CHANCE * math.sqrt(self._cap):
            self.tripped = "rate"
            return f"{rate:,.0f} requests were sent a second, at most {self._cap:,.0f} are allowed"
        words = None if self._goes_on else self._harm(now.elapsed_s, now.streams[0].last)
        if words is not None:
            self.tripped = "harm"
        return words

    def _rate(self, progress: _Progress) -> float:
        """Return requests of all streams per second, over the last second or since the start."""
        now, issued = progress.elapsed_s, sum(stream.issued for stream in progress.streams)
        self._issued.append((now, issued))
        while len(self._issued) > 2 and now - self._issued[1][0] >= WINDOW_S:
            self._issued.popleft()
        then, before = self._issued[0]
        return (issued - before) / max(WINDOW_S, now - then)

    def _harm(self, now_s: float, last: _LastSecond) -> str | None:
        """Return what is wrong: half of the last second's requests failed, or none succeeded for long.

        Refusals count as unexpected answers here; a service that refuses still serves some.
        """
        ok = last.rps * last.seconds
        if ok:
            self._succeeded_s = now_s
        if now_s < self._patience_s:
            return None
        unexpected = last.unexpected_status + last.check_failed
        ended = ok + last.failed + unexpected
        if last.failed >= max(FEWEST_FAILURES, HARM_NOW * ended):
            return f"{last.failed} of {ended:.0f} requests came to nothing within a second"
        is_overdue = now_s - self._succeeded_s >= self._patience_s
        if not ok and is_overdue and unexpected + last.failed >= FEWEST_FAILURES:
            return f"not one of {ended:.0f} requests succeeded within a second"
        return None
