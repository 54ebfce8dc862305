"""Requests of a class that take a path of their own, over the levels of a curve, or that met a timer.

The hills of a distribution are looked for where the most requests are; at the lowest level, where no request
waits for others, the valley that was found there parts the few. What a valley parts is read again, a level at
a time: the requests of a trial are not kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadlens.estimate import distributions, mixtures, pauses, within_trial
from loadlens.estimate.interval import Bools, Floats, Insufficient, difference
from loadlens.estimate.interval_counts import IntervalCounts, pooled
from loadlens.measure.case import CaseMeasures
from loadlens.measure.figures import estimate, figure
from loadlens.measure.requests import samples
from loadlens.measure.requests.kept import (
    ACK_FROM_S,
    ACK_TO_S,
    DELAYED_ACK_S,
    Requests,
    StepRows,
    counted,
)
from loadlens.measure.requests.samples import Rows
from loadlens.model.finding import Estimate, Figure, Undecided
from loadlens.model.shapes import SlowLevel, SlowPath, TimerLevel, TimerPile

CALM = 2.0  # times the usual time of a lone user: beyond, requests wait for each other
FEWEST_ALONE = 5  # slow ones, to say how slow
SLOW_PROBE = 0.3  # of a slow request's time, left until its end when a probe was due
ENDED_WITH_IT = 0.1  # of that time
FEWEST_PROBES = 5
UNEVEN_LEVEL, UNEVEN = 1e-3, 2.0  # chance, and how much more the shares vary than chance
FEWEST_CELLS = 4
ALL_BUT_FEW = 0.95  # of the slow ones: they ended within that time
FOLLOWED_PARTS = 8  # of a trial: what comes at one time may be slow together
LACKING = 0.5  # of the share at the level where the hill was found
ACK_PARTS = 32  # of all answers in order
READ_ONCE = 1_000_000  # requests of a level that are not read a third time
OTHER_TIMERS = tuple(timer for timer in mixtures.TCP_TIMERS if timer != DELAYED_ACK_S)
ON_OPENING = (1.0, 3.0, 7.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """One class at one level, over its trials."""

    load: float
    step: int
    counts: IntervalCounts  # of all trials
    rows: tuple[StepRows, ...]
    trials: tuple[Rows, ...]

    @property
    def requests(self) -> int:
        return self.counts.observed


def slow_paths(cases: Sequence[CaseMeasures], dense: Sequence[CaseMeasures]) -> tuple[SlowPath, ...]:
    """The last hill of every class of a curve.

    Args:
        cases: The levels, ascending.
        dense: Cases with the same requests and dense probes.
    """
    first = cases[0].reference
    if first is None:
        return ()
    paths = []
    for step in first.plan.steps:
        levels = _levels(cases, step.index)
        if levels:
            alone = [*levels[:1], *_like(dense, cases[0], step.index)]
            usual_s = _first_hill_s(levels[0].counts)
            path = _path(step.name, step.request, levels, alone)
            paths.append(replace(path, parted=_parted(levels[1:], usual_s), usual_s=usual_s))
    return tuple(paths)


def _levels(cases: Sequence[CaseMeasures], index: int) -> list[_Level]:
    levels = []
    for case in cases:
        trials = tuple(trial.rows for trial in case.usable if isinstance(trial.rows, Rows))
        if trials and case.reference is not None:
            rows = tuple(trial.steps[index] for trial in trials)
            load = case.reference.plan.load
            levels.append(_Level(load, index, pooled([part.usual for part in rows]), rows, trials))
    return levels


def _like(beside: Sequence[CaseMeasures], case: CaseMeasures, index: int) -> list[_Level]:
    """Looks at the same requests with no more of a load than a case has."""
    wanted = case.reference
    if wanted is None:
        return []
    steps = [step.request for step in wanted.plan.steps]
    same = [
        other
        for other in beside
        if other.reference is not None
        and [step.request for step in other.reference.plan.steps] == steps
        and (other.reference.plan.is_closed, other.reference.plan.load)
        == (wanted.plan.is_closed, wanted.plan.load)
    ]
    return _levels(same, index)


def _parted(levels: Sequence[_Level], usual_s: float | None) -> tuple[SlowLevel, ...]:
    """Return the levels with a valley behind a first hill that is about as quick as without load."""
    parted = []
    for level in levels:
        valley = _first_valley(level.counts)
        slow = None if valley is None else _level(level.load, level.counts, valley)
        quick_s = _first_hill_s(level.counts)
        if slow is not None and usual_s is not None and quick_s is not None and quick_s <= CALM * usual_s:
            parted.append(slow)
    return tuple(parted)


def _first_valley(counts: IntervalCounts) -> float | None:
    """Return where the second hill begins; none: there is one hill, or too few requests."""
    mixture = mixtures.mixture(counts)
    several = () if isinstance(mixture, Insufficient) else mixture.components[1:]
    return several[0].begins_s if several else None


def _first_hill_s(counts: IntervalCounts) -> float | None:
    valley = _first_valley(counts)
    return _middle(counts.between(0.0, math.inf if valley is None else valley))


# --- one class --------------------------------------------------------------------------------------------


def _path(label: str, request: str, levels: Sequence[_Level], alone: Sequence[_Level]) -> SlowPath:
    everything = [*levels, *alone[1:]]
    whole = pooled([level.counts for level in alone])
    blank = SlowPath(
        label,
        request,
        requests=sum(level.requests for level in everything),
        most=max(level.requests for level in everything),
        met=sum(part.met for level in everything for part in level.rows),
        opening=sum(part.opening.observed for level in everything for part in level.rows),
        unseen_s=_unseen_s(everything),
        alone_requests=whole.observed,
    )
    valleys = {level.load: cut for level in levels[1:] if (cut := _valley(level.counts)) is not None}
    own = _valley(whole)
    valley = own if own is not None else next((valleys[at] for at in sorted(valleys)), None)
    if valley is None:
        return blank
    quick = whole.between(0.0, valley)
    usual = _middle(quick)
    alone_level = _level(levels[0].load, whole, valley)
    if alone_level is not None:
        trials = sum(len(level.trials) for level in alone)
        times = samples.took(whole, trials), samples.took(quick, trials)
        alone_level = replace(alone_level, took=times[0], usual=times[1])
    reference = next((level.counts for level in levels[1:] if level.load in valleys), whole)
    share = _beyond(reference, valleys.get(min(valleys, default=0.0), valley)) / max(1, reference.observed)
    unqueued, lacking, queued = [], [], 0
    for level in levels[1:]:
        cut = valleys.get(level.load)
        here = _middle(level.counts.between(0.0, cut if cut is not None else math.inf))
        if usual is None or here is None or here > CALM * usual:
            queued += 1
        elif cut is not None:
            unqueued.append((level, cut))
        elif _lacks(level.counts, valley, share):
            lacking.append(level.load)
    used = [*((level, valley) for level in alone), *unqueued]
    splits = [_split(level, cut) for level, cut in used]
    return replace(
        blank,
        unseen_s=_unseen_s([level for level, _ in used]),
        alone=alone_level,
        levels=tuple(
            slow for level, cut in unqueued if (slow := _level(level.load, level.counts, cut)) is not None
        ),
        lacking=tuple(lacking),
        queued=queued,
        weight=_weight([(split.counts, cut) for split, (_, cut) in zip(splits, used, strict=True)]),
        shift=_shift(pooled([level.counts for level, _ in used]), valley),
        is_even=_is_even(splits),
        together=_together(splits[: len(alone)]),
        in_answer=_in_answer(splits),
    )


def _unseen_s(levels: Sequence[_Level]) -> float | None:
    """The shortest standstill that would have been seen in every trial."""
    longest = max((trial.stops.shortest_s for level in levels for trial in level.trials), default=math.inf)
    return longest if math.isfinite(longest) else None


def _beyond(counts: IntervalCounts, valley: float) -> int:
    return counts.between(valley, math.inf).observed


def _lacks(counts: IntervalCounts, valley: float, share: float) -> bool:
    """True if far fewer requests lie beyond a valley than a share of them, by more than chance."""
    here = _beyond(counts, valley)
    if counts.observed < mixtures.FEWEST or here >= LACKING * share * counts.observed:
        return False
    chance = distributions.binomial_at_most(here, counts.observed, min(1.0, share))
    return chance < UNEVEN_LEVEL


def _valley(counts: IntervalCounts) -> float | None:
    """Return where the last hill begins, when it is a path of its own."""
    mixture = mixtures.mixture(counts)
    if isinstance(mixture, Insufficient):
        return None
    last = mixtures.slow_path(mixture)
    return None if last is None else last.begins_s


def _level(load: float, counts: IntervalCounts, valley: float) -> SlowLevel | None:
    """A level parted at a valley; none where too few are beyond it to say how slow they are."""
    slow = counts.between(valley, math.inf)
    low, high = _middle(counts.between(0.0, valley)), _middle(slow)
    if slow.observed < FEWEST_ALONE or low is None or high is None:
        return None
    weight = _weight([(counts, valley)])
    return SlowLevel(load, counts.observed, slow.observed, weight, _shift(counts, valley), high / low)


def _middle(counts: IntervalCounts) -> float | None:
    """The median, without an interval."""
    if not counts.observed:
        return None
    lower, upper, at_most = counts.distribution()
    place = int(np.searchsorted(at_most, 0.5 - 1e-12))
    return float(lower[place] + upper[place]) / 2


def _weight(parts: Sequence[tuple[IntervalCounts, float]]) -> Figure:
    """Share beyond the valleys over all intervals of all trials."""
    hits = np.concatenate([counts.between(cut, math.inf).observed_per_interval() for counts, cut in parts])
    totals = np.concatenate([counts.observed_per_interval() for counts, _ in parts])
    share = within_trial.share(hits, totals)
    return figure("component.weight", "share", share, len(parts), int(totals.sum()))


def _shift(counts: IntervalCounts, valley: float) -> Figure:
    """Difference of the medians on both sides of a valley."""
    low = within_trial.quantile(counts.between(0.0, valley), 0.5)
    slow = counts.between(valley, math.inf)
    high = within_trial.quantile(slow, 0.5)
    metric = "component.shift"
    if isinstance(low, Insufficient) or isinstance(high, Insufficient):
        reason = low.reason if isinstance(low, Insufficient) else getattr(high, "reason", "")
        return Undecided(metric, "s", reason)
    apart = difference(high, low, method="difference of medians, errors added in squares")
    return estimate(metric, "s", apart, 1, slow.observed)


@dataclass(frozen=True, slots=True, eq=False)
class _Half:
    """Requests of the first or the second half of a trial."""

    slow: int
    all: int


@dataclass(frozen=True, slots=True, eq=False)
class _Followed:
    """Requests of a trial that could all be followed to their end."""

    counts: IntervalCounts
    halves: tuple[_Half, _Half]  # by when they were due


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """Single requests of a level on both sides of a valley."""

    counts: IntervalCounts  # of those that were followed; of all where none could be
    halves: tuple[_Half, ...]
    slow: int
    late: int  # slow ones that waited longer between first and last byte than before
    probes: int  # that were due while a slow one was under way
    held: int  # of them: they ended only with it


def _split(level: _Level, valley: float) -> _Split:
    """Read the requests of a level again, one trial at a time; only the slow ones of all are held at once."""
    kept: list[Requests | None] = []
    slow: list[Requests] = []
    room = READ_ONCE
    for trial in level.trials:
        requests = trial.requests(level.step)
        room -= requests.due_s.size
        kept.append(requests if room >= 0 else None)
        is_slow = requests.took_s > valley
        slow.append(Requests(requests.due_s[is_slow], requests.took_s[is_slow], requests.body_s[is_slow]))
        del requests  # before the next trial is read
    took = np.concatenate([requests.took_s for requests in slow])
    longest = float(np.quantile(took, ALL_BUT_FEW)) if took.size else 0.0
    followed = [
        whole
        for trial, requests in zip(level.trials, kept, strict=True)
        if (whole := _followed(trial, requests or trial.requests(level.step), valley, longest)) is not None
    ]
    probes = [_held(trial, requests) for trial, requests in zip(level.trials, slow, strict=True)]
    return _Split(
        counts=pooled([whole.counts for whole in followed]) if followed else level.counts,
        halves=tuple(half for whole in followed for half in whole.halves),
        slow=int(took.size),
        late=sum(int((requests.body_s > requests.took_s / 2).sum()) for requests in slow),
        probes=sum(due for due, _ in probes),
        held=sum(held for _, held in probes),
    )


def _followed(trial: Rows, requests: Requests, valley: float, longest: float) -> _Followed | None:
    """Return what was due in the measured part, so long before its end that slow ones have ended as well.

    Of all that ended within it, the first were due before and are mostly slow, and of those due last only the
    quick ones ended: in short trials the share would fall from half to half. What was due so long before a
    standstill is left out alike: only the slow ones meet it.
    """
    if not requests.due_s.size:
        return None
    begin, end = trial.begin_s, float((requests.due_s + requests.took_s).max()) - longest
    kept = (requests.due_s >= begin) & (requests.due_s <= end)
    kept &= pauses.undisturbed(requests.due_s, requests.due_s + longest, trial.stops)
    if not kept.any():
        return None
    due, took = requests.due_s[kept], requests.took_s[kept]
    half = took.size // 2
    first, second = (_Half(int((part > valley).sum()), int(part.size)) for part in (took[:half], took[half:]))
    return _Followed(counted(due, took, np.linspace(begin, end, FOLLOWED_PARTS + 1)), (first, second))


def _is_even(splits: Sequence[_Split]) -> bool | None:
    """True if the share is the same in both halves of all trials, as far as chance goes."""
    halves = [half for split in splits for half in split.halves if half.all]
    n = np.array([float(half.all) for half in halves])
    k = np.array([float(half.slow) for half in halves])
    if n.size < FEWEST_CELLS or k.sum() < FEWEST_ALONE or k.sum() >= n.sum():
        return None
    share = float(k.sum() / n.sum())
    square = float(((k - n * share) ** 2 / (n * share * (1 - share))).sum())
    freedom = n.size - 1
    return not (distributions.chi2_tail(square, freedom) < UNEVEN_LEVEL and square / freedom > UNEVEN)


def _held(trial: Rows, slow: Requests) -> tuple[int, int]:
    """Count the probes due while a slow request was under way, and those of them that ended with it."""
    ends = trial.probe_due_s + trial.probe_took_s
    due, held = 0, 0
    for begin, took in zip(slow.due_s, slow.took_s, strict=True):
        first, last = np.searchsorted(trial.probe_due_s, [begin, begin + (1 - SLOW_PROBE) * took])
        due += int(last - first)
        held += int((ends[first:last] > begin + (1 - ENDED_WITH_IT) * took).sum())
    return due, held


def _together(alone: Sequence[_Split]) -> float | None:
    """Of the probes that were due while a slow request was under way, how many ended only with it."""
    due = sum(split.probes for split in alone)
    return sum(split.held for split in alone) / due if due >= FEWEST_PROBES else None


def _in_answer(splits: Sequence[_Split]) -> float | None:
    """Of the slow ones, the share that waited longer between first and last byte than before."""
    count = sum(split.slow for split in splits)
    return sum(split.late for split in splits) / count if count else None


# --- timers -----------------------------------------------------------------------------------------------


def timer_piles(cases: Sequence[CaseMeasures], beside: Sequence[CaseMeasures]) -> tuple[TimerPile, ...]:
    """Requests of every class that took as much longer as one of TCP's timers, over all levels."""
    first = cases[0].reference
    if first is None:
        return ()
    piles: list[TimerPile] = []
    for step in first.plan.steps:
        own = _levels(cases, step.index)
        levels = [*own, *_like(beside, cases[0], step.index)]
        if levels:
            piles += _piles(step.name, step.request, levels, own)
    return tuple(piles)


