"""What only single requests tell of a trial: when nothing was answered at all, and times apart from that.

Counts by interval know neither which requests met a pause nor which opened a connection. Rows of requests do,
where the log kept every one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from loadlens.analyse.figures import figure
from loadlens.analyse.source import Json, StreamPlan, TrialSource
from loadlens.model.shapes import Took
from loadlens.model.trial import Outcome
from loadlens.stats import pauses, within
from loadlens.stats.counts import IntervalCounts
from loadlens.stats.interval import Bools, Floats, Insufficient, Ints

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 4_000_000
FIRST = 1  # flag of the first request of its connection
ANSWERED = (Outcome.OK, Outcome.UNEXPECTED_STATUS, Outcome.CHECK_FAILED)
MANY_USERS = 8  # fewer may all be on a slow path at once, and then only probes say that the service lives
OF_THEIR_RATE = 0.5  # of a closed load's answers: what is left where half of the users are on such a path
FLOOR_S = 0.05  # a machine that others use too stops everything for as long now and then
AFTERMATH = 0.5  # of a pause: what was due in it is worked off meanwhile
SEVERAL = 2
WITNESSED = 0.01  # chance that probes which waited together were slow each by itself
CLOSE_S = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class StepRows:
    """Successes of one step of the load in the measured part; times from due."""

    opening: IntervalCounts  # the first ones of their connections
    met: int  # left out: they met a standstill
    due_s: Floats  # of the usual, which neither met a standstill nor opened a connection, ascending
    took_s: Floats
    body_s: Floats  # of these, from the first byte of the answer to its last
    edges_s: Floats  # of the intervals of the measured part

    @property
    def usual(self) -> IntervalCounts:
        """Counted anew each time: kept for all trials it would be half of what a long record takes."""
        return counted(self.due_s + self.took_s, self.took_s, self.edges_s)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """One trial, request by request."""

    begin_s: float  # of the measured part
    stops: pauses.Pauses  # stretches without any answer of any stream; `beat` is of this trial alone
    is_cut: tuple[bool, ...]  # of each, by the end of the measured part
    between_s: float  # mean distance of answers outside them
    age_s: float  # mean distance of a moment outside them to the last answer before
    steps: tuple[StepRows, ...]  # of the load
    probe_due_s: Floats  # of all probes, ascending
    probe_took_s: Floats


Read = Rows | Insufficient
NOT_LOOKED_AT = Insufficient("single requests were not looked at")


def read(source: TrialSource, plans: Sequence[StreamPlan], counters: Sequence[Json], edges_s: Floats) -> Read:
    """Look through the rows of a trial.

    Args:
        source: The trial.
        plans: Its streams.
        counters: Rows of counters.jsonl: the generator's own stalls are no standstill of the service.
        edges_s: Of the intervals of the measured part.
    """
    issued = sum(int(row.get("answered", 0)) for row in counters if row.get("stream") is not None)
    if issued > MOST_ROWS:
        return Insufficient(f"{issued:,} requests are too many to look at one by one")
    rows = source.samples()
    if rows.is_empty() or (rows["thinned"] > 0).any():
        return Insufficient("the log does not hold every request")
    return _read(rows, plans, counters, edges_s)


def _read(rows: pl.DataFrame, plans: Sequence[StreamPlan], counters: Sequence[Json], edges_s: Floats) -> Read:
    begin, end = float(edges_s[0]), float(edges_s[-1])
    of = _Columns(rows)
    answered = np.isin(of.outcome, [int(outcome) for outcome in ANSWERED]) & (of.due_s >= 0)
    done = np.sort(of.done_s[answered & (of.done_s <= end)])
    loads = [plan for plan in plans if not plan.is_probe]
    if not loads or done.size < pauses.FEWEST_EVENTS:
        return Insufficient("hardly anything was answered")
    load = loads[0]
    is_load = of.stream == load.index
    is_ok = (of.outcome == int(Outcome.OK)) & (of.done_s >= begin) & (of.done_s <= end) & (of.due_s >= 0)
    stops, is_cut = _stops(of, plans, done, answered, counters, begin, end)
    in_part = done[done >= begin]
    alive = max(end - begin - stops.total_s, 1e-9)
    met = ~spared(of.due_s, of.done_s, stops)
    steps = tuple(
        _of_step(of, is_ok & is_load & (of.step == step.index), met, edges_s) for step in load.steps
    )
    is_probe = is_ok & ~is_load
    order = np.argsort(of.due_s[is_probe], kind="stable")
    return Rows(
        begin_s=begin,
        stops=stops,
        is_cut=is_cut,
        between_s=alive / max(1, in_part.size),
        age_s=_age(in_part, stops),
        steps=steps,
        probe_due_s=of.due_s[is_probe][order],
        probe_took_s=of.took_s[is_probe][order],
    )


def _age(done_s: Floats, stops: pauses.Pauses) -> float:
    """How long ago the last answer was, for a moment drawn at random outside standstills.

    The mean age of a renewal process, E X^2 / 2 E X (Cox 1962, 5.4): half the distance of answers that keep
    time, all of it where they come by chance, more where they come together.
    """
    last = np.searchsorted(stops.begin_s, done_s[:-1], side="right") - 1
    ended = np.append(stops.begin_s + stops.length_s, -np.inf)  # of none: before all
    gaps = np.diff(done_s)[done_s[:-1] >= ended[last]]
    total = float(gaps.sum())
    return float(gaps @ gaps) / (2 * total) if total > 0 else 0.0


class _Columns:
    """The columns that are looked at, as arrays; times in seconds."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.due_s: Floats = rows["due_ns"].to_numpy().astype(np.float64) / 1e9
        self.done_s: Floats = rows["done_ns"].to_numpy().astype(np.float64) / 1e9  # below 0: it did not end
        self.took_s: Floats = self.done_s - self.due_s
        first = rows["first_ns"].to_numpy().astype(np.float64) / 1e9
        self.body_s: Floats = np.where(first < 0, 0.0, self.done_s - first)
        self.stream: Ints = rows["stream"].to_numpy().astype(np.int64)
        self.step: Ints = rows["step"].to_numpy().astype(np.int64)
        self.outcome: Ints = rows["outcome"].to_numpy().astype(np.int64)
        self.is_first: Bools = (rows["flags"].to_numpy().astype(np.int64) & FIRST) > 0


