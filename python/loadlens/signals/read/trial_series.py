"""The readings of one trial as series: one for each metric and set of labels."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Floats, Insufficient, Interval, Measured
from loadlens.model.readings import METRICS, Labels, Metric, OtlpMetrics

if TYPE_CHECKING:
    import polars as pl

NOT_READ: Final = Insufficient("not read in the measured part")
SCRAPE: Final = "scrape"  # the monitor whose metrics have the names that services export
MOST_SERIES: Final = 20_000  # of a monitor in one trial
_NO_SERIES: Final = (OtlpMetrics.span.name, OtlpMetrics.log_line.name)  # a row each has labels of its own
MOST_NAMED: Final = 3  # metrics that are left out


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Readings of one metric with one set of labels, in order of time."""

    seconds: Floats  # since t0
    values: Floats
    labels: Labels = field(default_factory=Labels)

    def between(self, begin: float, end: float) -> Series:
        """Return the readings within a part, both edges included."""
        inside = (self.seconds >= begin) & (self.seconds <= end)
        return Series(self.seconds[inside], self.values[inside], self.labels)

    def rate(self, begin: float, end: float) -> Measured:
        """Return the growth per second of a counter over a part, from its growth between readings."""
        part = self.between(begin, end)
        if part.seconds.size < 2:
            return Insufficient(f"{part.seconds.size} readings in the measured part, needs 2")
        growth, lengths = np.diff(part.values), np.diff(part.seconds)
        if np.any(growth < 0):
            return Insufficient("the counter went back: the process was replaced")
        return mean_or_point(growth, lengths, float(growth.size), "difference of two readings")

    def read_at(self, seconds: Floats) -> Series:
        """Return the readings at these of its moments."""
        return Series(seconds, self.values[np.searchsorted(self.seconds, seconds)])

    def last_before(self, when: float) -> float | None:
        """Return the last reading up to a moment; none if there is none."""
        place = int(np.searchsorted(self.seconds, when, side="right"))
        return float(self.values[place - 1]) if place else None

    def at(self, moments: Floats) -> Floats:
        """Return the last reading up to each moment; 0 before the first, for counters that begin later."""
        place = np.searchsorted(self.seconds, moments, side="right") - 1
        return np.where(place >= 0, self.values[np.maximum(place, 0)], 0.0)


def rows_of(table: pl.DataFrame, metric: Metric) -> Iterator[tuple[int, Labels, float]]:
    """Yield time, labels and value of every row of a metric that has a value."""
    import polars as pl

    if table.is_empty():
        return
    rows = table.filter(
        (pl.col("source") == metric.monitor)
        & (pl.col("metric") == metric.name)
        & pl.col("value").is_not_null()
    )
    for time_ns, text, value in rows.select("time_ns", "labels", "value").iter_rows():
        yield time_ns, Labels.of(text), value


def added(parts: Sequence[Series]) -> Series | None:
    """Return the sum of series over the moments at which all of them were read; none of no series."""
    if not parts:
        return None
    seconds = parts[0].seconds
    for part in parts[1:]:
        seconds = np.intersect1d(seconds, part.seconds)
    return Series(seconds, np.sum([part.read_at(seconds).values for part in parts], axis=0))


def total(parts: Sequence[Series], moments: Floats | None = None) -> Series | None:
    """Return counters added up, each 0 before its first reading; none of no series.

    Args:
        parts: The counters.
        moments: Seconds since t0 at which to add; every moment of any of the counters by default.
    """
    if not parts:
        return None
    if moments is None:
        moments = np.unique(np.concatenate([part.seconds for part in parts]))
    return Series(moments, np.sum([part.at(moments) for part in parts], axis=0))


def counted_at(moments: Series, parts: Sequence[Series]) -> Series:
    """Return counts by group added up; at a moment without a row there was none."""
    total = np.zeros(moments.seconds.size)
    for part in parts:
        place = np.searchsorted(moments.seconds, part.seconds)
        fits = (place < total.size) & (moments.seconds[np.minimum(place, total.size - 1)] == part.seconds)
        np.add.at(total, place[fits], part.values[fits])
    return Series(moments.seconds, total)


def moments_around(moments: Floats, begin: float, end: float) -> Floats:
    """Return the moments of scrapes in a measured part; those around it where there are too few within."""
    inside = (moments >= begin) & (moments <= end)
    if inside.sum() < 2 and moments.size:
        first = max(0, int(np.searchsorted(moments, begin, side="right")) - 1)
        last = min(moments.size - 1, int(np.searchsorted(moments, end, side="left")))
        inside = np.zeros(moments.size, dtype=bool)
        inside[first : last + 1] = True
    return moments[inside]


def level(values: Floats) -> Interval:
    """Return the mean of readings at equal distances."""
    return mean_or_point(values, np.ones(values.size), 1.0, "mean of readings")


def mean_or_point(
    sums: Floats, counts: Floats, independent: float = 1.0, method: str = "difference of readings"
) -> Interval:
    """Return the mean with its interval; where there are too few intervals of time for one, the bare mean.

    Args:
        sums: Sum of the quantity in each interval, shape (intervals,).
        counts: Number of observations in each, same shape.
        independent: Observations behind a bare mean.
        method: Of it.
    """
    mean = within_trial.mean(sums, counts)
    if isinstance(mean, Interval):
        return mean
    return Interval(float(sums.sum() / counts.sum()), None, None, independent, method)


