"""Progress of a load on several nodes as that of one: counts, rates and histograms are added.

Quantiles are not added. Of the last second they are read from the sum of the coarse histograms that engines
report (20 bins per decade); of the time so far there is no histogram, and none is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from loadlens.engine import Progress

PHASES: Final = ("starting", "warmup", "measure", "drain", "done")
COUNTS: Final = ("due", "issued", "answered", "ok", "failed", "in_flight", "waiting", "dropped")
BAD: Final = ("unexpected_status", "check_failed", "failed")


def total(parts: Sequence[Progress], t0_monotonic_ns: int) -> Progress:
    """Return the progress of all nodes together.

    Args:
        parts: Of each node, of the same plan; at least one.
        t0_monotonic_ns: The start on the clock here.
    """
    if len(parts) == 1:
        return {**parts[0], "t0_monotonic_ns": t0_monotonic_ns}
    busy = [part["generator"]["busy"] for part in parts if part["generator"]["busy"] is not None]
    late = [part["generator"]["lag_p99_s"] for part in parts if part["generator"]["lag_p99_s"] is not None]
    return {
        "phase": min((part["phase"] for part in parts), key=PHASES.index),
        "elapsed_s": max(part["elapsed_s"] for part in parts),
        "total_s": parts[0]["total_s"],
        "t0_monotonic_ns": t0_monotonic_ns,
        "streams": [_stream(each) for each in zip(*(part["streams"] for part in parts), strict=True)],
        "generator": {"busy": max(busy, default=None), "lag_p99_s": max(late, default=None)},
    }


def _stream(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    seconds = [part["last"] for part in parts]
    so_far = [part["so_far"] for part in parts]
    counts: Counter[float] = Counter()
    for second in seconds:
        for upper_s, count in second["histogram"]:
            counts[upper_s] += count
    histogram = sorted(counts.items())
    return {
        "name": parts[0]["name"],
        **{key: sum(part[key] for part in parts) for key in COUNTS},
        "last": {
            "seconds": max(second["seconds"] for second in seconds),
            "rps": sum(second["rps"] for second in seconds),
            "p50_s": quantile(histogram, 0.50),
            "p99_s": quantile(histogram, 0.99),
            **{key: sum(second[key] for second in seconds) for key in BAD},
            "histogram": [list(each) for each in histogram],
        },
        "so_far": {
            "rps": sum(each["rps"] for each in so_far),
            "p50_s": None,
            "p99_s": None,
            **{key: sum(each[key] for each in so_far) for key in BAD},
        },
    }


def quantile(histogram: Sequence[tuple[float, int]], p: float) -> float | None:
    """Return the upper end of the bin that holds a quantile; None without any count.

    Args:
        histogram: Upper ends in seconds and counts, in order.
        p: From 0 to 1.
    """
    needed = p * sum(count for _, count in histogram)
    passed = 0
    for upper_s, count in histogram:
        passed += count
        if count and passed >= needed:
            return upper_s
    return None
