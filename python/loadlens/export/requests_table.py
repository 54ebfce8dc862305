"""Requests of a run as one Parquet file: a row each, with names in place of codes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from loadlens import named_pipes, record
from loadlens.errors import RecordError, reason_of
from loadlens.model.trial import SAMPLE, Outcome
from loadlens.record.sample_rows import NODE

if TYPE_CHECKING:
    import polars as pl

COLUMNS = (
    "seq",
    "due_ns",
    "sent_ns",
    "first_ns",
    "done_ns",
    "user",
    "connection",
    "wire_bytes",
    "body_bytes",
)


def write_requests(run: Path, path: Path) -> None:
    """Write the kept rows of all sealed trials (docs/reference/exports.md).

    Raises:
        RecordError: The file cannot be written.
    """
    import polars as pl

    parts = [part for trial in record.open_run(run).trials if trial.is_sealed for part in frames(trial)]
    content = io.BytesIO()  # Polars says of a file that is full only that its content is wrong
    (pl.concat(parts) if parts else pl.DataFrame()).write_parquet(content)
    try:
        with open(path, "wb", opener=named_pipes.opener) as file:
            file.write(content.getbuffer())
    except OSError as fault:
        raise RecordError(f"cannot write {path}: {reason_of(fault)}", where="--out") from None


def frames(trial: record.TrialRecord) -> Iterator[pl.DataFrame]:
    """Yield the rows of each stream of a trial."""
    import polars as pl

    if trial.result is None or trial.t0_unix_ns is None:
        return
    t0_ns = trial.t0_unix_ns
    outcomes = {outcome.value: outcome.name.lower() for outcome in Outcome}
    rows = trial.samples([*(name for name, _ in SAMPLE.fields), NODE])
    for index, stream in enumerate(trial.plan.streams):
        steps = [step for scenario in stream.scenarios for step in scenario.steps]
        of = rows.filter(pl.col("stream") == index)
        traces = [trace and trace.trace_id for trace in trial.traces(of)]
        yield of.select(
            case=pl.lit(trial.case.slug),
            trial=pl.lit(trial.name),
            stream=pl.lit(stream.name),
            step=pl.col("step").replace_strict({n: step.name for n, step in enumerate(steps)}),
            outcome=pl.col("outcome").replace_strict(outcomes),
            status=pl.col("status"),
            due_at=pl.when(pl.col("due_ns") >= 0)
            .then(pl.from_epoch(pl.col("due_ns") + t0_ns, time_unit="ns").dt.replace_time_zone("UTC")),
            response_s=_seconds("due_ns", "done_ns"),
            service_s=_seconds("sent_ns", "done_ns"),
            first_byte_s=_seconds("sent_ns", "first_ns"),
            **{name: pl.col(name) for name in COLUMNS},
            stands_for=2 ** pl.col("thinned").cast(pl.UInt64),
            phase=pl.when(pl.col("flags") & 2 > 0).then(pl.lit("warmup"))
            .when(pl.col("flags") & 4 > 0).then(pl.lit("drain")).otherwise(pl.lit("measure")),
            trace_id=pl.Series(traces, dtype=pl.String),
            node=pl.col(NODE),
        )  # fmt: skip


def _seconds(begin: str, end: str) -> pl.Expr:
    """Return a time in seconds; null if one of both moments never came."""
    import polars as pl

    both_came = (pl.col(begin) >= 0) & (pl.col(end) >= 0)
    return pl.when(both_came).then((pl.col(end) - pl.col(begin)) / 1e9)