def stacked(parts: Sequence[Measured], method: str = "sum over processes") -> Interval | None:
    """Return the sum of values that rise and fall together, their ends added; none unless all are known."""
    intervals = [part for part in parts if isinstance(part, Interval)]
    if not intervals or len(intervals) < len(parts):
        return None
    lows, highs = ([getattr(part, end) for part in intervals] for end in ("low", "high"))
    is_open = None in lows or None in highs
    return Interval(
        sum(part.point for part in intervals),
        None if is_open else sum(lows),
        None if is_open else sum(highs),
        intervals[0].independent,
        method,
    )


def of_time(share: Measured) -> Measured:
    """Return a share of the time, at most 1: a late reading must not make more than all of it."""
    if not isinstance(share, Interval):
        return share
    high = None if share.high is None else min(1.0, share.high)
    return Interval(min(1.0, share.point), share.low, high, share.independent, share.method)


def bounded(
    rows: pl.DataFrame, monitor: str, first: Collection[str] = ()
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the rows of as many whole metrics as have `MOST_SERIES` series together, and the other metrics.

    A metric with some of its series left out would be a wrong sum. Metrics of the monitor's own table come
    first, then those with few series, so that one that has a new label in every request costs only itself.

    Args:
        rows: Readings of one monitor in a trial.
        monitor: Its name.
        first: Metrics that are wanted more than others.
    """
    import polars as pl

    counts = rows.group_by("metric", maintain_order=True).agg(pl.col("labels").n_unique().alias("series"))
    if counts.get_column("series").sum() <= MOST_SERIES:
        return rows, ()
    wanted = [*first, *(metric.name for metric in METRICS.get(monitor, ()))]
    ranked = counts.sort(~pl.col("metric").is_in(wanted), "series", maintain_order=True)
    is_kept = pl.col("series").cum_sum() <= MOST_SERIES
    kept, left_out = (ranked.filter(part).get_column("metric").to_list() for part in (is_kept, ~is_kept))
    return rows.filter(pl.col("metric").is_in(kept)), tuple(left_out)


def too_many(metrics: Sequence[str]) -> str:
    """Say that metrics were left out, and why."""
    more = len(metrics) - MOST_NAMED
    named = ", ".join(metrics[:MOST_NAMED]) + (f" and {more:,} more metrics" if more > 0 else "")
    return f"{named} left out: more than {MOST_SERIES:,} series in a trial"


class Readings:
    """The series of a trial, of each monitor at most `MOST_SERIES`; readings without a value are left out."""

    def __init__(self, table: pl.DataFrame) -> None:
        """Take the rows of the record: time_ns, source, metric, labels (JSON text), unit, value."""
        self.table = table
        self._read: dict[str, Mapping[str, Sequence[Series]]] = {}  # by monitor
        self._left_out: dict[str, tuple[str, ...]] = {}  # metrics, by monitor

    def _of_monitor(self, monitor: str) -> Mapping[str, Sequence[Series]]:
        """By metric, in order of their first reading; without the buckets of histograms, most of a page."""
        if monitor in self._read:
            return self._read[monitor]
        import polars as pl

        by_metric: dict[str, list[Series]] = {}
        if not self.table.is_empty():
            is_bucket = pl.col("metric").str.ends_with("_bucket")
            rows = self.table.filter(
                (pl.col("source") == monitor)
                & pl.col("value").is_not_null()
                & ~is_bucket
                & ~((pl.col("source") == OtlpMetrics.span.monitor) & pl.col("metric").is_in(_NO_SERIES))
            )
            rows, self._left_out[monitor] = bounded(rows, monitor)
            groups = rows.sort("time_ns", maintain_order=True).group_by(
                ["metric", "labels"], maintain_order=True
            )
            for (metric, text), part in groups:
                time_ns, values = (part[name].to_numpy().astype(np.float64) for name in ("time_ns", "value"))
                series = Series(time_ns / 1e9, values, Labels.of(str(text or "")))
                by_metric.setdefault(str(metric), []).append(series)
        self._read[monitor] = by_metric
        return by_metric

    def left_out(self) -> Iterator[str]:
        """Yield the metrics of each monitor that no figure and no rule uses."""
        for monitor in self.table.get_column("source").unique(maintain_order=True):
            self._of_monitor(monitor)
            if metrics := self._left_out.get(monitor, ()):
                yield f"{monitor}: {too_many(metrics)}"

    def of(self, metric: Metric, **labels: str) -> Sequence[Series]:
        """Return the series of a metric that have these labels."""
        every = self._of_monitor(metric.monitor).get(metric.name, ())
        return [series for series in every if labels.items() <= series.labels.items()] if labels else every

    def one(self, metric: Metric, **labels: str) -> Series | None:
        """Return the first series of a metric that has these labels; none if it was not read."""
        return next(iter(self.of(metric, **labels)), None)

    def monitored(self, monitor: str) -> Iterator[tuple[str, Series]]:
        """Yield each series of a monitor with the name of its metric."""
        for metric, every in self._of_monitor(monitor).items():
            for series in every:
                yield metric, series

    def exported(self, metric: str, service: str | None = None) -> Sequence[Series]:
        """Return the series that services export under a name, of one service or of all."""
        every = self._of_monitor(SCRAPE).get(metric, ())
        return [series for series in every if service is None or series.labels.service == service]
