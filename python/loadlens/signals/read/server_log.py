"""What the service itself wrote down: one response time a request, by path and status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Floats, Insufficient, Interval, Ints
from loadlens.estimate.interval_counts import IntervalCounts, counts_from_values

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, eq=False)
class PathTimes:
    """Response times of one path with one status, as the server measured them."""

    path: str
    status: str
    seconds: Floats  # when each line was read, since t0
    values: Floats  # response times in seconds


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """All lines of a trial."""

    paths: Mapping[tuple[str, str], PathTimes]
    total: int  # lines over the whole trial
    faulty: int  # lines that could not be read

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


def read(readings: pl.DataFrame) -> Served:
    """Gather the lines of a trial."""
    import polars as pl

    rows = readings.filter((pl.col("source") == "server_times") & pl.col("value").is_not_null())
    found: dict[tuple[str, str], PathTimes] = {}
    faulty = 0
    for key, part in rows.group_by(["metric", "labels"], maintain_order=True):
        metric, labels = str(key[0]), json.loads(str(key[1]) or "{}")
        if metric == "faulty_lines":
            faulty += int(part["value"].to_numpy().max())
            continue
        path = str(labels.get("path", "")).partition("?")[0]
        status = str(labels.get("status", ""))
        seconds = part["time_ns"].to_numpy().astype(np.float64) / 1e9
        values = part["value"].to_numpy().astype(np.float64)
        before = found.get((path, status))
        if before is not None:
            seconds, values = (
                np.concatenate([before.seconds, seconds]),
                np.concatenate([before.values, values]),
            )
        found[(path, status)] = PathTimes(path, status, seconds, values)
    return Served(found, sum(rows.values.size for rows in found.values()), faulty)


def _number(status: str) -> int:
    return int(status) if status.isdecimal() else 0
