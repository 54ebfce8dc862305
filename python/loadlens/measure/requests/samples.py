"""Single requests of a trial: when nothing was answered at all, and times apart from that.

Counts by interval know neither which requests met a pause nor which opened a connection. Rows of requests do,
where the log kept every one of them. They are gone when a trial was read; `Rows.requests` reads them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from loadlens.estimate import pauses, rate_limiter, within_trial
from loadlens.estimate.interval import Bools, Floats, Insufficient, Ints
from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.measure.figures import figure
from loadlens.measure.requests.answer_sizes import by_class
from loadlens.measure.requests.kept import Requests, StepRows, counted, step_rows
from loadlens.measure.requests.log_rows import ANSWERED, is_thinned
from loadlens.measure.source import StreamPlan, TrialSource
from loadlens.model.counters import Counters
from loadlens.model.shapes import LetThrough, Spacing, Took
from loadlens.model.trial import Outcome

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 4_000_000
COLUMNS = ("due_ns", "done_ns", "first_ns", "stream", "step", "outcome", "flags", "body_bytes", "thinned")
IN_SECONDS = ("due_ns", "done_ns")
FIRST = 1  # flag of the first request of its connection
MANY_USERS = 8  # fewer may all be on a slow path at once, and then only probes say that the service lives
OF_THEIR_RATE = 0.5  # of a closed load's answers: what is left where half of the users are on such a path
FLOOR_S = 0.05  # a machine that others use too stops everything for as long now and then
AFTERMATH = 0.5  # of a pause: what was due in it is worked off meanwhile
SEVERAL = 2
WITNESSED = 0.01  # chance that probes which waited together were slow each by itself
CLOSE_S = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """One trial, request by request."""

    begin_s: float  # of the measured part
    stops: pauses.Pauses  # stretches without any answer of any stream; `beat` is of this trial alone
    is_cut: tuple[bool, ...]  # of each, by the end of the measured part
    between_s: float  # mean distance of answers outside them
    age_s: float  # mean distance of a moment outside them to the last answer before
    steps: tuple[StepRows, ...]  # of the load
    requests: Callable[[int], Requests]  # the usual ones of a step, read again: not to be kept
    probe_due_s: Floats  # of all probes, ascending
    probe_took_s: Floats
    spacing: Spacing = field(default_factory=Spacing)  # of successes of the load
    let_through: LetThrough | None = None  # from the begin of the load, warm-up included
    bursts: tuple[pauses.Bursts | None, ...] = ()  # of slow requests, of each step of the load


Read = Rows | Insufficient
Samples = Callable[[], "Iterable[pl.DataFrame]"]  # reads the log again each time
NOT_LOOKED_AT = Insufficient("single requests were not looked at")


def read(source: TrialSource, plans: Sequence[StreamPlan], counters: Counters, edges_s: Floats) -> Read:
    """Look through the rows of a trial.

    Args:
        source: The trial.
        plans: Its streams.
        counters: Of all streams and the generator, whose own stalls are no standstill of the service.
        edges_s: Of the intervals of the measured part.
    """
    issued = sum(row.answered for row in counters.streams)
    if issued > MOST_ROWS:
        return Insufficient(f"{issued:,} requests are too many to look at one by one")
    return _read(partial(source.sample_parts, COLUMNS), plans, counters, edges_s)


def _read(
    samples: Samples,
    plans: Sequence[StreamPlan],
    counters: Counters,
    edges_s: Floats,
) -> Read:
    begin, end = float(edges_s[0]), float(edges_s[-1])
    of = _columns(samples)
    if of is None:
        return Insufficient("the log does not hold every request")
    answered = np.isin(of.outcome, [int(outcome) for outcome in ANSWERED]) & (of.due_s >= 0)
    done = of.done_s[answered & (of.done_s <= end)]
    done.sort()
    loads = [plan for plan in plans if not plan.is_probe]
    if not loads or done.size < pauses.FEWEST_EVENTS:
        return Insufficient("hardly anything was answered")
    load = loads[0]
    stops, is_cut = _stops(of, plans, done, answered, counters, begin, end)
    in_part = done[done >= begin]
    alive = max(end - begin - stops.total_s, 1e-9)
    met = ~spared(of.due_s, of.done_s, stops)
    steps = tuple(_of_step(of, of.own(load, step.index, begin, end), met, edges_s) for step in load.steps)
    is_probe = of.is_ok(begin, end) & (of.stream != load.index)
    probes = np.flatnonzero(is_probe)
    probes = probes[np.argsort(of.due_s[probes], kind="stable")]
    return Rows(
        begin_s=begin,
        stops=stops,
        is_cut=is_cut,
        between_s=alive / max(1, in_part.size),
        age_s=_age(in_part, stops),
        spacing=_spacing(np.sort(of.done_s[of.is_ok(begin, end) & (of.stream == load.index)])),
        steps=steps,
        let_through=_let_through(of, answered, load.index, end),
        bursts=tuple(_bursts(of, of.own(load, step.index, begin, end)) for step in load.steps),
        requests=partial(_again, samples, load, stops, (begin, end)),
        probe_due_s=of.due_s[probes],
        probe_took_s=of.took_s(probes),
    )


def _again(
    samples: Samples,
    load: StreamPlan,
    stops: pauses.Pauses,
    part: tuple[float, float],
    step: int,
) -> Requests:
    """The usual requests of a step, as they were when the trial was read."""
    of = _columns(samples)
    assert of is not None  # it was not when the trial was read
    met = ~spared(of.due_s, of.done_s, stops)
    return _usual(of, of.own(load, step, *part), met)


def _bursts(of: _Columns, own: Bools) -> pauses.Bursts | None:
    which = np.flatnonzero(own & ~of.is_first)
    which = which[np.argsort(of.due_s[which], kind="stable")]
    return pauses.slow_bursts(of.due_s[which], of.took_s(which))


def _spacing(done_s: Floats) -> Spacing:
    """Count the gaps between answers, ascending, and those shorter than half of the mean gap."""
    gaps = np.diff(done_s)
    return Spacing(int((gaps < gaps.mean() / 2).sum()), gaps.size) if gaps.size else Spacing(0, 0)


def _let_through(of: _Columns, answered: Bools, stream: int, end_s: float) -> LetThrough | None:
    """Look at all answers to the load, from its first request on: a limiter lets failures through as well."""
    own = (of.stream == stream) & (of.due_s >= 0)
    if not own.any():
        return None
    begin_s = float(of.due_s[own].min())
    done = np.sort(of.done_s[own & answered & (of.done_s <= end_s)]) - begin_s
    late, windows = rate_limiter.settled(done, end_s - begin_s), rate_limiter.windows(done)
    if late is None and windows is None:
        return None
    if late is None:
        late = rate_limiter.Settled(done.size / (end_s - begin_s), done.size, 0.0, np.inf)
    return LetThrough(
        late.rate_per_s,
        late.requests,
        late.ahead,
        late.deviation,
        None if windows is None else windows.period_s,
        () if windows is None else windows.sizes,
        0.0 if windows is None else windows.silent,
    )


def _age(done_s: Floats, stops: pauses.Pauses) -> float:
    """Return how long ago the last answer was, for a moment drawn at random outside standstills.

    The mean age of a renewal process, E X^2 / 2 E X (Cox 1962, 5.4): half the distance of answers that keep
    time, all of it where they are independent, more where they come together.
    """
    last = np.searchsorted(stops.begin_s, done_s[:-1], side="right") - 1
    ended = np.append(stops.begin_s + stops.length_s, -np.inf)  # of none: before all
    gaps = np.diff(done_s)[done_s[:-1] >= ended[last]]
    total = float(gaps.sum())
    return float(gaps @ gaps) / (2 * total) if total > 0 else 0.0


class _Columns:
    """The columns that are looked at, as arrays."""

    def __init__(self, parts: Mapping[str, list[np.ndarray]]) -> None:
        joined = (_joined(parts[name]) for name in COLUMNS)
        self.due_s: Floats = next(joined)
        self.done_s: Floats = next(joined)  # below 0: it did not end
        self.first_ns: Ints = next(joined)
        self.stream: Ints = next(joined)
        self.step: Ints = next(joined)
        self.outcome: Ints = next(joined)
        self.is_first: Bools = (next(joined) & FIRST) > 0
        self.body_bytes: Ints = next(joined)

    def took_s(self, which: Bools | Ints) -> Floats:
        """From due to done, of some requests."""
        return self.done_s[which] - self.due_s[which]

    def is_ok(self, begin: float, end: float) -> Bools:
        """Successes that ended in a part and were due by a schedule."""
        ended = (self.done_s >= begin) & (self.done_s <= end)
        return np.asarray((self.outcome == int(Outcome.OK)) & ended & (self.due_s >= 0), dtype=np.bool_)

    def own(self, load: StreamPlan, step: int, begin: float, end: float) -> Bools:
        """Return the requests of a step of the load."""
        of_step = (self.stream == load.index) & (self.step == step)
        return np.asarray(self.is_ok(begin, end) & of_step, dtype=np.bool_)


def _columns(samples: Samples) -> _Columns | None:
    """The columns of a log that holds every request; times in seconds."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in COLUMNS}
    for part in samples():
        if is_thinned(part):
            return None
        for name in COLUMNS:
            values = part[name].to_numpy()
            parts[name].append(_seconds(values) if name in IN_SECONDS else values)
    return _Columns(parts) if sum(part.size for part in parts[COLUMNS[0]]) else None


