"""Counts of a quantity by interval of time: what is left of a million requests, enough for honest intervals.

A flat, sparse table (one row a bucket and interval), because an hour of one-second histograms would not fit
as a matrix. Values are upper edges of HDR buckets; nothing here interpolates between them, since a value
between two modes was never seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadlens.stats.interval import Floats, Ints


def bucket_lower_edge(upper_ns: Ints) -> Ints:
    """Return the lowest value of the bucket whose highest value is `upper_ns`.

    Args:
        upper_ns: Highest values of buckets, nanoseconds, shape (cells,).

    Returns:
        Lowest values, nanoseconds, shape (cells,). Below 2,048 ns a bucket is one nanosecond wide.

    Source: HdrHistogram, 3 significant digits, lowest discernible value 1.
    """
    exponent = np.floor(np.log2(np.maximum(upper_ns, 1))).astype(np.int64) - 10
    width = np.left_shift(np.int64(1), np.maximum(exponent, 0))
    return upper_ns - width + 1


@dataclass(frozen=True, slots=True, eq=False)
class IntervalCounts:
    """How often each value was seen in each interval; unfinished observations stand beside with their age.

    Shapes: `interval`, `lower`, `upper`, `count` are (cells,); the `censored_` arrays (censored cells,).
    Values in seconds. Interval numbers run from 0 to `intervals` - 1; an interval may be empty.
    """

    intervals: int
    interval: Ints
    lower: Floats
    upper: Floats
    count: Ints
    censored_interval: Ints
    censored_age: Floats
    censored_count: Ints

    @property
    def observed(self) -> int:
        """Number of finished observations."""
        return int(self.count.sum())

    @property
    def censored(self) -> int:
        """Number of observations known only to have lasted longer than their age."""
        return int(self.censored_count.sum())

    @property
    def middle(self) -> Floats:
        """The middle of each cell's bucket, seconds, shape (cells,)."""
        return (self.lower + self.upper) / 2

    def observed_per_interval(self) -> Floats:
        """Finished observations of each interval, shape (intervals,)."""
        return np.bincount(self.interval, weights=self.count, minlength=self.intervals).astype(np.float64)

    def known_per_interval(self, value: float) -> Floats:
        """Observations of which it is known whether they exceed `value`, shape (intervals,).

        A censored observation younger than `value` may end on either side: it is left out.
        """
        return self.observed_per_interval() + self._outlasting(value)

    def above_per_interval(self, value: float) -> Floats:
        """Observations known to exceed `value`, shape (intervals,)."""
        return self._finished_above(value) + self._outlasting(value)

    def excess_per_interval(self, value: float) -> tuple[float, Floats]:
        """Return the share above `value`, and what each interval has above beyond that share of its own.

        Args:
            value: Seconds.

        Returns:
            The product-limit share above `value`, and an array of shape (intervals,) that sums to about zero.
            A censored observation younger than `value` counts as likely to come above as those that lasted
            as long.

        Source: E. L. Kaplan and P. Meier, J. Amer. Stat. Assoc. 53, 1958.
        """
        _, upper, at_most = self.distribution()
        share = _above(upper, at_most, value)
        all_seen = self.observed_per_interval() + _summed(
            self.censored_interval, self.censored_count.astype(np.float64), self.intervals
        )
        young = self.censored_age < value
        ages = self.censored_age[young]
        lasted = np.array([_above(upper, at_most, float(age)) for age in np.unique(ages)])
        chance = share / np.maximum(lasted, share) if share > 0 else np.zeros_like(lasted)
        likely = np.asarray(
            chance[np.searchsorted(np.unique(ages), ages)] * self.censored_count[young], np.float64
        )
        coming = _summed(self.censored_interval[young], likely, self.intervals)
        return share, self.above_per_interval(value) + coming - share * all_seen

    def _finished_above(self, value: float) -> Floats:
        over = self.upper > value
        return _summed(self.interval[over], self.count[over].astype(np.float64), self.intervals)

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
        upper, place = np.unique(self.upper, return_inverse=True)
        counts = np.bincount(place, weights=self.count, minlength=upper.size)
        lower = np.full(upper.size, np.inf)
        np.minimum.at(lower, place, self.lower)
        ended_before = np.concatenate([[0.0], np.cumsum(counts)[:-1]])
        order = np.argsort(self.censored_age)
        ages = self.censored_age[order]
        gone = np.concatenate([[0.0], np.cumsum(self.censored_count[order])])
        left = gone[np.searchsorted(ages, upper, side="left")]
        at_risk = self.observed + self.censored - ended_before - left
        if self.censored == 0:  # exact, without the rounding of a long product
            return lower, upper, np.cumsum(counts) / max(1, self.observed)
        return lower, upper, 1 - np.cumprod(1 - counts / at_risk)

    def expected_of_censored(self) -> Floats:
        """Return how long each cell of `censored_age` lasted in all, by what those took that lasted as long.

        Returns:
            Seconds, shape (censored cells,): the product-limit mean beyond each age. What nobody finished
            counts at the highest age of all.
        """
        if self.observed == 0:
            return np.full(self.censored_age.size, self.censored_age.max(initial=0.0))
        _, upper, at_most = self.distribution()
        steps = np.diff(np.concatenate([[0.0], at_most]))
        oldest = float(self.censored_age.max(initial=0.0))
        hidden = max(0.0, float(1 - at_most[-1]))
        time_from = np.concatenate([np.cumsum((upper * steps)[::-1])[::-1], [0.0]])
        place = np.searchsorted(upper, self.censored_age, side="right")
        above = np.concatenate([[1.0], 1 - at_most])[place]
        beyond = time_from[place] + hidden * np.maximum(oldest, self.censored_age)
        lasted = np.divide(beyond, above, out=np.maximum(oldest, self.censored_age), where=above > 1e-12)
        return np.asarray(lasted, dtype=np.float64)

    @property
    def hides_the_end(self) -> bool:
        """Whether an unfinished observation is older than everything that finished."""
        if self.censored == 0:
            return False
        return self.observed == 0 or float(self.distribution()[2][-1]) < 1 - 1e-12

    def finished(self) -> IntervalCounts:
        """Only the finished observations."""
        none = np.zeros(0, dtype=np.int64)
        return replace(self, censored_interval=none, censored_age=np.zeros(0), censored_count=none)

    def between(self, begins_s: float, ends_s: float) -> IntervalCounts:
        """Of the finished observations those above `begins_s` and up to `ends_s`, by their middle."""
        inside = (self.middle > begins_s) & (self.middle <= ends_s)
        return replace(
            self,
            interval=self.interval[inside],
            lower=self.lower[inside],
            upper=self.upper[inside],
            count=self.count[inside],
        )

    def select(self, keep: Sequence[int]) -> IntervalCounts:
        """Only the intervals numbered in `keep`, renumbered from 0 in that order."""
        new_number = np.full(self.intervals, -1, dtype=np.int64)
        new_number[np.asarray(keep, dtype=np.int64)] = np.arange(len(keep))
        here = new_number[self.interval] >= 0
        there = new_number[self.censored_interval] >= 0
        return IntervalCounts(
            len(keep),
            new_number[self.interval[here]],
            self.lower[here],
            self.upper[here],
            self.count[here],
            new_number[self.censored_interval[there]],
            self.censored_age[there],
            self.censored_count[there],
        )


