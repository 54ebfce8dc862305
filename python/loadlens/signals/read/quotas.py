"""What quotas of CPU time did to the services, from the readings of their control groups."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.signals.read.resources import Process, Series, series_by_labels

if TYPE_CHECKING:
    import polars as pl

SOURCE = "cgroup"
NOT_READ = Insufficient("not read in the measured part")
Found = Interval | Insufficient


@dataclass(frozen=True, slots=True, eq=False)
class Quota:
    """One group in the measured part of one trial."""

    service: str
    replica: str
    cores: float | None
    period_s: float | None
    used: Found
    throttled: Found
    held_back: Found

    @property
    def key(self) -> tuple[str, str]:
        """The same in every trial."""
        return (self.service, self.replica)


def read(
    readings: pl.DataFrame, begin: float, end: float, processes: Sequence[Process], placement: dict[str, Any]
) -> tuple[Quota, ...]:
    """Summarise each group that has a quota over the measured part [begin, end], seconds since t0.

    Args:
        readings: Of all monitors.
        begin: Of the measured part.
        end: Of it.
        processes: Of the services, with what CPU time they used.
        placement: What services were to be confined to, where the record does not say what held.
    """
    groups: dict[tuple[str, str], dict[str, Series]] = {}
    for (_, metric, text), series in series_by_labels(readings, (SOURCE,)).items():
        labels = json.loads(text) if text else {}
        key = (str(labels.get("service", "")), str(labels.get("replica", "")))
        groups.setdefault(key, {})[metric] = series
    groups = {key: own for key, own in groups.items() if "cpu_periods" in own}
    return tuple(
        _one(key, own, begin, end, _inside(key, tuple(groups), processes), placement)
        for key, own in sorted(groups.items())
    )


def _one(
    key: tuple[str, str],
    own: Mapping[str, Series],
    begin: float,
    end: float,
    inside: Sequence[Process],
    placement: dict[str, Any],
) -> Quota:
    asked = (placement.get("services") or {}).get(key[0]) or {}
    cores, period = _last(own, "cpu_quota_cores"), _last(own, "cpu_period_s")
    return Quota(
        service=key[0],
        replica=key[1],
        cores=cores if cores is not None else asked.get("cpu"),
        period_s=period if period is not None else asked.get("period_s"),
        used=_together([process.cpu for process in inside]),
        throttled=_share(own["cpu_throttled_periods"], own["cpu_periods"], begin, end),
        held_back=own["cpu_throttled_s"].rate(begin, end) if "cpu_throttled_s" in own else NOT_READ,
    )


def _inside(
    key: tuple[str, str], groups: Sequence[tuple[str, str]], processes: Sequence[Process]
) -> list[Process]:
    """The processes in a group: those of its replica, or of all where one group stands around them."""
    of_service = [process for process in processes if process.service == key[0]]
    if sum(service == key[0] for service, _ in groups) == 1:
        return of_service
    return [process for process in of_service if process.replica == key[1]]


def _together(parts: Sequence[Found]) -> Found:
    known = [part for part in parts if isinstance(part, Interval)]
    if not parts or len(known) < len(parts):
        return NOT_READ
    lows, highs = [part.low for part in known], [part.high for part in known]
    is_open = None in lows or None in highs
    return Interval(
        sum(part.point for part in known),
        None if is_open else sum(low for low in lows if low is not None),
        None if is_open else sum(high for high in highs if high is not None),
        known[0].independent,
        "sum over processes",
    )


def _share(part: Series, whole: Series, begin: float, end: float) -> Found:
    """The growth of one counter by that of another that was read at the same moments."""
    seconds = np.intersect1d(part.seconds, whole.seconds)
    seconds = seconds[(seconds >= begin) & (seconds <= end)]
    if seconds.size < 2:
        return NOT_READ
    up, down = (np.diff(one.values[np.searchsorted(one.seconds, seconds)]) for one in (part, whole))
    if not down.sum() > 0:
        return Insufficient("nothing in it wanted to run")
    found = within_trial.mean(up[down > 0], down[down > 0])
    point = float(up.sum() / down.sum())
    if isinstance(found, Interval):
        high = None if found.high is None else min(1.0, found.high)
        return Interval(point, found.low, high, found.independent, found.method)
    return Interval(point, None, None, 1.0, "difference of two readings")


def _last(own: Mapping[str, Series], metric: str) -> float | None:
    return float(own[metric].values[-1]) if metric in own else None