def _piles(label: str, request: str, levels: Sequence[_Level], own: Sequence[_Level]) -> list[TimerPile]:
    """Of all levels; and at which of a curve's own they are."""
    piles = []
    parts = [part for level in levels for part in level.rows]
    if sum(part.delayed.of for part in parts) >= mixtures.FEWEST:
        piles += _acknowledged(label, request, levels, own)
    opening = pooled([part.opening for part in parts])
    usual = pooled([level.counts for level in levels])
    for place, counts, timers in (("whole", usual, OTHER_TIMERS), ("opening", opening, ON_OPENING)):
        for pile in mixtures.piles(counts, timers):
            weight = estimate("component.weight", "share", pile.share, 1, counts.observed)
            count = round(pile.share.point * counts.observed)
            shift = Estimate(
                "component.shift",
                "s",
                pile.timer_s,
                0.95 * pile.timer_s,
                1.05 * pile.timer_s,
                1,
                count,
                "pile",
            )
            piles.append(
                TimerPile(
                    label,
                    request,
                    place,
                    pile.timer_s,
                    counts.observed,
                    count,
                    weight,
                    shift,
                    pile.contrast,
                    _where(own, place, pile.timer_s + (_middle(counts) or 0.0), mixtures.TIMER_TOLERANCE),
                )
            )
    return piles


