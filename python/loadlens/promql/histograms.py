"""Quantiles of histograms that count what is at most `le`.

Source: Prometheus 2.42, promql/quantile.go, bucketQuantile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable


def bucket_quantile(p: float, buckets: Iterable[tuple[float, float]]) -> float:
    """Return the p-quantile, by interpolation within its bucket.

    Args:
        p: Level.
        buckets: (upper end, observations up to it); the last one is infinite.

    Returns:
        NaN without an infinite bucket, with fewer than two buckets or without observations; the highest
        finite end when the quantile lies above it.
    """
    if math.isnan(p):
        return math.nan
    if p < 0:
        return -math.inf
    if p > 1:
        return math.inf
    merged: dict[float, float] = {}
    for end, count in sorted(buckets):
        merged[end] = merged.get(end, 0.0) + count
    ends, counts = list(merged), list(merged.values())
    if len(ends) < 2 or not math.isinf(ends[-1]):
        return math.nan
    for place in range(1, len(counts)):  # scrapes are not atomic: a count may lag behind the one below it
        counts[place] = max(counts[place], counts[place - 1])
    observed = counts[-1]
    if observed == 0 or math.isnan(observed):
        return math.nan
    rank = p * observed
    place = next((i for i, count in enumerate(counts[:-1]) if count >= rank), len(counts) - 1)
    if place == len(counts) - 1:
        return ends[-2]
    if place == 0 and ends[0] <= 0:
        return ends[0]
    begin, below = (ends[place - 1], counts[place - 1]) if place else (0.0, 0.0)
    return begin + (ends[place] - begin) * ((rank - below) / (counts[place] - below))
