"""Bytes of answers in a trial, and the share of a request's time that they took to come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Insufficient, Interval, Measured
from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.model.counters import Counters

FEWEST = 20  # answers whose first and last bytes were timed


@dataclass(frozen=True, slots=True, eq=False)
class Received:
    """Answers of the load in the measured part."""

    bytes_per_s: Measured
    waited: Measured  # mean seconds until the first byte
    coming: Measured  # from there to the last


def read(
    counters: Counters, stream: str, first_byte: IntervalCounts, last_byte: IntervalCounts
) -> Received | None:
    """Summarise what came; none where the engine did not count bytes.

    Args:
        counters: Of all streams.
        stream: Name of the load.
        first_byte: Times until the first byte, of successes.
        last_byte: From there to the last, of the same.
    """
    rows = [row for row in counters.of(stream, "measure") if row.length_s > 0]
    counted = [row.bytes_in_wire for row in rows if row.bytes_in_wire is not None]
    if not rows or len(counted) < len(rows):
        return None
    sums, lengths = np.array(counted, dtype=np.float64), np.array([row.length_s for row in rows])
    rate = within_trial.mean(sums, lengths)
    if isinstance(rate, Insufficient):
        rate = Interval(float(sums.sum() / lengths.sum()), None, None, float(sums.size), "bytes over time")
    return Received(
        bytes_per_s=rate,
        waited=_mean(first_byte),
        coming=_mean(last_byte),
    )


def _mean(times: IntervalCounts) -> Measured:
    """By the middle of each class, which is narrow."""
    if times.observed < FEWEST:
        return Insufficient(f"{times.observed} answers were timed in parts, needs {FEWEST}")
    point = float((times.middle * times.count).sum() / times.observed)
    return Interval(point, None, None, float(times.observed), "mean over classes")
