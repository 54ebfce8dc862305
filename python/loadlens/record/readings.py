"""Readings of the monitors: JSON lines while the trial runs, one long table when it is sealed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadlens.record import disk

if TYPE_CHECKING:
    import polars as pl

BATCH_ROWS = 50_000


def schema() -> dict[str, Any]:
    """Return names and Polars types of the columns."""
    import polars as pl

    return {
        "time_ns": pl.Int64,
        "source": pl.String,
        "metric": pl.String,
        "labels": pl.String,
        "unit": pl.String,
        "value": pl.Float64,
    }


def batches(path: Path, t0_monotonic_ns: int | None) -> Iterator[pl.DataFrame]:
    """Yield frames of the readings in a live file, with times since the trial began.

    Times count from the first reading if the start is unknown, because the lab ended before the engine ran.
    Lines without a reading are left out.
    """
    import polars as pl

    if not path.is_file():
        return
    columns: dict[str, list[Any]] = {name: [] for name in schema()}
    begin = t0_monotonic_ns
    for _number, row in disk.iterate_lines(path):
        if row is None or not _is_time(row.get("t")) or not isinstance(row.get("metric"), str):
            continue
        begin = row["t"] if begin is None else begin
        columns["time_ns"].append(row["t"] - begin)
        columns["source"].append(str(row.get("source", "")))
        columns["metric"].append(row["metric"])
        columns["labels"].append(
            json.dumps(row.get("labels", {}), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        )
        columns["unit"].append(str(row.get("unit", "")))
        columns["value"].append(_finite(row.get("value")))
        if len(columns["time_ns"]) >= BATCH_ROWS:
            yield pl.DataFrame(columns, schema=schema())
            columns = {name: [] for name in columns}
    if columns["time_ns"]:
        yield pl.DataFrame(columns, schema=schema())


def _is_time(value: object) -> bool:
    """True for plausible nanoseconds of a clock: no machine has been up for half the range of 64 bits."""
    return type(value) is int and 0 <= value < 1 << 62


def _finite(value: object) -> float | None:
    """Return a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def read_live(path: Path, t0_monotonic_ns: int | None) -> pl.DataFrame:
    """Return all readings of a live file."""
    import polars as pl

    parts = list(batches(path, t0_monotonic_ns))
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema())
