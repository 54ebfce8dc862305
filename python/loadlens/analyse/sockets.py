"""What the kernel saw of TCP in a trial: queues and drops at the services' ports, segments sent again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loadlens.model.facts import KernelWatch

if TYPE_CHECKING:
    import polars as pl


def read(readings: pl.DataFrame) -> KernelWatch | None:
    """Summarise the readings of a whole trial; none when sockets were not watched."""
    if readings.is_empty():
        return None
    import polars as pl

    rows = readings.filter((pl.col("source") == "tcp") & pl.col("value").is_not_null())
    if rows.is_empty():
        return None
    return KernelWatch(
        accept_queue=_highest(rows, "accept_queue"),
        accept_queue_bound=_highest(rows, "accept_queue_bound"),
        listen_drops=_rise(rows, "listen_drops"),
        retransmitted=_rise(rows, "segments_retransmitted"),
        retransmitted_syn=_rise(rows, "syn_retransmitted"),
    )


def worst(watches: Sequence[KernelWatch | None]) -> KernelWatch | None:
    """Of several trials: the highest queue, all that was counted; none when none was watched."""
    known = [watch for watch in watches if watch is not None]
    if not known:
        return None
    return KernelWatch(
        accept_queue=_most([watch.accept_queue for watch in known]),
        accept_queue_bound=_most([watch.accept_queue_bound for watch in known]),
        listen_drops=_sum([watch.listen_drops for watch in known]),
        retransmitted=_sum([watch.retransmitted for watch in known]),
        retransmitted_syn=_sum([watch.retransmitted_syn for watch in known]),
    )


def _highest(rows: pl.DataFrame, metric: str) -> float | None:
    values = _of(rows, metric)["value"].to_list()
    return float(max(values)) if values else None


def _rise(rows: pl.DataFrame, metric: str) -> float | None:
    """How much a counter grew, over all its labels."""
    grown = [
        float(part["value"][-1]) - float(part["value"][0])
        for _, part in _of(rows, metric).group_by("labels", maintain_order=True)
    ]
    return max(0.0, sum(grown)) if grown else None


def _of(rows: pl.DataFrame, metric: str) -> pl.DataFrame:
    return rows.filter(rows["metric"] == metric).sort("time_ns")


def _most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