def _where(own: Sequence[_Level], place: str, at_s: float, tolerance: float) -> tuple[TimerLevel, ...]:
    """Levels with requests that took so long."""
    places = []
    for level in own:
        counts = level.counts if place == "whole" else pooled([part.opening for part in level.rows])
        low, high = (1 - tolerance) * at_s, (1 + tolerance) * at_s
        count = counts.between(low, high).observed
        if count:
            places.append(TimerLevel(level.load, count))
    return tuple(places)


def _acknowledged(
    label: str, request: str, levels: Sequence[_Level], own: Sequence[_Level]
) -> list[TimerPile]:
    """Answers whose last byte came 40 ms after the first: it waited for a delayed acknowledgement."""
    parts = [part.delayed for level in levels for part in level.rows]
    body_s = np.concatenate([part.body_s for part in parts])
    size = sum(part.of for part in parts)
    at = _is_delayed(body_s)
    here, near = int(at.sum()), int((~at).sum())
    if here < max(FEWEST_ALONE, mixtures.LEAST_TIMER_WEIGHT * size):
        return []
    contrast = here / (near / 2) if near else math.inf
    chance = distributions.binomial_at_least(here, here + near, 1 / 3)
    if contrast < mixtures.PILE_CONTRAST or chance >= mixtures.PILE_LEVEL:
        return []
    # The requests of one connection follow each other: their order is what clusters them.
    before = np.cumsum([0, *(part.of for part in parts)])
    place = np.concatenate([part.place + begin for part, begin in zip(parts, before, strict=False)])
    first = np.ceil(np.linspace(0, size, ACK_PARTS + 1)).astype(np.int64)
    hits = np.histogram(place[at], first)[0].astype(np.float64)
    share = within_trial.share(hits, np.diff(first).astype(np.float64))
    if isinstance(share, Insufficient):
        return []
    shift = float(np.median(body_s[at]))
    low, high = (float(edge) for edge in np.quantile(body_s[at], [0.025, 0.975]))
    low = min(low, DELAYED_ACK_S)  # the timer itself; a kernel's clock only ends it later
    weight = estimate("component.weight", "share", share, 1, size)
    waited = Estimate(
        "component.shift", "s", shift, low, high, 1, here, "median; the timer and 95 % of the pile"
    )
    where = tuple(
        TimerLevel(
            level.load,
            sum(int(_is_delayed(part.delayed.body_s).sum()) for part in level.rows),
            sum(part.delayed.of for part in level.rows),
        )
        for level in own
    )
    return [
        TimerPile(label, request, "answer", DELAYED_ACK_S, size, here, weight, waited, float(contrast), where)
    ]


def _is_delayed(body_s: Floats) -> Bools:
    """Mark bodies that took as long as a delayed acknowledgement."""
    return (body_s >= ACK_FROM_S) & (body_s <= ACK_TO_S)