def counts_from_histograms(
    intervals: int,
    observed: Iterable[tuple[int, Ints, Ints]],
    censored: Iterable[tuple[int, Ints, Ints]] = (),
) -> IntervalCounts:
    """Gather the histograms of one quantity.

    Args:
        intervals: How many intervals there are, empty ones included.
        observed: (number of the interval, bucket upper edges in nanoseconds, counts) of each histogram.
        censored: The same for observations that did not finish; values are their ages.

    Returns:
        The counts, values in seconds.
    """
    interval, upper, count = _flat(observed)
    late_interval, age, late_count = _flat(censored)
    return IntervalCounts(
        intervals,
        interval,
        bucket_lower_edge(upper) / 1e9,
        upper / 1e9,
        count,
        late_interval,
        bucket_lower_edge(age) / 1e9,  # it is known to have lasted at least this long
        late_count,
    )


def counts_from_values(intervals: int, interval: Ints, seconds: Floats) -> IntervalCounts:
    """Gather single observations, for tests and for quantities without histograms; edges are the values."""
    values = np.asarray(seconds, dtype=np.float64)
    empty = np.zeros(0, dtype=np.int64)
    return IntervalCounts(
        intervals,
        np.asarray(interval, dtype=np.int64),
        values,
        values,
        np.ones(values.size, dtype=np.int64),
        empty,
        np.zeros(0),
        empty,
    )


def pooled(parts: Sequence[IntervalCounts]) -> IntervalCounts:
    """All parts as one, the intervals of each after those of the one before."""
    offsets = np.cumsum([0, *(part.intervals for part in parts)])
    shifted = list(zip(parts, offsets, strict=False))
    return IntervalCounts(
        int(offsets[-1]),
        np.concatenate([part.interval + offset for part, offset in shifted]),
        np.concatenate([part.lower for part in parts]),
        np.concatenate([part.upper for part in parts]),
        np.concatenate([part.count for part in parts]),
        np.concatenate([part.censored_interval + offset for part, offset in shifted]),
        np.concatenate([part.censored_age for part in parts]),
        np.concatenate([part.censored_count for part in parts]),
    )


def _summed(interval: Ints, weights: Floats, intervals: int) -> Floats:
    return np.bincount(interval, weights=weights, minlength=intervals).astype(np.float64)


def _above(upper: Floats, at_most: Floats, value: float) -> float:
    place = int(np.searchsorted(upper, value, side="right"))
    return 1.0 if place == 0 else float(1 - at_most[place - 1])


def _flat(parts: Iterable[tuple[int, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    rows = list(parts)
    empty = np.zeros(0, dtype=np.int64)
    numbers = [np.full(len(values), number, dtype=np.int64) for number, values, _ in rows]
    return (
        np.concatenate([empty, *numbers]),
        np.concatenate([empty, *(np.asarray(values, dtype=np.int64) for _, values, _ in rows)]),
        np.concatenate([empty, *(np.asarray(counts, dtype=np.int64) for _, _, counts in rows)]),
    )