def _stops(
    of: _Columns,
    plans: Sequence[StreamPlan],
    done: Floats,
    answered: Bools,
    counters: Sequence[Json],
    begin: float,
    end: float,
) -> tuple[pauses.Pauses, tuple[bool, ...]]:
    """Gaps between answers of all streams together that chance does not explain, and which of them are cut.

    Answers of a few users may stop because all of them wait for something else; then probes, which come at
    random whatever becomes of others, decide alone: by a gap between their own answers, or by a shorter one
    for whose end several of them waited. The limit that is given holds for the first.
    """
    steady, idle = 0, 0.0
    for plan in plans:
        own = answered & (of.stream == plan.index) & (of.done_s >= begin) & (of.done_s <= end)
        count = int(own.sum())
        if plan.is_closed:
            steady += int(OF_THEIR_RATE * count) if plan.load >= MANY_USERS else 0
            for step in plan.steps:
                took = of.took_s[own & (of.step == step.index)]
                idle = max(idle, float(took.min(initial=np.inf)) if took.size else 0.0)
        else:
            steady += count
    limit = max(pauses.shortest_visible(steady, end - begin), pauses.OF_IDLE_TIME * idle, FLOOR_S)
    own_begin, own_end = _stalls(counters)
    points = np.append(done, end)
    found = pauses.pauses(
        points[:-1],
        np.diff(points),
        completions=max(int((done >= begin).sum()), pauses.FEWEST_EVENTS),
        seconds=end - begin,
        idle_s=idle,
        floor_s=FLOOR_S,
        own_begin_s=own_begin,
        own_end_s=own_end,
    )
    assert isinstance(found, pauses.Pauses)  # it has enough completions
    probes = np.isin(of.stream, [plan.index for plan in plans if plan.is_probe])
    is_told = (found.length_s > limit) | _witnessed(of, probes, found)
    inside = is_told & (found.begin_s + found.length_s > begin) & _held_up(of, found)
    kept = pauses.Pauses(found.begin_s[inside], found.length_s[inside], limit, None)
    is_cut = tuple(bool(at >= end - 1e-9) for at in kept.begin_s + kept.length_s)
    return kept, is_cut


def _held_up(of: _Columns, found: pauses.Pauses) -> Bools:
    """Whether several requests that were due in the first half of a gap waited for its end, shape (gaps,)."""
    return _waited(of, found, np.ones(of.due_s.size, dtype=np.bool_)) >= SEVERAL


