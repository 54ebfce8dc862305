"""Storage in a trial, without declared signals: the busiest device, threads asleep, files changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Floats, Interval, Measured
from loadlens.model.readings import HostMetrics, Metric, ProcMetrics
from loadlens.signals.read.resources import Process
from loadlens.signals.read.trial_series import NOT_READ, Readings, added, of_time

FEWEST_LOOKS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """The measured part; what the kernel does not report is insufficient, never zero."""

    device: str  # the busiest
    device_busy: Measured  # share of the time
    device_written: Measured  # bytes per second
    asleep: Floats | None  # threads of the services that slept in the kernel, at each look
    stored: tuple[int, int] | None  # looks that found a file changed which they write elsewhere, of so many


def read(readings: Readings, begin: float, end: float, processes: Sequence[Process]) -> Storage | None:
    """Return storage over the measured part [begin, end], seconds since t0; none if nothing was watched.

    Args:
        readings: Of all monitors.
        begin: Of the measured part.
        end: Of it.
        processes: Of the services.
    """
    watched = (HostMetrics.disk_busy_s, HostMetrics.disk_write_bytes, HostMetrics.pressure_io_some_s)
    if not processes and not any(readings.of(metric) for metric in watched):
        return None
    busy = {
        series.labels.device: rate
        for series in readings.of(HostMetrics.disk_busy_s)
        if isinstance(rate := series.rate(begin, end), Interval)
    }
    device = max(busy, key=lambda name: busy[name].point, default="")
    written = readings.one(HostMetrics.disk_write_bytes, device=device)
    rate = NOT_READ if written is None else written.rate(begin, end)
    changed = _looks(processes, ProcMetrics.files_changed, begin, end)
    return Storage(
        device=device,
        device_busy=of_time(busy.get(device, NOT_READ)),
        device_written=rate if isinstance(rate, Interval) else NOT_READ,
        asleep=_looks(processes, ProcMetrics.threads_blocked, begin, end),
        stored=None if changed is None else (int((changed > 0).sum()), changed.size),
    )


def _looks(processes: Sequence[Process], gauge: Metric, begin: float, end: float) -> Floats | None:
    """Return a gauge of all processes together at each look; none where one of them was not read."""
    gauges = [process.series[gauge] for process in processes if gauge in process.series]
    together = added(gauges) if len(gauges) == len(processes) else None
    return None if together is None else together.between(begin, end).values


def asleep_over(trials: Sequence[Storage]) -> list[tuple[Measured, Measured]]:
    """Return how often some thread slept in the kernel, as a share of the looks, and how many on average.

    Trial by trial; where each is too short for that, of the looks of all together.
    """
    each = [_asleep(trial.asleep) for trial in trials]
    looks = [trial.asleep for trial in trials if trial.asleep is not None]
    if len(looks) < len(trials) or any(isinstance(share, Interval) for share, _ in each):
        return each
    return [_asleep(np.concatenate(looks))]


def _asleep(looks: Floats | None) -> tuple[Measured, Measured]:
    if looks is None or looks.size < FEWEST_LOOKS:
        return NOT_READ, NOT_READ
    each = np.ones(looks.size)
    return of_time(within_trial.mean((looks > 0).astype(np.float64), each)), within_trial.mean(looks, each)
