"""Sizes of response bodies, from the sample log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadlens.estimate.interval import Floats
from loadlens.measure.requests.failures import ANSWERED
from loadlens.measure.source import TrialSource

COLUMNS = ("stream", "step", "outcome", "done_ns", "body_bytes", "thinned")


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """Bytes of decoded bodies by interval; a thinned log is weighed by what each row stands for."""

    sums: Floats
    squares: Floats
    counts: Floats
    largest: int | None  # none: nothing was answered


def read(source: TrialSource, stream: int, step: int | None, edges: Floats) -> Sizes:
    """Gather the answers that ended between the first and the last edge.

    Args:
        stream: Index of the stream in the plan.
        step: Of one step, or of all.
        edges: Of the intervals, seconds since t0; shape (intervals + 1,).
    """
    import polars as pl

    rows = source.samples(COLUMNS).filter(
        (pl.col("stream") == stream)
        & pl.col("outcome").is_in([int(outcome) for outcome in ANSWERED])
        & (pl.col("done_ns") >= round(edges[0] * 1e9))
        & (pl.col("done_ns") <= round(edges[-1] * 1e9))
    )
    if step is not None:
        rows = rows.filter(pl.col("step") == step)
    done_s = np.clip(rows["done_ns"].to_numpy().astype(np.float64) / 1e9, edges[0], edges[-1])
    bodies = rows["body_bytes"].to_numpy().astype(np.float64)
    weights = np.left_shift(1, rows["thinned"].to_numpy().astype(np.int64)).astype(np.float64)
    sums, squares, counts = (
        np.histogram(done_s, edges, weights=weights * bodies**power)[0] for power in (1, 2, 0)
    )
    return Sizes(sums, squares, counts, int(bodies.max()) if bodies.size else None)
