"""Counts by interval in a few bytes a cell: every value comes back as it was counted."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.estimate.interval_counts import (
    IntervalCounts,
    bucket_place,
    counts_from_histograms,
    counts_from_values,
    counts_of,
    hdr_buckets,
    overlaid,
    pooled,
)

RANDOM = np.random.default_rng(5)
TIMES_NS = np.unique(np.exp(RANDOM.uniform(0, np.log(1e13), 5_000)).astype(np.int64))  # 1 ns to 3 hours


def upper_edge(ns: int) -> int:
    """Of the bucket of a time: eleven bits of it are kept (HdrHistogram, 3 significant digits)."""
    left_out = max(0, ns.bit_length() - 11)
    return (((ns >> left_out) + 1) << left_out) - 1


def test_a_bucket_is_found_by_any_time_within_it() -> None:
    edges = hdr_buckets()

    place = bucket_place(TIMES_NS)

    assert edges.upper[place].tolist() == [upper_edge(ns) / 1e9 for ns in TIMES_NS.tolist()]
    assert (edges.lower[place] <= TIMES_NS / 1e9).all()
    assert bucket_place(np.array([0, 1, 2047, 2048, 2049, 2050])).tolist() == [0, 1, 2047, 2048, 2048, 2049]
    assert edges.upper.size < 1 << 16  # a place takes two bytes


def histogram(interval: int, times_ns: list[int], counts: list[int]) -> tuple[int, np.ndarray, np.ndarray]:
    return interval, np.array(times_ns), np.array(counts)


@pytest.mark.parametrize(("most", "bytes_a_cell"), [(100, 3), (30_000, 4), (2_000_000_000, 6)])
def test_a_cell_takes_as_few_bytes_as_its_counts_need_and_loses_nothing(most: int, bytes_a_cell: int) -> None:
    upper = np.unique([upper_edge(ns) for ns in TIMES_NS.tolist()])
    counts = RANDOM.integers(1, most, upper.size)
    counts[7] = most

    gathered = counts_from_histograms(9, [(3, upper, counts), (5, upper[::-1], counts)])

    assert gathered.upper.tolist() == [*(upper / 1e9), *(upper[::-1] / 1e9)]
    assert gathered.count.tolist() == [*counts, *counts]
    assert gathered.interval.tolist() == [3] * upper.size + [5] * upper.size
    assert gathered.observed == 2 * int(counts.sum())
    assert gathered.observed_per_interval().tolist() == [0, 0, 0, counts.sum(), 0, counts.sum(), 0, 0, 0]
    assert gathered.place.nbytes + gathered.count.nbytes == bytes_a_cell * 2 * upper.size


def test_values_that_are_no_upper_edges_of_three_digits_stay_as_they_are() -> None:
    gathered = counts_from_histograms(1, [histogram(0, [4_095, 4_097, 10**9], [1, 2, 3])])

    assert gathered.upper.tolist() == [4_095 / 1e9, 4_097 / 1e9, 1.0]  # 4,097 ends a bucket of more digits


def by_hand(counts: IntervalCounts) -> tuple[list[float], list[float]]:
    """Distinct upper edges, and the share up to each, one cell after the other."""
    seen: dict[float, int] = {}
    for upper, count in zip(counts.upper.tolist(), counts.count.tolist(), strict=True):
        seen[upper] = seen.get(upper, 0) + count
    values = sorted(seen)
    return values, [sum(seen[v] for v in values[: i + 1]) / counts.observed for i in range(len(values))]


def test_counts_over_different_values_are_put_together() -> None:
    hdr = counts_from_histograms(2, [histogram(0, [2_047, 2_049], [1, 2]), histogram(1, [2_047], [4])])
    single = counts_from_values(2, np.array([1, 0]), np.array([0.5, 2_049 / 1e9]))

    whole, beside = pooled([hdr, single]), overlaid([hdr, single])

    assert (whole.intervals, beside.intervals) == (4, 2)
    assert whole.interval.tolist() == [0, 0, 1, 3, 2]
    assert beside.interval.tolist() == [0, 0, 1, 1, 0]
    for gathered in (whole, beside):
        assert gathered.upper.tolist() == [2_047 / 1e9, 2_049 / 1e9, 2_047 / 1e9, 0.5, 2_049 / 1e9]
        assert gathered.count.tolist() == [1, 2, 4, 1, 1]
        lower, upper, at_most = gathered.distribution()
        assert (upper.tolist(), at_most.tolist()) == by_hand(gathered)
        assert lower.tolist() == [2_047 / 1e9, 2_048 / 1e9, 0.5]  # the lowest of those that end alike


def test_cells_above_a_value_and_between_two_are_those_whose_edges_say_so() -> None:
    ones = np.ones(4, dtype=np.int64)
    lower = np.array([0.9, 1.9, 2.9, 1.9])
    gathered = counts_of(3, np.array([0, 0, 2, 2]), lower, lower + 0.2, 2 * ones)

    part = gathered.between(1.0, 2.0)  # middles 1, 2, 3 and 2

    assert gathered.above_per_interval(2.1).tolist() == [0, 0, 2]
    assert (part.interval.tolist(), part.middle.tolist()) == ([0, 2], pytest.approx([2.0, 2.0]))
    assert gathered.select([2]).upper.tolist() == pytest.approx([3.1, 2.1])
