"""Parts of a sealed trial beyond its columns: its slow requests one by one, and its tables as files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from loadlens.measure.source import streams_of
from loadlens.model.trial import Outcome
from loadlens.present import words

if TYPE_CHECKING:
    import polars as pl

    from loadlens.record import TrialRecord

MOST_SLOW: Final = 50
TABLES: Final = ("samples", "connections", "readings")
ROWS_A_PART: Final = 50_000
FIRST_ON_CONNECTION: Final = 1  # a flag of a row
NO_CONNECTION: Final = 0xFFFFFFFF


def slow_requests(trial: TrialRecord) -> dict[str, Any]:
    """Return the requests of a trial that took longest from when they were due, of those that ended."""
    import polars as pl

    rows = trial.samples().filter(pl.col("done_ns") >= 0)
    response = (pl.col("done_ns") - pl.col("due_ns")).alias("response_ns")
    slowest = rows.with_columns(response).sort("response_ns", descending=True).head(MOST_SLOW)
    opened = trial.connections().select("stream", "connection", "opened_ns", "requests")
    joined = slowest.join(opened, on=["stream", "connection"], how="left", maintain_order="left")
    streams = streams_of(trial.plan)
    kept = words.plural(rows.height, "request")
    traces = trial.traces(slowest)
    return {
        "rows": [
            {**_slow(row, streams), "trace_id": trace and trace.trace_id}
            for row, trace in zip(joined.iter_rows(named=True), traces, strict=True)
        ],
        "of": rows.height,
        "words": f"the slowest {joined.height} of {kept} with a row of their own",
    }


def _slow(row: dict[str, Any], streams: Any) -> dict[str, Any]:
    stream = streams[row["stream"]]
    step = stream.steps[row["step"]]
    sent_ns, opened_ns = row["sent_ns"], row["opened_ns"]
    was_sent = sent_ns >= 0
    return {
        "at_s": row["due_ns"] / 1e9,
        "stream": stream.name,
        "step": step.name,
        "request": step.request,
        "outcome": words.OUTCOMES[Outcome(row["outcome"])],
        "status": row["status"] or None,
        "response_s": row["response_ns"] / 1e9,
        "service_s": (row["done_ns"] - sent_ns) / 1e9 if was_sent else None,
        "lag_s": (sent_ns - row["due_ns"]) / 1e9 if was_sent else None,
        "first_byte_s": (row["first_ns"] - sent_ns) / 1e9 if was_sent and row["first_ns"] >= 0 else None,
        "user": row["user"],
        "connection": None if row["connection"] == NO_CONNECTION else row["connection"],
        "connection_age_s": None if opened_ns is None or not was_sent else (sent_ns - opened_ns) / 1e9,
        "connection_requests": row["requests"],
        "is_first_on_connection": bool(row["flags"] & FIRST_ON_CONNECTION),
        "stands_for": 1 << row["thinned"],
    }


def frames(trial: TrialRecord, table: str) -> Iterator[pl.DataFrame]:
    """Yield a table of a trial in frames of bounded size, at least one."""
    if table == "samples":
        from loadlens.model.trial import SAMPLE
        from loadlens.record.sample_rows import NODE

        names = [name for name, _ in SAMPLE.fields]
        names += [NODE] if trial.nodes else []
        parts = trial.sample_parts(names)
        first = next(parts, None)
        yield trial.samples().select(names) if first is None else first
        yield from parts
    else:
        whole = trial.connections() if table == "connections" else trial.readings()
        yield whole[:ROWS_A_PART]
        yield from whole[ROWS_A_PART:].iter_slices(ROWS_A_PART)


def as_csv(trial: TrialRecord, table: str) -> Iterator[bytes]:
    """Yield a table of a trial as CSV, its head first."""
    has_head = False
    for frame in frames(trial, table):
        yield frame.write_csv(include_header=not has_head).encode()
        has_head = True


def as_parquet(trial: TrialRecord, table: str) -> bytes:
    """Return a table of a trial as Parquet: the file of the record, or one that is made of its rows."""
    import polars as pl

    path = trial.table_file(table)
    if path is not None:
        return path.read_bytes()
    content = io.BytesIO()
    pl.concat(frames(trial, table)).write_parquet(content)
    return content.getvalue()


def points_as_csv(trial: dict[str, Any]) -> bytes:
    """Return the columns of a trial's document as CSV, a row for each point and stream."""
    text = io.StringIO()
    axis, streams = trial["points"], trial["streams"]
    first = streams[0] if streams else {}
    names = [name for name, of in first.items() if isinstance(of, list) and name != "steps"]
    own = {name: of for name, of in trial["generator"].items() if isinstance(of, list)}
    writer = csv.writer(text)
    writer.writerow([*axis, "stream", *names, *own])
    for at, point in enumerate(zip(*axis.values(), strict=True)):
        for stream in streams:
            values = [stream[name][at] for name in names]
            writer.writerow([*point, stream["name"], *values, *(of[at] for of in own.values())])
    return text.getvalue().encode()
