"""Spans and log lines of the services, read back from the readings of a trial."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadlens.model.readings import OtlpMetrics
from loadlens.signals.read.trial_series import rows_of

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Span:
    """One span of a trial."""

    service: str
    name: str
    kind: str  # "server", "client" or "inside"
    trace: str
    id: str
    parent: str  # empty: none
    path: str  # of a request that it serves
    is_error: bool
    begin_s: float  # since t0
    end_s: float


def one_in(table: pl.DataFrame) -> int:
    """Return of how many traces one was kept until the end of the trial."""
    return max((round(value) for _, _, value in rows_of(table, OtlpMetrics.one_trace_in)), default=1)


def spans(table: pl.DataFrame) -> tuple[Span, ...]:
    """Return the spans of the traces that were kept until the end: whole ones, of equal weight."""
    kept = one_in(table)
    return tuple(
        Span(
            service=labels.service,
            name=labels.name,
            kind=labels.kind,
            trace=labels.trace,
            id=labels.id,
            parent=labels.parent,
            path=labels.path,
            is_error=labels.status == "error",
            begin_s=time_ns / 1e9,
            end_s=time_ns / 1e9 + value,
        )
        for time_ns, labels, value in rows_of(table, OtlpMetrics.span)
        if zlib.crc32(bytes.fromhex(labels.trace)) % kept == 0
    )


def log_text(table: pl.DataFrame) -> str:
    """Return the log lines that services sent, as one log."""
    return "".join(f"{labels.text}\n" for _, labels, _ in rows_of(table, OtlpMetrics.log_line))
