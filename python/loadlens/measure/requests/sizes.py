"""Sizes of response bodies, from the sample log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadlens.estimate.interval import Floats
from loadlens.measure.requests.log_rows import ANSWERED, ended, seconds, thinning_of, weights, whole
from loadlens.measure.source import TrialSource

COLUMNS = ("done_ns", "body_bytes", "thinned")


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """Bytes of decoded bodies by interval, as the rows of requests have them."""

    sums: Floats
    squares: Floats
    counts: Floats  # rows
    largest: int | None  # none: no row was kept
    thinned: int  # k: each row stands for 2^k requests


def read(source: TrialSource, stream: int, step: int | None, edges: Floats) -> Sizes:
    """Gather the answers that ended between the first and the last edge.

    Args:
        stream: Index of the stream in the plan.
        step: Of one step, or of all.
        edges: Of the intervals, seconds since t0; shape (intervals + 1,).
    """
    rows = ended(source, COLUMNS, edges[0], edges[-1], stream=stream, step=step, outcomes=ANSWERED)
    done_s = np.clip(seconds(rows, "done_ns"), edges[0], edges[-1])
    bodies, each = whole(rows, "body_bytes").astype(np.float64), weights(rows)
    sums, squares, counts = (
        np.histogram(done_s, edges, weights=each * bodies**power)[0] for power in (1, 2, 0)
    )
    return Sizes(sums, squares, counts, int(bodies.max()) if bodies.size else None, thinning_of(rows))
