"""Response times that the service itself logged, one per request, by path and status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Floats, Insufficient, Interval, Ints
from loadlens.estimate.interval_counts import IntervalCounts, counts_from_values
from loadlens.model.readings import ServerTimesMetrics
from loadlens.signals.read.trial_series import Readings, Series


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """All lines of a trial."""

    paths: Mapping[tuple[str, str], Series] = field(default_factory=dict)  # by path and status, seconds
    faulty: int = 0  # lines that could not be read

    @property
    def total(self) -> int:
        """Lines over the whole trial."""
        return self.count()

    def mean(self, path: str, begin: float, end: float, *, below: int = 400) -> Interval | Insufficient:
        """Mean response time of one path over a part, successes only, by second."""
        seconds, place, size = self._by_second(path, begin, end, below)
        if not seconds.size:
            return Insufficient("the server wrote no time for it")
        return within_trial.mean(
            np.bincount(place, weights=seconds, minlength=size).astype(np.float64),
            np.bincount(place, minlength=size).astype(np.float64),
            squares=np.bincount(place, weights=seconds**2, minlength=size).astype(np.float64),
        )

    def between(self, path: str, begin: float, end: float) -> Floats:
        """Times of one path over a part, successes only, seconds."""
        return self._by_second(path, begin, end, 400)[0]

    def counts(self, path: str, begin: float, end: float) -> IntervalCounts:
        """The same as counts by second, for quantiles."""
        seconds, place, size = self._by_second(path, begin, end, 400)
        return counts_from_values(size, place, seconds)

    def _by_second(self, path: str, begin: float, end: float, below: int) -> tuple[Floats, Ints, int]:
        """Times, the number of the second in which each was written down, and how many seconds there are."""
        times, values = [np.zeros(0)], [np.zeros(0)]
        for (where, status), rows in self.paths.items():
            if where == path and _number(status) < below:
                inside = (rows.seconds >= begin) & (rows.seconds <= end)
                times.append(rows.seconds[inside])
                values.append(rows.values[inside])
        size = max(1, int(np.ceil(end - begin)))
        place = np.clip((np.concatenate(times) - begin).astype(np.int64), 0, size - 1)
        return np.concatenate(values), place, size

    def count(self, path: str | None = None) -> int:
        """Lines over the whole trial, of one path or of all."""
        return sum(rows.values.size for (where, _), rows in self.paths.items() if path in (None, where))


def read(readings: Readings) -> Served:
    """Gather the lines of a trial."""
    faulty = sum(int(series.values.max()) for series in readings.of(ServerTimesMetrics.faulty_lines))
    paths: dict[tuple[str, str], Series] = {}
    for series in readings.of(ServerTimesMetrics.response_time):
        key = (series.labels.path.partition("?")[0], series.labels.status)
        if (before := paths.get(key)) is not None:
            series = Series(
                np.concatenate([before.seconds, series.seconds]),
                np.concatenate([before.values, series.values]),
            )
        paths[key] = series
    return Served(paths, faulty)


def _number(status: str) -> int:
    return int(status) if status.isdecimal() else 0
