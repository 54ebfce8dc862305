"""When a service completed nothing though it should have, from the longest gap of each recorded interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loadlens.estimate.interval import Floats, Insufficient
from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.estimate.pauses import Pauses, pauses
from loadlens.estimate.probes import idle_time
from loadlens.measure.source import Json


def read(
    counters: Sequence[Json], stream: str, response: IntervalCounts, seconds: float
) -> Pauses | Insufficient:
    """Pauses of a stream in the measured part; the generator's own stalls are left out.

    Args:
        counters: Rows of counters.jsonl.
        stream: Its name.
        response: Its response times: users in step with each other complete nothing while all of them wait,
            so a pause lasts several of the shortest.
        seconds: Length of the measured part.
    """
    rows = [row for row in counters if row["phase"] == "measure" and row["stream"] == stream]
    kept = [row for row in rows if row.get("max_gap_s") is not None and row.get("max_gap_at_s") is not None]
    if not kept:
        return Insufficient("gaps between completions were not recorded")
    shortest = idle_time(response)
    if isinstance(shortest, Insufficient):
        return Insufficient(f"{response.observed} requests: too few to tell a pause from chance")
    stalls = [
        (float(row["start_s"]) - longest, float(row["start_s"]) + float(row["length_s"]))
        for row in counters
        if (longest := max(row.get("generator", {}).get("stalled_s") or (), default=0.0)) > 0
    ]
    return pauses(
        np.array([float(row["max_gap_at_s"]) for row in kept]),
        np.array([float(row["max_gap_s"]) for row in kept]),
        completions=sum(int(row.get("answered", 0)) for row in rows),
        seconds=seconds,
        idle_s=shortest,
        own_begin_s=np.array([begin for begin, _ in stalls]),
        own_end_s=np.array([end for _, end in stalls]),
    )


def without(found: Pauses | Insufficient, edges_s: Floats) -> Floats:
    """1 for each interval between the edges in which no pause lies, 0 for the others, shape (intervals,)."""
    if isinstance(found, Insufficient):
        return np.ones(edges_s.size - 1)
    begin, end = found.begin_s[:, None], (found.begin_s + found.length_s)[:, None]
    return np.asarray(~((begin < edges_s[1:]) & (end > edges_s[:-1])).any(axis=0), dtype=np.float64)