def _joined(parts: list[np.ndarray]) -> Any:
    """The parts of a column as one; they are dropped at once, so that no two columns are there twice."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def _seconds(ns: Ints) -> Floats:
    seconds: Floats = ns.astype(np.float64)
    seconds /= 1e9
    return seconds


def _stops(
    of: _Columns,
    plans: Sequence[StreamPlan],
    done: Floats,
    answered: Bools,
    counters: Counters,
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
                took = of.took_s(own & (of.step == step.index))
                idle = max(idle, float(took.min(initial=np.inf)) if took.size else 0.0)
        else:
            steady += count
    limit = max(pauses.shortest_visible(steady, end - begin), pauses.OF_IDLE_TIME * idle, FLOOR_S)
    own_begin, own_end = counters.stalls
    points = np.append(done, end)
    gaps = pauses.pauses(
        points[:-1],
        np.diff(points),
        completions=max(int((done >= begin).sum()), pauses.FEWEST_EVENTS),
        seconds=end - begin,
        idle_s=idle,
        floor_s=FLOOR_S,
        own_begin_s=np.array(own_begin),
        own_end_s=np.array(own_end),
    )
    assert isinstance(gaps, pauses.Pauses)  # it has enough completions
    probes = np.isin(of.stream, [plan.index for plan in plans if plan.is_probe])
    is_told = (gaps.length_s > limit) | _witnessed(of, probes, gaps)
    inside = is_told & (gaps.begin_s + gaps.length_s > begin) & _held_up(of, gaps, answered)
    kept = pauses.Pauses(gaps.begin_s[inside], gaps.length_s[inside], limit, None)
    is_cut = tuple(bool(at >= end - 1e-9) for at in kept.begin_s + kept.length_s)
    return kept, is_cut


def _held_up(of: _Columns, gaps: pauses.Pauses, answered: Bools) -> Bools:
    """True if several requests due before the middle of a gap waited for its end, shape (gaps,).

    They took longer than usual by half of the gap at least: users who are answered in step leave gaps in
    which no request takes any longer.
    """
    if not gaps.length_s.size:
        return np.zeros(0, dtype=np.bool_)
    every = np.ones(of.due_s.size, dtype=np.bool_)
    return _waited(of, gaps, every, usual_s=_usual_s(of, answered)) >= SEVERAL


def _usual_s(of: _Columns, answered: Bools) -> Floats:
    """Return the lower quartile of the times of the answers like each, shape (requests,); 0: it has none."""
    usual = np.zeros(of.due_s.size)
    for stream, step, outcome in np.unique(np.stack([of.stream, of.step, of.outcome])[:, answered], axis=1).T:
        alike = answered & (of.stream == stream) & (of.step == step) & (of.outcome == outcome)
        usual[alike] = np.quantile(of.took_s(alike), 0.25)
    return usual


def _waited(of: _Columns, gaps: pauses.Pauses, which: Bools, usual_s: Floats | None = None) -> Ints:
    """Count the requests that, due before the middle of a gap, waited for its end, shape (gaps,).

    Args:
        of: All requests.
        gaps: Of answers.
        which: Requests that are counted, shape (requests,).
        usual_s: Of each, beyond which it must have waited for half of the gap, shape (requests,); none: any.
    """
    timed = which & (of.due_s >= 0)
    due, done = of.due_s[timed], of.done_s[timed]
    done = np.where(done < 0, np.inf, done)
    longer = np.inf if usual_s is None else done - due - usual_s[timed]
    ends = gaps.begin_s + gaps.length_s
    waited = [
        int(((due < end - length / 2) & (done >= end - CLOSE_S) & (longer >= length / 2)).sum())
        for end, length in zip(ends, gaps.length_s, strict=True)
    ]
    return np.array(waited, dtype=np.int64)


def _witnessed(of: _Columns, probes: Bools, gaps: pauses.Pauses) -> Bools:
    """True if so many probes waited for the end of a gap that not each can be slow by itself, shape (gaps,).

    A few users may all be on a slow path at once, so their silence alone says little; but probes have
    nothing to do with it. Outside gaps a share of them is as slow (at least one is counted), and k at once
    are so by chance with the k-th power of that, for each gap that could have met them.
    """
    timed = probes & (of.due_s >= 0) & (of.done_s >= 0)
    took = of.took_s(timed)[pauses.undisturbed(of.due_s[timed], of.done_s[timed], gaps)]
    if not took.size:
        return np.zeros(gaps.length_s.size, dtype=np.bool_)
    waited = _waited(of, gaps, probes)
    slow = np.array([float((took > length / 2).sum()) for length in gaps.length_s])
    chance = gaps.length_s.size * (np.maximum(1.0, slow) / took.size) ** waited
    return np.asarray((waited >= SEVERAL) & (chance < WITNESSED), dtype=np.bool_)


def spared(due_s: Floats, done_s: Floats, stops: pauses.Pauses) -> Bools:
    """Return which requests met no standstill and nothing that was due in one and is worked off after it."""
    begin, end = pauses.joined(stops.begin_s, stops.begin_s + (1 + AFTERMATH) * stops.length_s)
    return pauses.undisturbed(due_s, done_s, pauses.Pauses(begin, end - begin, stops.shortest_s, None))


def _usual(of: _Columns, own: Bools, met: Bools) -> Requests:
    """Requests of a step that neither met a standstill nor opened a connection."""
    at = np.flatnonzero(own & ~met & ~of.is_first)
    at = at[np.argsort(of.due_s[at], kind="stable")]
    due, took, body = of.due_s[at], of.done_s[at], _seconds(of.first_ns[at])
    # In place: at millions of requests each array on the way takes tens of megabytes.
    has_none = body < 0
    np.subtract(took, body, out=body)
    body[has_none] = 0.0
    took -= due
    return Requests(due, took, body)


def _of_step(of: _Columns, own: Bools, met: Bools, edges_s: Floats) -> StepRows:
    opening = own & ~met & of.is_first
    return step_rows(
        _usual(of, own, met),
        opening=counted(of.done_s[opening], of.took_s(opening), edges_s),
        met=int((own & met).sum()),
        edges_s=edges_s,
        sizes=by_class(of.body_bytes[own], of.took_s(own)),
    )


def took(counts: IntervalCounts, trials: int) -> Took:
    """Return mean and p99 of individually recorded times, with intervals from their variation over time."""
    figures = (
        figure(metric, "s", result, trials, counts.observed)
        for metric, result in (
            ("response_time.mean", within_trial.mean_of(counts)),
            ("response_time.p99", within_trial.quantile(counts, 0.99)),
        )
    )
    return Took(*figures)
