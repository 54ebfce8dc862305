"""How short of memory services and machine were in a trial, and whether pages were fetched all the time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadlens.estimate.interval import Interval
from loadlens.signals.read.resources import Process, Series, added, series_by_labels
from loadlens.signals.read.storage import NOT_READ, Found

if TYPE_CHECKING:
    import polars as pl

FAULTS = "major_faults"


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """The measured part; what the kernel does not tell is insufficient, never zero."""

    faults: float | None  # pages per second from storage, of all processes of the services
    halves: tuple[float, float] | None  # faults in the first half and in the second
    again: Found
    swapped_in: Found
    waiting: Found
    own_waiting: Found
    at_bound: Found
    bound_bytes: float | None
    held: float | None


def read(readings: pl.DataFrame, begin: float, end: float, processes: Sequence[Process]) -> Memory | None:
    """Summarise memory over the measured part [begin, end], seconds since t0; none: no service was watched.

    Args:
        readings: Of all monitors.
        begin: Of the measured part.
        end: Of it.
        processes: Of the services.
    """
    if not processes:
        return None
    host: dict[str, Series] = {}
    groups: dict[str, list[Series]] = {}
    for (source, metric, text), series in series_by_labels(readings, ("host", "cgroup")).items():
        labels = json.loads(text) if text else {}
        if source == "host" and not labels:
            host[metric] = series
        elif source == "cgroup" and not str(labels.get("service", "")).startswith("("):
            groups.setdefault(metric, []).append(series)
    told = [process.series[FAULTS] for process in processes if FAULTS in process.series]
    faults = added(told) if len(told) == len(processes) else None
    grown = None if faults is None else _grown(faults, begin, end)
    return Memory(
        faults=None if grown is None else grown / (end - begin),
        halves=None if faults is None else _halves(faults, begin, end),
        again=_rate(host, "memory_refaults", begin, end),
        swapped_in=_rate(host, "memory_swapped_in", begin, end),
        waiting=_rate(host, "pressure_memory_some_s", begin, end),
        own_waiting=_most(groups.get("memory_pressure_some_s", ()), begin, end),
        at_bound=_most(groups.get("memory_at_limit", ()), begin, end),
        bound_bytes=min(
            (float(one.values[-1]) for one in groups.get("memory_limit_bytes", ())), default=None
        ),
        held=_held(host, processes),
    )


def _grown(counter: Series, begin: float, end: float) -> float | None:
    values = counter.between(begin, end).values
    return float(values[-1] - values[0]) if values.size > 1 else None


def _halves(counter: Series, begin: float, end: float) -> tuple[float, float] | None:
    """Of equal length, from the reading next to the middle on; none where there are too few readings."""
    part = counter.between(begin, end)
    if part.seconds.size < 3:
        return None
    middle = (part.seconds[0] + part.seconds[-1]) / 2
    at = int(abs(part.seconds - middle).argmin())
    first, second = part.seconds[at] - part.seconds[0], part.seconds[-1] - part.seconds[at]
    rates = (
        float(part.values[at] - part.values[0]) / first,
        float(part.values[-1] - part.values[at]) / second,
    )
    half = (first + second) / 2
    return rates[0] * half, rates[1] * half


def _rate(table: Mapping[str, Series], metric: str, begin: float, end: float) -> Found:
    return table[metric].rate(begin, end) if metric in table else NOT_READ


def _most(series: Sequence[Series], begin: float, end: float) -> Found:
    """Of the group that grew most."""
    rates = [rate for one in series if isinstance(rate := one.rate(begin, end), Interval)]
    return max(rates, key=lambda rate: rate.point, default=NOT_READ)


def _held(host: Mapping[str, Series], processes: Sequence[Process]) -> float | None:
    sizes = [process.peaks.get("pss_bytes", process.peaks.get("rss_bytes")) for process in processes]
    known = [size for size in sizes if size is not None]
    if "memory_total_bytes" not in host or len(known) < len(sizes):
        return None
    return sum(known) / float(host["memory_total_bytes"].values[-1])
