"""Single requests of one step of a trial, and what is kept of them.

A record holds tens of millions of requests, so they are read for one trial at a time and dropped: what
stays of a trial does not grow with its requests. What depends on other trials reads them again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from loadlens.estimate.interval import Floats, Ints
from loadlens.estimate.interval_counts import (
    IntervalCounts,
    bucket_place,
    counts_in_hdr_buckets,
)
from loadlens.estimate.steady_state import trend_of
from loadlens.measure.requests.answer_sizes import SizeRows

PER_POINT = 15  # requests a point of a trend stands on
POINTS, FEWEST_TREND_POINTS = 40, 10
FEWEST_FOR_A_MEDIAN = 30
DELAYED_ACK_S = 0.04
# Kernels with a clock of 250 /s end a delay of 40 ms up to one tick later.
ACK_FROM_S, ACK_TO_S = 0.95 * DELAYED_ACK_S, 0.0465
ACK_WIDTH_S = ACK_TO_S - ACK_FROM_S
AT_ONCE = 1 << 18  # requests that are counted at once: the arrays on the way take ten times their memory


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Requests:
    """Successes of one step that neither met a standstill nor opened a connection, ascending by due."""

    due_s: Floats
    took_s: Floats  # from due
    body_s: Floats  # from the first byte of the answer to its last


@dataclass(frozen=True, slots=True, eq=False)
class Delayed:
    """Answers whose bodies took about as long as a delayed acknowledgement."""

    of: int  # requests of the step
    place: Ints  # of each such answer among them
    body_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class StepRows:
    """Successes of one step of the load in the measured part; times from due."""

    opening: IntervalCounts  # the first ones of their connections
    met: int  # left out: they met a standstill
    usual: IntervalCounts  # the others
    middle_s: Floats  # median of the usual and both ends of its interval; empty with too few
    change: float | None  # of the logarithm of their times over the trial; none with too few
    p_value: float  # of that change
    delayed: Delayed
    sizes: tuple[SizeRows, ...] = ()  # of all successes, those that are left out elsewhere included


def step_rows(
    requests: Requests,
    opening: IntervalCounts,
    met: int,
    edges_s: Floats,
    sizes: tuple[SizeRows, ...] = (),
) -> StepRows:
    """Return what is kept of the requests of a step.

    Args:
        requests: The usual ones.
        opening: Those that opened a connection.
        met: How many met a standstill.
        edges_s: Of the intervals of the measured part.
        sizes: Of the answers of all successes.
    """
    change, p_value = _trend(requests.took_s)
    # With the neighbours of such a delay, as far away as it varies.
    near = np.flatnonzero(
        (requests.body_s >= ACK_FROM_S - ACK_WIDTH_S) & (requests.body_s <= ACK_TO_S + ACK_WIDTH_S)
    )
    return StepRows(
        opening=opening,
        met=met,
        usual=counted(requests.due_s + requests.took_s, requests.took_s, edges_s),
        middle_s=_median(requests.took_s),
        change=change,
        p_value=p_value,
        delayed=Delayed(int(requests.body_s.size), near, requests.body_s[near]),
        sizes=sizes,
    )


def _median(took_s: Floats) -> Floats:
    """The median and both ends of its interval; empty with too few requests."""
    if took_s.size < FEWEST_FOR_A_MEDIAN:
        return np.zeros(0)
    # By ranks: an interval that allows for neighbours would take the growth within the trial for their doing.
    half = 0.98 / math.sqrt(took_s.size)
    return np.asarray(np.quantile(took_s, [0.5, 0.5 - half, 0.5 + half]), dtype=np.float64)


def _trend(took_s: Floats) -> tuple[float | None, float]:
    points = min(POINTS, took_s.size // PER_POINT)
    if points < FEWEST_TREND_POINTS:
        return None, 1.0
    series = np.array([float(np.median(piece)) for piece in np.array_split(took_s, points)])
    trend = trend_of(np.log(np.maximum(series, 1e-9)))
    return trend.change, trend.p_value


def counted(done_s: Floats, took_s: Floats, edges_s: Floats) -> IntervalCounts:
    """Times by interval of the measured part, to three digits: equal values share a cell.

    Args:
        done_s: When each request ended, shape (requests,).
        took_s: How long it took, same shape.
        edges_s: Of the intervals.
    """
    parts = [
        _cells(done_s[at : at + AT_ONCE], took_s[at : at + AT_ONCE], edges_s)
        for at in range(0, done_s.size, AT_ONCE)
    ]
    none: Ints = np.zeros(0, dtype=np.int64)
    keys, place = np.unique(np.concatenate([none, *(keys for keys, _ in parts)]), return_inverse=True)
    weights = np.concatenate([none, *(counts for _, counts in parts)])
    counts = np.bincount(place, weights=weights, minlength=keys.size).astype(np.int64)
    return counts_in_hdr_buckets(edges_s.size - 1, keys >> 16, keys & 0xFFFF, counts)


def _cells(done_s: Floats, took_s: Floats, edges_s: Floats) -> tuple[Ints, Ints]:
    """Interval and bucket of some requests as one number, which sorts far quicker than two; and counts."""
    interval = np.clip(np.searchsorted(edges_s, done_s, side="right") - 1, 0, edges_s.size - 2)
    ns = np.maximum(1, np.round(took_s * 1e9)).astype(np.int64)
    return np.unique(interval << 16 | bucket_place(ns), return_counts=True)
