"""Counts of a quantity by interval of time: what is left of a million requests, enough for honest intervals.

A flat, sparse table (one row a bucket and interval), because an hour of one-second histograms would not fit
as a matrix. A row is the place of its bucket and a count, 3 to 6 bytes: a report holds those of all trials at
once. Values are upper edges of HDR buckets; nothing here interpolates between them, since a value between two
modes was never seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from loadlens.estimate.interval import Bools, Floats, Ints

HALF_BUCKETS = 1024  # HdrHistogram with 3 significant digits: the upper half of the 2,048 of each octave
AT_ONCE = 1 << 19  # cells
FEW = 4_096  # cells that are sorted sooner than a whole table of buckets is gone through
Arrays = tuple[
    int,
    float,
    tuple["Floats", "Floats"] | None,
    tuple["Ints", "Ints", "Ints", "Ints"],
    tuple["Ints", "Floats", "Ints"],
]
OCTAVES = 52  # beyond the first 2,048 ns, up to 2^63 ns: all places are below 2^16


def bucket_lower_edge(upper_ns: Ints) -> Ints:
    """Return the lowest value of the bucket whose highest value is `upper_ns`.

    Args:
        upper_ns: Highest values of buckets, nanoseconds, shape (cells,).

    Returns:
        Lowest values, nanoseconds, shape (cells,). Below 2,048 ns a bucket is one nanosecond wide.

    Source: HdrHistogram, 3 significant digits, lowest discernible value 1.
    """
    return upper_ns - np.left_shift(np.int64(1), _octave(upper_ns)) + 1


def bucket_place(value_ns: Ints) -> Ints:
    """Return the place in `hdr_buckets` of the bucket that holds each value.

    Args:
        value_ns: Nanoseconds, shape (values,).
    """
    octave = _octave(value_ns)
    return octave * HALF_BUCKETS + (value_ns >> octave)


def _octave(value_ns: Ints) -> Ints:
    """Return the number of low bits of a value that its bucket leaves out."""
    return np.maximum(np.floor(np.log2(np.maximum(value_ns, 1))).astype(np.int64) - 10, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """The values that a quantity may have, seconds; ascending by the upper edge, then by the lower."""

    lower: Floats
    upper: Floats

    @property
    def middle(self) -> Floats:
        """Half way between the edges, shape (buckets,)."""
        return (self.lower + self.upper) / 2


@cache
def hdr_buckets() -> Buckets:
    """All buckets of HdrHistogram with 3 significant digits; one table for all counts."""
    lower, upper = _hdr_edges_ns()
    return Buckets(lower / 1e9, upper / 1e9)


@cache
def _hdr_edges_ns() -> tuple[Ints, Ints]:
    """Lower and upper edge of each bucket."""
    place = np.arange((OCTAVES + 2) * HALF_BUCKETS, dtype=np.int64)
    octave = np.maximum(place // HALF_BUCKETS - 1, 0)
    lower = (place - octave * HALF_BUCKETS) << octave
    return lower, lower + (np.left_shift(np.int64(1), octave) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class IntervalCounts:
    """Counts of each value in each interval; unfinished observations are kept separately with their age.

    Cells of one interval that follow each other are a run. Shapes: `run_interval` and `run_cells` are
    (runs,), `place` and `count` (cells,), the `censored_` arrays (censored cells,). Values in seconds.
    Interval numbers run from 0 to `intervals` - 1; an interval may be empty. The functions below make it.
    """

    intervals: int
    buckets: Buckets
    run_interval: Ints
    run_cells: Ints  # at least 1 each
    place: Ints  # in `buckets`; of the smallest type that holds all, as `count`
    count: Ints
    censored_interval: Ints
    censored_age: Floats
    censored_count: Ints
    seconds: float = 0.0  # length of all intervals; 0: not known

    def arrays(self) -> Arrays:
        """Return what the compiled estimates take; nothing is copied."""
        edges = None if self.buckets is hdr_buckets() else (self.buckets.lower, self.buckets.upper)
        return (
            self.intervals,
            self.seconds,
            edges,
            (self.run_interval, self.run_cells, self.place, self.count),
            (self.censored_interval, self.censored_age, self.censored_count),
        )

    @property
    def interval(self) -> Ints:
        """Number of the interval of each cell; made anew each time, as the edges are."""
        return np.repeat(self.run_interval, self.run_cells)

    @property
    def lower(self) -> Floats:
        """Lower edge of each cell."""
        return self.buckets.lower[self.place]

    @property
    def upper(self) -> Floats:
        """Upper edge of each cell."""
        return self.buckets.upper[self.place]

    @property
    def middle(self) -> Floats:
        """Half way between the edges of each cell."""
        return self.buckets.middle[self.place]

    def by_value(self) -> tuple[Ints, Floats]:
        """Return which buckets hold anything, and how many observations each does, over all intervals."""
        if self.place.size < FEW:
            places, number = np.unique(self.place, return_inverse=True)
            totals = np.bincount(number, weights=self.count, minlength=places.size).astype(np.float64)
            return places[totals > 0].astype(np.int64), totals[totals > 0]
        seen = np.zeros(self.buckets.upper.size)
        for part in self._parts():
            seen += np.bincount(self.place[part], weights=self.count[part], minlength=seen.size)
        at = np.flatnonzero(seen)
        return at, seen[at]

    def by_group(self, group: Ints) -> Floats:
        """Return the observations of each interval in each group of buckets, shape (intervals, groups).

        Args:
            group: Of each bucket, from 0 on, shape (buckets,).
        """
        size = int(group.max(initial=0)) + 1
        seen = np.zeros(self.intervals * size)
        interval = self.interval
        for part in self._parts():
            key = interval[part] * size + group[self.place[part]]
            seen += np.bincount(key, weights=self.count[part], minlength=seen.size)
        return seen.reshape(self.intervals, size)

    def _parts(self) -> Iterator[slice]:
        """The cells in parts that are added up at once: their types are widened on the way."""
        return (slice(begin, begin + AT_ONCE) for begin in range(0, self.place.size, AT_ONCE))

    def where(self, inside: Bools) -> IntervalCounts:
        """Only some of the cells, with the unfinished observations.

        Args:
            inside: Which, shape (cells,).
        """
        cells = self._per_run(inside)
        held = cells > 0
        return replace(
            self,
            run_interval=self.run_interval[held],
            run_cells=cells[held],
            place=self.place[inside],
            count=self.count[inside],
        )

    def between(self, above_s: float, at_most_s: float) -> IntervalCounts:
        """Only the cells whose middle lies above one value and not above another."""
        middle = self.buckets.middle
        return self.where(((middle > above_s) & (middle <= at_most_s))[self.place])

    @property
    def observed(self) -> int:
        """Number of finished observations."""
        return int(self.count.sum())

    @property
    def censored(self) -> int:
        """Number of observations known only to have lasted longer than their age."""
        return int(self.censored_count.sum())

    def observed_per_interval(self) -> Floats:
        """Finished observations of each interval, shape (intervals,)."""
        return self._per_interval(self.count)

    def known_per_interval(self, value: float) -> Floats:
        """Observations of which it is known whether they exceed `value`, shape (intervals,).

        A censored observation younger than `value` may end on either side: it is left out.
        """
        return self.observed_per_interval() + self._outlasting(value)

    def above_per_interval(self, value: float) -> Floats:
        """Observations known to exceed `value`, shape (intervals,)."""
        return self._finished_above(value) + self._outlasting(value)

    def _finished_above(self, value: float) -> Floats:
        over = self.place >= int(np.searchsorted(self.buckets.upper, value, side="right"))
        return self._per_interval(over * self.count)

    def _outlasting(self, value: float) -> Floats:
        old = self.censored_age >= value
        weights = self.censored_count[old].astype(np.float64)
        return _summed(self.censored_interval[old], weights, self.intervals)

    def distribution(self) -> tuple[Floats, Floats, Floats]:
        """Return lower edges, upper edges and the share that is at most the upper edge.

        Returns:
            Three arrays of shape (distinct values,), values ascending. A censored observation is at risk of
            ending until its age; the last share is below 1 when some are known to lie beyond the largest
            finished one. Without censored observations it is the empirical distribution.

        Source: Kaplan and Meier 1958.
        """
        at, counts = self.by_value()
        lower, upper = self.buckets.lower[at], self.buckets.upper[at]
        if (np.diff(upper) == 0).any():
            upper, first = np.unique(upper, return_index=True)
            lower, counts = lower[first], np.add.reduceat(counts, first)  # the lowest of each
        ended_before = np.concatenate([[0.0], np.cumsum(counts)[:-1]])
        order = np.argsort(self.censored_age)
        ages = self.censored_age[order]
        gone = np.concatenate([[0.0], np.cumsum(self.censored_count[order])])
        left = gone[np.searchsorted(ages, upper, side="left")]
        at_risk = self.observed + self.censored - ended_before - left
        if self.censored == 0:  # exact, without the rounding of a long product
            return lower, upper, np.cumsum(counts) / max(1, self.observed)
        return lower, upper, 1 - np.cumprod(1 - counts / at_risk)

    def finished(self) -> IntervalCounts:
        """Only the finished observations."""
        none = np.zeros(0, dtype=np.int64)
        return replace(self, censored_interval=none, censored_age=np.zeros(0), censored_count=none)

    def select(self, keep: Sequence[int]) -> IntervalCounts:
        """Only the intervals numbered in `keep`, renumbered from 0 in that order."""
        new_number = np.full(self.intervals, -1, dtype=np.int64)
        new_number[np.asarray(keep, dtype=np.int64)] = np.arange(len(keep))
        number = new_number[self.run_interval]
        here, there = number >= 0, new_number[self.censored_interval] >= 0
        cells = np.repeat(here, self.run_cells)
        return IntervalCounts(
            len(keep),
            self.buckets,
            number[here],
            self.run_cells[here],
            self.place[cells],
            self.count[cells],
            new_number[self.censored_interval[there]],
            self.censored_age[there],
            self.censored_count[there],
            self.seconds * len(keep) / max(1, self.intervals),
        )

    def _per_run(self, of_cells: Ints | Bools) -> Ints:
        """Whole numbers of cells added up, shape (runs,)."""
        if not self.run_cells.size:
            return np.zeros(0, dtype=np.int64)
        begins = np.cumsum(self.run_cells) - self.run_cells
        return np.add.reduceat(of_cells, begins, dtype=np.int64)

    def _per_interval(self, of_cells: Ints) -> Floats:
        """Whole numbers of cells added up, shape (intervals,); exact, in whatever order."""
        return _summed(self.run_interval, self._per_run(of_cells).astype(np.float64), self.intervals)


def counts_of(
    intervals: int,
    interval: Ints,
    lower: Floats,
    upper: Floats,
    count: Ints,
    censored: tuple[Ints, Floats, Ints] | None = None,
) -> IntervalCounts:
    """Gather cells with edges of their own.

    Args:
        intervals: How many intervals there are, empty ones included.
        interval: Number of the interval of each cell, shape (cells,).
        lower, upper: Edges of each cell, seconds, same shape.
        count: Observations in each cell, same shape.
        censored: Interval, age in seconds and number of unfinished ones, shape (censored cells,) each.
    """
    edges, place = np.unique(np.stack([upper, lower]), axis=1, return_inverse=True)
    return _gathered(intervals, Buckets(edges[1], edges[0]), interval, place.ravel(), count, censored)


def counts_from_histograms(
    intervals: int,
    observed: Iterable[tuple[int, Ints, Ints]],
    censored: Iterable[tuple[int, Ints, Ints]] = (),
    seconds: float = 0.0,
) -> IntervalCounts:
    """Gather the histograms of one quantity.

    Args:
        intervals: How many intervals there are, empty ones included.
        observed: (number of the interval, bucket upper edges in nanoseconds, counts) of each histogram.
        censored: The same for observations that did not finish; values are their ages.
        seconds: Length of all intervals; 0: not known.

    Returns:
        The counts, values in seconds.
    """
    interval, upper, count = _flat(observed)
    late_interval, age, late_count = _flat(censored)
    late = (late_interval, bucket_lower_edge(age) / 1e9, late_count)  # it is known to have lasted so long
    place = bucket_place(upper)
    if np.array_equal(_hdr_edges_ns()[1][place], upper):
        return replace(_gathered(intervals, hdr_buckets(), interval, place, count, late), seconds=seconds)
    counts = counts_of(intervals, interval, bucket_lower_edge(upper) / 1e9, upper / 1e9, count, late)
    return replace(counts, seconds=seconds)


def counts_from_values(intervals: int, interval: Ints, seconds: Floats) -> IntervalCounts:
    """Gather single observations, for tests and for quantities without histograms; edges are the values."""
    values, place = np.unique(np.asarray(seconds, dtype=np.float64), return_inverse=True)
    numbers = np.asarray(interval, dtype=np.int64)
    ones = np.ones(place.size, dtype=np.int64)
    return _gathered(intervals, Buckets(values, values), numbers, place, ones)


def counts_in_hdr_buckets(intervals: int, interval: Ints, place: Ints, count: Ints) -> IntervalCounts:
    """Gather cells whose buckets are known by their places (`bucket_place`), shape (cells,) each."""
    return _gathered(intervals, hdr_buckets(), interval, place, count)


def pooled(parts: Sequence[IntervalCounts]) -> IntervalCounts:
    """All parts as one, the intervals of each after those of the one before."""
    offsets = np.cumsum([0, *(part.intervals for part in parts)]).tolist()
    return _together(parts, offsets[:-1], offsets[-1], sum(part.seconds for part in parts))


def overlaid(parts: Sequence[IntervalCounts]) -> IntervalCounts:
    """Counts over the same intervals as one."""
    return (
        parts[0]
        if len(parts) == 1
        else _together(parts, [0] * len(parts), parts[0].intervals, parts[0].seconds)
    )


def _together(
    parts: Sequence[IntervalCounts], offsets: Sequence[int], intervals: int, seconds: float
) -> IntervalCounts:
    """The cells of all parts in order; `offsets` are added to the numbers of their intervals."""
    buckets, places = _one_table(parts)
    shifted = list(zip(parts, offsets, strict=True))
    return IntervalCounts(
        intervals,
        buckets,
        np.concatenate([part.run_interval + offset for part, offset in shifted]),
        np.concatenate([part.run_cells for part in parts]),
        np.concatenate(places),
        np.concatenate([part.count for part in parts]),
        np.concatenate([part.censored_interval + offset for part, offset in shifted]),
        np.concatenate([part.censored_age for part in parts]),
        np.concatenate([part.censored_count for part in parts]),
        seconds,
    )


def _one_table(parts: Sequence[IntervalCounts]) -> tuple[Buckets, list[Ints]]:
    """Buckets of all parts, and the places of the cells of each in them."""
    first = parts[0].buckets
    if all(part.buckets is first for part in parts):
        return first, [part.place for part in parts]
    edges = [np.stack([part.buckets.upper, part.buckets.lower]) for part in parts]
    table, place = np.unique(np.concatenate(edges, axis=1), axis=1, return_inverse=True)
    ends = np.cumsum([part.buckets.upper.size for part in parts])[:-1]
    places = np.split(place.ravel(), ends)
    return Buckets(table[1], table[0]), [at[part.place] for at, part in zip(places, parts, strict=True)]


def _gathered(
    intervals: int,
    buckets: Buckets,
    interval: Ints,
    place: Ints,
    count: Ints,
    censored: tuple[Ints, Floats, Ints] | None = None,
) -> IntervalCounts:
    """Cells in runs of one interval, in the smallest types."""
    begins = np.flatnonzero(np.diff(interval, prepend=-1))
    none: Ints = np.zeros(0, dtype=np.int64)
    late_interval, age, late_count = (none, np.zeros(0), none) if censored is None else censored
    return IntervalCounts(
        intervals,
        buckets,
        interval[begins].astype(np.int64),
        np.diff(begins, append=interval.size),
        place.astype(np.uint16 if buckets.upper.size <= 1 << 16 else np.int64),
        _small(count),
        late_interval,
        age,
        late_count,
    )


def _small(numbers: Ints) -> Ints:
    """The same whole numbers of zero or more in the smallest signed type: sums of it are of 64 bits."""
    most = int(numbers.max(initial=0))
    return numbers.astype(
        next(kind for kind in (np.int8, np.int16, np.int32, np.int64) if most <= np.iinfo(kind).max)
    )


def _summed(interval: Ints, weights: Floats, intervals: int) -> Floats:
    return np.bincount(interval, weights=weights, minlength=intervals).astype(np.float64)


def _flat(parts: Iterable[tuple[int, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    rows = list(parts)
    empty = np.zeros(0, dtype=np.int64)
    numbers = [np.full(len(values), number, dtype=np.int64) for number, values, _ in rows]
    return (
        np.concatenate([empty, *numbers]),
        np.concatenate([empty, *(np.asarray(values, dtype=np.int64) for _, values, _ in rows)]),
        np.concatenate([empty, *(np.asarray(counts, dtype=np.int64) for _, _, counts in rows)]),
    )
