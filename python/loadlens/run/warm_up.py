"""Settling time of a trial, which sets the warm-up of the next trial of its case."""

from __future__ import annotations

import math
from pathlib import Path

from loadlens.model.workload import LOAD
from loadlens.record import IntervalHistogram, open_trial

WINDOW_S = 1.0


def settled_after_ns(trial: Path) -> int:
    """Return nanoseconds of load until the median response time was steady; 0 if at once or never."""
    import numpy as np

    from loadlens.estimate.interval import Insufficient
    from loadlens.estimate.steady_state import steadiness

    record = open_trial(trial)
    windows: dict[int, list[IntervalHistogram]] = {}
    for part in record.intervals():
        if (part.stream, part.klass, part.kind) == (LOAD, "ok", "response"):
            windows.setdefault(int(part.start_s // WINDOW_S), []).append(part)
    if not windows:
        return 0
    medians = np.full(max(windows) + 1, math.nan)
    for second, parts in windows.items():
        values = np.concatenate([part.values for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        order = np.argsort(values)
        reached = np.cumsum(counts[order])
        medians[second] = values[order][np.searchsorted(reached, reached[-1] / 2)]
    steady = steadiness(medians)
    if isinstance(steady, Insufficient) or not steady.is_steady:
        return 0
    return int(steady.cut * WINDOW_S * 1e9)