def _waited(of: _Columns, found: pauses.Pauses, which: Bools) -> Ints:
    """How many of some requests, due in the first half of a gap, waited for its end, shape (gaps,)."""
    due = of.due_s[which & (of.due_s >= 0)]
    done = of.done_s[which & (of.due_s >= 0)]
    done = np.where(done < 0, np.inf, done)
    ends = found.begin_s + found.length_s
    waited = [
        int(((due < end - length / 2) & (done >= end - CLOSE_S)).sum())
        for end, length in zip(ends, found.length_s, strict=True)
    ]
    return np.array(waited, dtype=np.int64)


def _witnessed(of: _Columns, probes: Bools, found: pauses.Pauses) -> Bools:
    """Whether so many probes waited for the end of a gap that not each can be slow by itself, shape (gaps,).

    A few users may all be on a slow path at once, so their silence alone tells little; but probes have
    nothing to do with it. Beside gaps a share of them is as slow (at least one is counted), and k at once are
    so by chance with the k-th power of that, for each gap that could have met them.
    """
    known = probes & (of.due_s >= 0) & (of.done_s >= 0)
    took = of.took_s[known][pauses.undisturbed(of.due_s[known], of.done_s[known], found)]
    if not took.size:
        return np.zeros(found.length_s.size, dtype=np.bool_)
    waited = _waited(of, found, probes)
    slow = np.array([float((took > length / 2).sum()) for length in found.length_s])
    chance = found.length_s.size * (np.maximum(1.0, slow) / took.size) ** waited
    return np.asarray((waited >= SEVERAL) & (chance < WITNESSED), dtype=np.bool_)


def _stalls(counters: Sequence[Json]) -> tuple[Floats, Floats]:
    """When the generator itself stood still, at most."""
    found = [
        (float(row["start_s"]) - longest, float(row["start_s"]) + float(row["length_s"]))
        for row in counters
        if (longest := max(row.get("generator", {}).get("stalled_s") or (), default=0.0)) > 0
    ]
    return np.array([begin for begin, _ in found]), np.array([end for _, end in found])


def spared(due_s: Floats, done_s: Floats, stops: pauses.Pauses) -> Bools:
    """Which requests met no standstill and nothing that was due in one and is worked off after it."""
    begin, end = pauses.joined(stops.begin_s, stops.begin_s + (1 + AFTERMATH) * stops.length_s)
    return pauses.undisturbed(due_s, done_s, pauses.Pauses(begin, end - begin, stops.shortest_s, None))


def _of_step(of: _Columns, own: Bools, met: Bools, edges_s: Floats) -> StepRows:
    usual, opening = own & ~met & ~of.is_first, own & ~met & of.is_first
    order = np.argsort(of.due_s[usual], kind="stable")
    return StepRows(
        opening=counted(of.done_s[opening], of.took_s[opening], edges_s),
        met=int((own & met).sum()),
        due_s=of.due_s[usual][order],
        took_s=of.took_s[usual][order],
        body_s=of.body_s[usual][order],
        edges_s=edges_s,
    )


def counted(done_s: Floats, took_s: Floats, edges_s: Floats) -> IntervalCounts:
    """Times by interval of the measured part, to three digits: equal values share a cell.

    Args:
        done_s: When each request ended, shape (requests,).
        took_s: How long it took, same shape.
        edges_s: Of the intervals.
    """
    size = edges_s.size - 1
    place = np.clip(np.searchsorted(edges_s, done_s, side="right") - 1, 0, size - 1)
    ns = np.maximum(1, np.round(took_s * 1e9)).astype(np.int64)
    shift = np.maximum(0, np.floor(np.log2(ns)).astype(np.int64) - 10)
    # One number for each cell, which sorts far quicker than three: interval, exponent, and 11 bits of value.
    keys, counts = np.unique(place << 17 | shift << 11 | ns >> shift, return_counts=True)
    interval, exponent, value = keys >> 17, keys >> 11 & 0x3F, keys & 0x7FF
    low, width = value << exponent, np.left_shift(np.int64(1), exponent)
    none: Any = np.zeros(0, dtype=np.int64)
    return IntervalCounts(
        size,
        interval,
        low / 1e9,
        (low + width - 1) / 1e9,
        counts.astype(np.int64),
        none,
        np.zeros(0),
        none,
    )


def took(counts: IntervalCounts, trials: int) -> Took:
    """Mean and p99 of times that are known one by one, with intervals from how they vary over time."""
    figures = (
        figure(metric, "s", found, trials, counts.observed)
        for metric, found in (
            ("response_time.mean", within.mean_of(counts)),
            ("response_time.p99", within.quantile(counts, 0.99)),
        )
    )
    return Took(*figures)
