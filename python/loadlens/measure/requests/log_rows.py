"""Rows of the log of requests: those that ended in a part of a trial, and their columns as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from loadlens.estimate.interval import Floats, Ints
from loadlens.model.trial import Outcome

if TYPE_CHECKING:
    import polars as pl

    from loadlens.measure.source import TrialSource

FOREVER_S = 1e9  # beyond the end of any trial
NOT_KEPT = "the record keeps no rows of single requests"
ANSWERED = (Outcome.OK, Outcome.UNEXPECTED_STATUS, Outcome.CHECK_FAILED)


def ended(
    source: TrialSource,
    columns: Iterable[str],
    begin_s: float,
    end_s: float,
    *,
    stream: int | None = None,
    step: int | None = None,
    outcomes: Iterable[Outcome] = tuple(Outcome),
) -> pl.DataFrame:
    """Return the requests that ended in [begin_s, end_s], seconds since t0, of all streams and steps or one.

    Args:
        columns: Columns to return, besides those that the choice needs.
    """
    import polars as pl

    kept = pl.col("outcome").is_in([int(outcome) for outcome in outcomes]) & pl.col("done_ns").is_between(
        round(begin_s * 1e9), round(end_s * 1e9)
    )
    read = [*columns, "outcome", "done_ns"]
    for column, only in (("stream", stream), ("step", step)):
        if only is not None:
            read.append(column)
            kept &= pl.col(column) == only
    return source.samples(tuple(dict.fromkeys(read))).filter(kept)


def seconds(rows: pl.DataFrame, column: str) -> Floats:
    """Return a column of times in seconds since t0."""
    return rows[column].to_numpy().astype(np.float64) / 1e9


def whole(rows: pl.DataFrame, column: str) -> Ints:
    """Return a column of whole numbers."""
    return rows[column].to_numpy().astype(np.int64)


def stands_for(rows: pl.DataFrame) -> Floats:
    """Return how many requests each row of a thinned log stands for."""
    return np.exp2(whole(rows, "thinned").astype(np.float64))


def weights(rows: pl.DataFrame) -> Floats:
    """Weigh the rows of a thinned log; their sum is the number of equal rows that would say as much.

    Rows that all stand for as many requests weigh 1 each: an interval is as wide as the number of rows makes
    it, not that of the requests (the effective sample size, Kish 1965).
    """
    each = stands_for(rows)
    return each * (each.sum() / (each @ each)) if rows.height else each


def is_thinned(rows: pl.DataFrame) -> bool:
    """True if some requests are not in the log."""
    return thinning_of(rows) > 0


def thinning_of(rows: pl.DataFrame) -> int:
    """Return k: the most thinned row stands for 2^k requests."""
    return int(whole(rows, "thinned").max(initial=0))


def thinning(source: TrialSource, stream: int) -> int | None:
    """Return k: a row of this stream stands for up to 2^k requests; none without any row."""
    import polars as pl

    own = [part.filter(pl.col("stream") == stream) for part in source.sample_parts(("stream", "thinned"))]
    return max((thinning_of(part) for part in own if part.height), default=None)


def chosen(thinned: int) -> str:
    """Say which requests a figure of a thinned log is from: `from 1 of every 8 requests`."""
    return f"from 1 of every {2**thinned:,} requests"
