"""Times in which a service completed nothing though it should have, from the longest recorded gaps."""

from __future__ import annotations

import numpy as np

from loadlens.estimate.interval import Floats, Insufficient
from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.estimate.pauses import Pauses, pauses
from loadlens.estimate.probes import idle_time
from loadlens.model.counters import Counters


def read(counters: Counters, stream: str, response: IntervalCounts, seconds: float) -> Pauses | Insufficient:
    """Return the pauses of a stream in the measured part, without the generator's own stalls.

    Args:
        counters: Counters of all streams and the generator.
        stream: Name of the stream.
        response: Response times of the stream: users in step with each other complete nothing while all wait,
            so a pause lasts several of the shortest.
        seconds: Length of the measured part.
    """
    rows = counters.of(stream, "measure")
    gaps = [
        (row.max_gap_at_s, row.max_gap_s)
        for row in rows
        if row.max_gap_s is not None and row.max_gap_at_s is not None
    ]
    if not gaps:
        return Insufficient("gaps between completions were not recorded")
    shortest = idle_time(response)
    if isinstance(shortest, Insufficient):
        return Insufficient(f"{response.observed} requests: too few to distinguish a pause from chance")
    own_begin, own_end = counters.stalls
    return pauses(
        np.array([at for at, _ in gaps]),
        np.array([length for _, length in gaps]),
        completions=sum(row.answered for row in rows),
        seconds=seconds,
        idle_s=shortest,
        own_begin_s=np.array(own_begin),
        own_end_s=np.array(own_end),
    )


def without(paused: Pauses | Insufficient, edges_s: Floats) -> Floats:
    """Return 1 for each interval between the edges without a pause, 0 for the others, shape (intervals,)."""
    if isinstance(paused, Insufficient):
        return np.ones(edges_s.size - 1)
    begin, end = paused.begin_s[:, None], (paused.begin_s + paused.length_s)[:, None]
    return np.asarray(~((begin < edges_s[1:]) & (end > edges_s[:-1])).any(axis=0), dtype=np.float64)
