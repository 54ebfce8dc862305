"""Requests that a service turned away, by status: what it let through meanwhile, and how evenly.

From the begin of the load, warm-up included: what a bucket lets through at once is spent there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate.interval import Floats, Interval
from loadlens.estimate.rate_limiter import LEAST_REFUSED, Limiter, limiter
from loadlens.model.counters import Counters, StreamCounters

TOO_MANY, UNAVAILABLE = 429, 503  # RFC 6585, RFC 9110: what refusals are answered with
GRAIN = 2.0  # requests that the edges of an interval may add to a burst or take from it


@dataclass(frozen=True, slots=True)
class Refused:
    """Refusals of one status in one trial, and what was let through between them."""

    status: int
    share: Interval
    rate: Interval  # successes per second between the first refusal and the last
    burst: Interval  # successes beyond that rate until the first refusal
    dispersion: float  # variance over mean of the successes of an interval
    ended_per_s: float  # requests that ended meanwhile, refused or not


def read(counters: Counters, stream: str) -> tuple[Refused, ...]:
    """Read what was refused; nothing where hardly a request was, or for too short a time.

    Args:
        counters: Of all streams.
        stream: Name of the load.
    """
    rows = sorted(counters.of(stream, "warmup", "measure"), key=lambda row: row.start_s)
    lengths = np.array([row.length_s for row in rows])
    if not rows or not (lengths > 0).all():
        return ()
    accepted = np.array([float(row.ok) for row in rows])
    latency = _mean_service_s(rows)
    refusals = []
    for status in (TOO_MANY, UNAVAILABLE):
        refused = np.array([float(row.status.get(str(status), 0)) for row in rows])
        if refused.sum() < LEAST_REFUSED * (accepted.sum() + refused.sum()) or not refused.any():
            continue
        limit = limiter(accepted, refused, lengths)
        if isinstance(limit, Limiter):
            refusals.append(_of(status, limit, accepted, refused, lengths, latency))
    return tuple(refusals)


def _of(
    status: int, limit: Limiter, accepted: Floats, refused: Floats, lengths: Floats, latency: float
) -> Refused:
    # What was let in within the last response time had not been answered yet: it belongs to the burst.
    under_way = limit.rate_per_s.point * latency if limit.burst > 0 else 0.0
    burst = limit.burst + under_way
    return Refused(
        status=status,
        share=limit.refused,
        rate=limit.rate_per_s,
        burst=Interval(burst, max(0.0, burst - GRAIN), burst + GRAIN, burst, "counted to an interval's edge"),
        dispersion=limit.dispersion,
        ended_per_s=float((accepted + refused).sum() / lengths.sum()),
    )


def _mean_service_s(rows: Sequence[StreamCounters]) -> float:
    cells = [cell for row in rows for cell in row.of_class("ok")]
    count = sum(cell.count for cell in cells)
    return sum(cell.service_sum_s for cell in cells) / count if count else 0.0


def by_status(trials: Sequence[tuple[Refused, ...]]) -> Mapping[int, list[Refused]]:
    """Return the refusals of each status that every trial has."""
    refusals: dict[int, list[Refused]] = {}
    for trial in trials:
        for refused in trial:
            refusals.setdefault(refused.status, []).append(refused)
    return {status: parts for status, parts in refusals.items() if len(parts) == len(trials)}
