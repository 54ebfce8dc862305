"""Connections of a trial: how many requests each served, who closed it, what its first request cost.

Connections are counted over the whole trial, warm-up included: a limit does not know when we measure. Times
of requests are those of successes of the measured part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.connection_use import FEWEST_CLOSED, Fairness, fairness
from loadlens.estimate.interval import Bools, Floats, Insufficient, Interval, Ints, Measured
from loadlens.measure.requests.log_rows import (
    NOT_KEPT,
    chosen,
    ended,
    seconds,
    stands_for,
    thinning_of,
    weights,
    whole,
)
from loadlens.measure.source import TrialSource
from loadlens.model.finding import Z_95
from loadlens.model.result import StreamResult
from loadlens.model.trial import Outcome

if TYPE_CHECKING:
    import polars as pl

OF_FIRST = ("sent_ns", "done_ns", "thinned", "flags")
OF_SHARES = ("done_ns", "thinned", "connection")
OPEN, BY_SERVER = 0, 2  # codes of `closed_by`
FIRST = 1  # flag of a sample: the first request of its connection
LATE_START = 0.05  # of the measured part: a connection that stood by then lived all the time
RESENT_AFTER_S = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 15.0)  # when Linux asks again for a connection
EARLIER_S, LATER = 0.01, 1.05  # how far from these a connection stands that was asked for again
LOOK_AGAIN = 2.0  # best over worst: below, whether they stay the same does not matter
UNKNOWN = Insufficient("few connections were closed")


@dataclass(frozen=True, slots=True, eq=False)
class Connected:
    """The connections of one trial."""

    requests: Ints  # answered on each connection that the service closed, shape (closed,)
    age_s: Floats  # how long each of these stood, same shape
    connect_s: Interval | Insufficient  # mean until a connection of the load stood
    first_s: Interval | Insufficient  # mean time of the first request of a connection, from sent
    other_s: Interval | Insufficient  # and of the others
    connects: int  # of load and probes
    resent: int
    lasting: int  # connections of the load that lived all the time
    served: int  # of these, with an answer
    fairness: Fairness | Insufficient  # among these
    best_over_worst: Interval | Insufficient


def read(source: TrialSource, stream: int, result: StreamResult | None, edges_s: Floats) -> Connected | None:
    """Read a trial's connections; none where none were recorded.

    Args:
        source: The trial.
        stream: Index of the load in the plan.
        result: The load's part of the engine's result.
        edges_s: Of the intervals of the measured part, seconds since t0; shape (intervals + 1,).
    """
    if result is None or result.connections is None:
        return None
    import polars as pl

    rows = source.connections()
    own = rows.filter(pl.col("stream") == stream)
    closed = own.filter((pl.col("closed_by") == BY_SERVER) & (pl.col("established_ns") >= 0))
    first, other = _times(source, stream, edges_s) if closed.height >= FEWEST_CLOSED else (UNKNOWN, UNKNOWN)
    lasting = _lasting(own, edges_s)
    counts = whole(lasting, "requests").astype(np.float64)
    shared = fairness(counts)
    return Connected(
        requests=whole(closed, "requests"),
        age_s=seconds(closed, "closed_ns") - seconds(closed, "established_ns"),
        connect_s=connect_mean(own),
        first_s=first,
        other_s=other,
        connects=_number(rows),
        resent=_number(rows.filter(_is_resent(rows))),
        lasting=_number(lasting),
        served=int(np.count_nonzero(counts)),
        fairness=shared,
        best_over_worst=shared
        if isinstance(shared, Insufficient)
        else _best_over_worst(source, stream, edges_s, lasting, shared),
    )


def _number(rows: pl.DataFrame) -> int:
    """Count connections; rows of a thinned log stand for several."""
    return int(stands_for(rows).sum())


def _is_resent(rows: pl.DataFrame) -> Bools:
    """Return which connections stood so long after they were asked for as one that is asked for again."""
    took = seconds(rows, "established_ns") - seconds(rows, "opened_ns")
    again = [(took >= after - EARLIER_S) & (took <= after * LATER) for after in RESENT_AFTER_S]
    return np.asarray(np.any(again, axis=0) & (whole(rows, "established_ns") >= 0), dtype=np.bool_)


def connect_mean(rows: pl.DataFrame) -> Measured:
    """Return the mean time until a connection stood, in seconds; of those that did."""
    import polars as pl

    stood = rows.filter(pl.col("established_ns") >= 0)
    times = seconds(stood, "established_ns") - seconds(stood, "opened_ns")
    return within_trial.mean(times, np.ones(times.size))


def _times(
    source: TrialSource, stream: int, edges_s: Floats
) -> tuple[Interval | Insufficient, Interval | Insufficient]:
    """Mean time of the first request of a connection, and of the others."""
    rows = ended(source, OF_FIRST, edges_s[0], edges_s[-1], stream=stream, outcomes=[Outcome.OK])
    is_first = (whole(rows, "flags") & FIRST) == FIRST
    return _mean(rows.filter(is_first), edges_s), _mean(rows.filter(~is_first), edges_s)


def _mean(rows: pl.DataFrame, edges_s: Floats) -> Interval | Insufficient:
    done = np.clip(seconds(rows, "done_ns"), edges_s[0], edges_s[-1])
    took = seconds(rows, "done_ns") - seconds(rows, "sent_ns")
    each, thinned = weights(rows), thinning_of(rows)

    def by_interval(weights: Floats) -> Floats:
        return np.asarray(np.histogram(done, edges_s, weights=weights)[0], dtype=np.float64)

    sums, counts = by_interval(each * took), by_interval(each)
    mean = within_trial.mean(sums, counts, squares=by_interval(each * took**2))
    if not thinned or isinstance(mean, Insufficient):
        return mean
    return replace(mean, method=f"{mean.method}, {chosen(thinned)}")


def _lasting(own: pl.DataFrame, edges_s: Floats) -> pl.DataFrame:
    """Connections that lived all the time."""
    import polars as pl

    begun = edges_s[0] + LATE_START * (edges_s[-1] - edges_s[0])
    return own.filter(
        (pl.col("closed_by") == OPEN)
        & (pl.col("established_ns") >= 0)
        & (pl.col("opened_ns") <= round(begun * 1e9))
    )


def _best_over_worst(
    source: TrialSource, stream: int, edges_s: Floats, lasting: pl.DataFrame, shared: Fairness
) -> Interval | Insufficient:
    """Return how much more the best served tenth got than the worst.

    Where that is much it is asked whether they stay the same: best and worst are those of the first half, and
    their requests are counted in the second. Of connections that a few slow requests struck by chance the
    ratio is then about 1.
    """
    counts = whole(lasting, "requests").astype(np.float64)
    if shared.best_over_worst < LOOK_AGAIN:
        return _ratio(counts, counts)
    begin, end = float(edges_s[0]), float(edges_s[-1])
    rows = ended(source, OF_SHARES, begin, end, stream=stream, outcomes=[Outcome.OK])
    if not rows.height:
        return Insufficient(NOT_KEPT)
    is_early = seconds(rows, "done_ns") < (begin + end) / 2
    each, met = weights(rows), whole(rows, "connection")
    wanted = np.sort(whole(lasting, "connection"))
    place = np.minimum(np.searchsorted(wanted, met), wanted.size - 1)
    is_own = wanted[place] == met

    def of(half: Bools) -> Floats:
        kept = half & is_own
        return np.bincount(place[kept], weights=each[kept], minlength=wanted.size).astype(np.float64)

    return _ratio(of(is_early), of(~is_early))


def _ratio(ranked: Floats, counts: Floats) -> Interval:
    """Requests of those that rank best over those that rank worst; the interval of two Poisson counts."""
    order = np.argsort(ranked, kind="stable")
    tenth = max(1, ranked.size // 10)
    best, worst = float(counts[order[-tenth:]].sum()), float(counts[order[:tenth]].sum())
    best, worst = max(0.5, best), max(0.5, worst)  # one that got nothing got at most so much
    factor, ratio = float(np.exp(Z_95 * np.sqrt(1 / best + 1 / worst))), best / worst
    return Interval(ratio, ratio / factor, ratio * factor, worst, "ratio of two Poisson counts")


def closed(trials: Sequence[Connected]) -> tuple[Ints, Floats]:
    """Requests and ages of all connections that the service closed, over trials."""
    if not trials:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    return np.concatenate([t.requests for t in trials]), np.concatenate([t.age_s for t in trials])
