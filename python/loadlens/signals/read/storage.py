"""What services read and wrote in a trial, and what the machine's storage did meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.signals.read.resources import Process, Series, added, series_by_labels

if TYPE_CHECKING:
    import polars as pl

NOT_READ = Insufficient("not read in the measured part")
FEWEST_LOOKS = 5
BLOCKED, CHANGED = "threads_blocked", "files_changed"
Found = Interval | Insufficient


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """The measured part; what the kernel does not tell is insufficient, never zero."""

    written: Found
    read: Found
    appended: Found
    major_faults: Found
    device: str
    device_busy: Found
    device_written: Found
    waiting: Found
    stalled: Found
    asleep: Floats | None  # how many threads of the services slept in the kernel, at each look
    stored: tuple[int, int] | None  # looks that found a file changed which they write elsewhere, of so many


def read(readings: pl.DataFrame, begin: float, end: float, processes: Sequence[Process]) -> Storage | None:
    """Summarise storage over the measured part [begin, end], seconds since t0; none: nobody looked.

    Args:
        readings: Of all monitors.
        begin: Of the measured part.
        end: Of it.
        processes: Of the services.
    """
    table = {
        (metric, str((json.loads(text) if text else {}).get("device", ""))): series
        for (_, metric, text), series in series_by_labels(readings, ("host",)).items()
        if metric.startswith(("disk_", "pressure_"))
    }
    if not table and not processes:
        return None
    busy = dict(_devices(table, "disk_busy_s", begin, end))
    device = max(busy, key=lambda name: busy[name].point, default="")
    pressure = {
        name: table[(f"pressure_{name}_s", "")].rate(begin, end)
        for name in ("io_some", "io_full")
        if (f"pressure_{name}_s", "") in table
    }
    changed = _looks(processes, CHANGED, begin, end)
    return Storage(
        written=_of_all(processes, "write_bytes"),
        read=_of_all(processes, "read_bytes"),
        appended=_of_all(processes, "appended_bytes"),
        major_faults=_of_all(processes, "major_faults"),
        device=device,
        device_busy=_share(busy.get(device, NOT_READ)),
        device_written=dict(_devices(table, "disk_write_bytes", begin, end)).get(device, NOT_READ),
        waiting=_share(pressure.get("io_some", NOT_READ)),
        stalled=_share(pressure.get("io_full", NOT_READ)),
        asleep=_looks(processes, BLOCKED, begin, end),
        stored=None if changed is None else (int((changed > 0).sum()), changed.size),
    )


def _devices(
    table: Mapping[tuple[str, str], Series], metric: str, begin: float, end: float
) -> Iterator[tuple[str, Interval]]:
    for (name, device), series in table.items():
        if name == metric and isinstance(rate := series.rate(begin, end), Interval):
            yield device, rate


def asleep_over(trials: Sequence[Storage]) -> list[tuple[Found, Found]]:
    """How often some thread slept in the kernel, as a share of the looks, and how many did on average.

    Trial by trial; where each is too short for that, of the looks of all together.
    """
    each = [_asleep(trial.asleep) for trial in trials]
    looks = [trial.asleep for trial in trials if trial.asleep is not None]
    if len(looks) < len(trials) or any(isinstance(share, Interval) for share, _ in each):
        return each
    return [_asleep(np.concatenate(looks))]


def _asleep(looks: Floats | None) -> tuple[Found, Found]:
    if looks is None or looks.size < FEWEST_LOOKS:
        return NOT_READ, NOT_READ
    each = np.ones(looks.size)
    return _share(within_trial.mean((looks > 0).astype(np.float64), each)), within_trial.mean(looks, each)


def _looks(processes: Sequence[Process], gauge: str, begin: float, end: float) -> Floats | None:
    """A gauge of all processes together at each look; none where one of them was not read."""
    told = [process.series[gauge] for process in processes if gauge in process.series]
    together = added(told) if len(told) == len(processes) else None
    return None if together is None else together.between(begin, end).values


def _of_all(processes: Sequence[Process], metric: str) -> Found:
    """Of all processes together; unknown where one of them was not read."""
    known = [process.rates[metric] for process in processes if metric in process.rates]
    if not known or len(known) < len(processes):
        return NOT_READ
    return Interval(sum(known), None, None, 1.0, "difference of readings")


def _share(found: Found) -> Found:
    """Of the time: a reading that came late must not make more than all of it."""
    if not isinstance(found, Interval):
        return found
    high = None if found.high is None else min(1.0, found.high)
    return Interval(min(1.0, found.point), found.low, high, found.independent, found.method)
