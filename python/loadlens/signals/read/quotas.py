"""Effects of quotas of CPU time on the services, from the readings of their control groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Insufficient, Interval, Measured
from loadlens.model.readings import CgroupMetrics, Metric
from loadlens.model.recorded import PlacedService, Placement
from loadlens.signals.read.resources import Process
from loadlens.signals.read.trial_series import NOT_READ, Readings, Series, of_time, stacked

_READ = (
    *(CgroupMetrics.cpu_periods, CgroupMetrics.cpu_throttled_periods, CgroupMetrics.cpu_throttled_s),
    *(CgroupMetrics.cpu_quota_cores, CgroupMetrics.cpu_period_s),
)


@dataclass(frozen=True, slots=True, eq=False)
class Quota:
    """One group in the measured part of one trial."""

    service: str
    replica: str
    cores: float | None
    period_s: float | None
    used: Measured
    throttled: Measured
    held_back: Measured

    @property
    def key(self) -> tuple[str, str]:
        """The same in every trial."""
        return (self.service, self.replica)


def read(
    readings: Readings, begin: float, end: float, processes: Sequence[Process], placement: Placement
) -> tuple[Quota, ...]:
    """Summarise each group that has a quota over the measured part [begin, end], seconds since t0.

    Args:
        readings: Of all monitors.
        begin: Of the measured part.
        end: Of it.
        processes: Of the services, with what CPU time they used.
        placement: What services were to be confined to, where the record does not say what held.
    """
    groups: dict[tuple[str, str], dict[Metric, Series]] = {}
    for metric in _READ:
        for series in readings.of(metric):
            key = (series.labels.service, series.labels.replica)
            groups.setdefault(key, {})[metric] = series
    groups = {key: own for key, own in groups.items() if CgroupMetrics.cpu_periods in own}
    return tuple(
        _one(key, own, begin, end, _inside(key, tuple(groups), processes), placement)
        for key, own in sorted(groups.items())
    )


def _one(
    key: tuple[str, str],
    own: Mapping[Metric, Series],
    begin: float,
    end: float,
    inside: Sequence[Process],
    placement: Placement,
) -> Quota:
    asked = placement.services.get(key[0], PlacedService())
    cores, period = (_last(own, m) for m in (CgroupMetrics.cpu_quota_cores, CgroupMetrics.cpu_period_s))
    stopped, held_back = own.get(CgroupMetrics.cpu_throttled_periods), own.get(CgroupMetrics.cpu_throttled_s)
    return Quota(
        service=key[0],
        replica=key[1],
        cores=cores if cores is not None else asked.cpu,
        period_s=period if period is not None else asked.period_s,
        used=stacked([process.cpu for process in inside]) or NOT_READ,
        throttled=NOT_READ
        if stopped is None
        else _share(stopped, own[CgroupMetrics.cpu_periods], begin, end),
        held_back=NOT_READ if held_back is None else held_back.rate(begin, end),
    )


def _inside(
    key: tuple[str, str], groups: Sequence[tuple[str, str]], processes: Sequence[Process]
) -> list[Process]:
    """The processes in a group: those of its replica, or of all where one group stands around them."""
    of_service = [process for process in processes if process.service == key[0]]
    if sum(service == key[0] for service, _ in groups) == 1:
        return of_service
    return [process for process in of_service if process.replica == key[1]]


def _share(part: Series, whole: Series, begin: float, end: float) -> Measured:
    """The growth of one counter by that of another that was read at the same moments."""
    seconds = np.intersect1d(part.seconds, whole.seconds)
    seconds = seconds[(seconds >= begin) & (seconds <= end)]
    if seconds.size < 2:
        return NOT_READ
    up, down = (np.diff(each.read_at(seconds).values) for each in (part, whole))
    if not down.sum() > 0:
        return Insufficient("nothing in it wanted to run")
    share = within_trial.mean(up[down > 0], down[down > 0])
    point = float(up.sum() / down.sum())
    if isinstance(share, Interval):
        return of_time(Interval(point, share.low, share.high, share.independent, share.method))
    return Interval(point, None, None, 1.0, "difference of two readings")


def _last(own: Mapping[Metric, Series], metric: Metric) -> float | None:
    return float(own[metric].values[-1]) if metric in own else None
