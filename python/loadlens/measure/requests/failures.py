"""Failed requests: by step, outcome and status, with the times that they took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loadlens.estimate.interval import Floats
from loadlens.measure.source import StreamPlan, TrialSource
from loadlens.model.result import EngineResult
from loadlens.model.trial import Outcome

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("stream", "step", "outcome", "status", "due_ns", "sent_ns", "done_ns", "thinned")
OF_AB = ("stream", "step", "outcome", "done_ns", "body_bytes", "thinned")
NOT_ENDED = (Outcome.IN_FLIGHT, Outcome.WAITING, Outcome.DROPPED)
ANSWERED = (Outcome.OK, Outcome.UNEXPECTED_STATUS, Outcome.CHECK_FAILED)
NOT_FAILURES = (Outcome.OK, Outcome.IN_FLIGHT, Outcome.WAITING, Outcome.DROPPED)


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """Requests of one step that ended in one way in the measured part."""

    stream: str
    step: str
    outcome: str
    status: int  # 0: no answer
    count: int
    seconds: Floats | None  # from due to the end, or from sent; none when the sample log was thinned
    first_s: float  # since t0
    last_s: float


def read(source: TrialSource, plans: Sequence[StreamPlan], begin: float, end: float) -> tuple[Failure, ...]:
    """Gather the failures of the measured part from the sample log; counts allow for thinning."""
    import polars as pl

    if source.result is None or not _has_failures(source.result):
        return ()
    rows = source.samples(COLUMNS).filter(
        ~pl.col("outcome").is_in([int(outcome) for outcome in NOT_FAILURES])
        & (pl.col("done_ns") >= round(begin * 1e9))
        & (pl.col("done_ns") <= round(end * 1e9))
    )
    failures = []
    for key, part in rows.group_by(["stream", "step", "outcome", "status"], maintain_order=True):
        stream, step, outcome, status = (int(str(field)) for field in key)
        thinned = part["thinned"].to_numpy().astype(np.int64)
        done = part["done_ns"].to_numpy().astype(np.float64)
        due = _due(part)
        failures.append(
            Failure(
                stream=plans[stream].name,
                step=plans[stream].steps[step].name,
                outcome=Outcome(outcome).name.lower(),
                status=status,
                count=int(np.left_shift(1, thinned).sum()),
                seconds=None if thinned.any() else (done - due) / 1e9,
                first_s=float(done.min()) / 1e9,
                last_s=float(done.max()) / 1e9,
            )
        )
    return tuple(sorted(failures, key=lambda f: -f.count))


def _due(rows: pl.DataFrame) -> Floats:
    """Return when each request was due; when it was sent where what made the load knows no due times (-1)."""
    due = rows["due_ns"].to_numpy().astype(np.float64)
    if (due >= 0).all():
        return due
    return np.where(due < 0, rows["sent_ns"].to_numpy().astype(np.float64), due)


@dataclass(frozen=True, slots=True, eq=False)
class AbCounts:
    """ApacheBench's counts by interval, and the lengths of bodies that decide it."""

    failed: Floats
    ended: Floats
    first_bytes: int | None  # of the first answer's body; none: nothing was answered
    least_bytes: int
    most_bytes: int


def as_ab_counts(source: TrialSource, stream: int, step: int | None, edges: Floats) -> AbCounts | None:
    """Count failures as ApacheBench does: not answered whole, or with a body not as long as the first.

    Args:
        stream: Index of the stream in the plan.
        step: Of one step, or of all; then the first answer of all is the measure, as ab has one URL.
        edges: Of the intervals, seconds since t0; shape (intervals + 1,).

    Returns:
        Failed and ended requests by interval, shape (intervals,); none when the sample log was thinned, which
        leaves the first answer out.
    """
    import polars as pl

    rows = source.samples(OF_AB).filter(
        (pl.col("stream") == stream)
        & ~pl.col("outcome").is_in([int(outcome) for outcome in NOT_ENDED])
        & (pl.col("done_ns") >= round(edges[0] * 1e9))
        & (pl.col("done_ns") <= round(edges[-1] * 1e9))
    )
    if step is not None:
        rows = rows.filter(pl.col("step") == step)
    if (rows["thinned"] > 0).any():
        return None
    rows = rows.sort("done_ns")
    is_answered = rows["outcome"].is_in([int(outcome) for outcome in ANSWERED]).to_numpy()
    lengths = rows["body_bytes"].to_numpy()
    first = lengths[is_answered][:1]
    is_failed = ~is_answered | (lengths != (first[0] if first.size else 0))
    done_s = np.clip(rows["done_ns"].to_numpy().astype(np.float64) / 1e9, edges[0], edges[-1])
    totals, _ = np.histogram(done_s, edges)
    hits, _ = np.histogram(done_s[is_failed], edges)
    answered = lengths[is_answered]
    return AbCounts(
        hits.astype(np.float64),
        totals.astype(np.float64),
        int(first[0]) if first.size else None,
        int(answered.min()) if answered.size else 0,
        int(answered.max()) if answered.size else 0,
    )


def _has_failures(result: EngineResult) -> bool:
    if result.external is not None:
        return bool(result.external.requests.failed or result.external.requests.unexpected_status)
    return any(stream.requests.bad for stream in result.streams)
