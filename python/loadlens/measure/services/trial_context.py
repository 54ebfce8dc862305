"""What lay around the services in one trial beside their CPU time: quotas, storage, memory, the ways in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadlens.measure.source import TrialSource
from loadlens.signals.read import balancer_log, memory, quotas, storage
from loadlens.signals.read.balancer_log import Spread
from loadlens.signals.read.memory import Memory
from loadlens.signals.read.quotas import Quota
from loadlens.signals.read.resources import Resources
from loadlens.signals.read.storage import Storage

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """All of it; empty where nothing was watched."""

    quotas: tuple[Quota, ...] = ()
    spreads: tuple[Spread, ...] = ()  # of requests over replicas
    storage: Storage | None = None
    memory: Memory | None = None


def read(readings: pl.DataFrame, begin: float, end: float, watched: Resources, source: TrialSource) -> Around:
    """Summarise a trial over its measured part [begin, end], seconds since t0.

    Args:
        readings: Of all monitors.
        begin: Of the measured part.
        end: Of it.
        watched: What the processes used.
        source: The trial: what services were to be confined to, and which one the load asks.
    """
    if readings.is_empty():
        return Around()
    entry = str((source.case.get("entry") or {}).get("service") or "")
    return Around(
        quotas=quotas.read(readings, begin, end, watched.services, source.placement),
        spreads=balancer_log.read(readings, begin, end, watched.services, entry),
        storage=storage.read(readings, begin, end, watched.services),
        memory=memory.read(readings, begin, end, watched.services),
    )
