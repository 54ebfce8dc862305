"""Standstills of a service: stretches without any answer that chance cannot explain.

While answers come at random at a rate X, none of n gaps is longer than ln(n / alpha) / X but with chance
alpha. A longer one is a pause, and what is shorter cannot be distinguished from chance: the shortest pause
that could have been seen belongs to every answer, above all to "none".

Source: extreme of exponential gaps (E. J. Gumbel 1958).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate.interval import Bools, Floats, Insufficient, same_shape

FALSE_ALARM = 1e-3  # over the whole trial
OF_IDLE_TIME = 5.0  # a gap of fewer idle response times of a lone user is no pause
FEWEST_EVENTS = 4  # three spacings
FEWEST_FOR_MULTIPLES = 6
REGULAR = 0.3  # coefficient of variation of the spacings
OFF_BEAT = 0.1  # of the period: how far an event may be off its multiple
MANY_SPACINGS = 8
FEW_REGULAR = 0.1  # variation with fewer: three distances at random are as alike one time in two hundred
FEWEST_SINGLE = 2  # distances of one beat, when others are of several

FEWEST_IN_BURSTS = 20
SLOW = 1.5  # times the median
MOST_SLOW = 0.3  # of the requests: more are another way to take, at any time
MOST_BURSTS = 100  # of a trial: more come at any time


@dataclass(frozen=True, slots=True)
class Beat:
    """A period that events keep."""

    period_s: float
    variation: float  # coefficient of variation of the spacings, missed beats divided out


@dataclass(frozen=True, slots=True, eq=False)
class Pauses:
    """The pauses of a trial, and the shortest that could have been seen."""

    begin_s: Floats  # shape (pauses,), ascending
    length_s: Floats
    shortest_s: float
    beat: Beat | None  # none: fewer than 4 events, or at no regular times

    @property
    def total_s(self) -> float:
        """Their sum, seconds."""
        return float(self.length_s.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Bursts:
    """Slow requests, by the moments at which they begin to come."""

    begin_s: Floats  # when the first of each burst was due, ascending; shape (bursts,)
    end_s: Floats  # when the last of each burst was answered; same shape
    longer_s: float  # mean of the slow ones beyond the median of all
    slow: int
    requests: int
    usual_s: float  # median of all


def slow_bursts(due_s: Floats, took_s: Floats) -> Bursts | None:
    """Gather slow requests into bursts: those that are apart by less than the slowest one took are one.

    Args:
        due_s: When requests for the same thing were due, ascending, shape (requests,).
        took_s: How long they took, same shape.

    Returns:
        None if fewer than 20 are known, more than 30 % are slow (1.5 times the median), or they come in more
        than 100 bursts.
    """
    if due_s.size < FEWEST_IN_BURSTS:
        return None
    usual = float(np.median(took_s))
    slow = took_s > SLOW * usual
    if slow.mean() > MOST_SLOW:
        return None
    due = due_s[slow]
    is_first = np.diff(due, prepend=-np.inf) > took_s.max()
    if is_first.sum() > MOST_BURSTS:
        return None
    longer = float(took_s[slow].mean()) - usual if slow.any() else 0.0
    done = due + took_s[slow]
    ends = np.maximum.reduceat(done, np.flatnonzero(is_first)) if slow.any() else done
    return Bursts(due[is_first], ends, longer, int(slow.sum()), due_s.size, usual)


def shortest_visible(completions: int, seconds: float, *, false_alarm: float = FALSE_ALARM) -> float:
    """Return the length from which on a gap between completions is no chance, seconds; infinite without any.

    Args:
        completions: Of the trial.
        seconds: Its length.
        false_alarm: Chance of a gap as long in the whole trial.

    Returns:
        ln(n / alpha) / X: 85 ms at 200 /s over two minutes.
    """
    if completions < 1 or seconds <= 0:
        return math.inf
    return math.log(completions / false_alarm) * seconds / completions


def pauses(
    begin_s: Floats,
    length_s: Floats,
    *,
    completions: int,
    seconds: float,
    idle_s: float = 0.0,
    floor_s: float = 0.0,
    own_begin_s: Floats | None = None,
    own_end_s: Floats | None = None,
) -> Pauses | Insufficient:
    """Return the stretches in which a service completed nothing though it should have.

    Args:
        begin_s: When gaps between completions began, seconds, shape (gaps,): at least the longest of each
            interval. Pieces of one gap that was cut at the edges of intervals are put together.
        length_s: Their lengths, seconds, same shape.
        completions: Of the trial; they should come at random, as under an open load or probes.
        seconds: Length of the trial.
        idle_s: Response time of a lone user: a gap of fewer than 5 of these is no pause.
        floor_s: Longest gap that this host shows against a server that does nothing.
        own_begin_s, own_end_s: When the generator itself stood still; gaps that overlap are left out.

    Returns:
        Gaps longer than chance, idle time and host allow, and the period that they keep. Behind a blocked
        event loop or a full pool gaps are no pauses: the caller must have excluded those, or ask for a
        period.
    """
    same_shape(begin_s, length_s)
    if completions < FEWEST_EVENTS:
        return Insufficient(f"{completions} completions, needs {FEWEST_EVENTS}")
    shortest = max(shortest_visible(completions, seconds), OF_IDLE_TIME * idle_s, floor_s)
    begin, end = joined(begin_s, begin_s + length_s)
    kept: Bools = end - begin > shortest
    if own_begin_s is not None and own_end_s is not None and own_begin_s.size:
        touched = (begin[:, None] < own_end_s) & (end[:, None] > own_begin_s)
        kept &= ~touched.any(axis=1)
    begin, end = begin[kept], end[kept]
    return Pauses(begin, end - begin, shortest, beat_of(begin))


def joined(begin_s: Floats, end_s: Floats) -> tuple[Floats, Floats]:
    """Return stretches of time with those that overlap made one, ascending.

    Args:
        begin_s, end_s: Shape (stretches,).
    """
    if not begin_s.size:
        return begin_s, end_s
    if (begin_s[1:] < begin_s[:-1]).any():
        order = np.argsort(begin_s, kind="stable")
        begin_s, end_s = begin_s[order], end_s[order]
    begin, end = begin_s, np.maximum.accumulate(end_s)
    apart = begin[1:] >= end[:-1]
    if apart.all():
        return begin, end
    first, last = np.concatenate([[True], apart]), np.concatenate([apart, [True]])
    return begin[first], end[last]


def beat_of(times_s: Floats) -> Beat | None:
    """Return the period that events keep; none when they keep none.

    Args:
        times_s: When they began, ascending, shape (events,).

    Returns:
        With 4 events or more whose spacings vary by less than 30 %, their mean. With 6 or more also a period
        of which all spacings are multiples (some beats were hidden), within a tenth of it.
    """
    if times_s.size < FEWEST_EVENTS:
        return None
    spacings = np.diff(times_s)
    middle = float(spacings.mean())
    variation = float(spacings.std(ddof=1)) / middle if middle > 0 else math.inf
    if variation < REGULAR:
        return Beat(middle, variation)
    if times_s.size < FEWEST_FOR_MULTIPLES:
        return None
    period = float(np.median(spacings[spacings <= 1.5 * spacings.min()]))
    if period <= 0:
        return None
    beats = np.maximum(1, np.round(spacings / period))
    period = float(times_s[-1] - times_s[0]) / float(beats.sum())
    off = np.abs(spacings / period - beats)
    if np.any(off > OFF_BEAT):
        return None
    variation = float((spacings / beats).std(ddof=1)) / period
    return Beat(period, variation)


def beat_of_lives(lives: Sequence[Floats]) -> Beat | None:
    """Return the period that events keep within each of several lives of a service, whose phases differ.

    Args:
        lives: When events began in each life, ascending, each of shape (events,).

    Returns:
        The period of which all distances within lives are multiples (beats between trials, or hidden ones,
        are missing), within a tenth of it; none with fewer than 3 distances, where they scatter by 10 % and
        are fewer than 8, or where they scatter by 30 %. Distances at random pass about one time in a hundred
        with 3, and less with more.
    """
    spacings = np.concatenate([np.zeros(0), *(np.diff(times) for times in lives)])
    if spacings.size < FEWEST_EVENTS - 1 or spacings.min() <= 0:
        return None
    near = float(np.median(spacings[spacings <= 1.5 * spacings.min()]))
    # Beats far apart are counted with a period that is known ever better: shortest distances first.
    ordered, beats = np.sort(spacings), np.ones(spacings.size)
    for place, spacing in enumerate(ordered):
        beats[place] = max(1.0, round(spacing / near))
        near = float(ordered[: place + 1].sum() / beats[: place + 1].sum())
    has_gaps = bool((beats > 1).any())
    off = np.abs(ordered / near - beats)
    single = ordered[beats == 1]
    variation = float((ordered / beats).std(ddof=1)) / near
    if has_gaps and (
        np.any(off > OFF_BEAT) or single.size < FEWEST_SINGLE or spacings.size < FEWEST_FOR_MULTIPLES - 1
    ):
        return None
    if variation >= (REGULAR if spacings.size >= MANY_SPACINGS else FEW_REGULAR):
        return None
    return Beat(near, variation)


def undisturbed(begin_s: Floats, end_s: Floats, stops: Pauses) -> Bools:
    """Return which requests met no pause, shape (requests,): those a mixture may be looked for in.

    Args:
        begin_s, end_s: Of each request, due and done, shape (requests,).
        stops: Pauses.
    """
    same_shape(begin_s, end_s)
    if not stops.begin_s.size:
        return np.ones(begin_s.shape, dtype=np.bool_)
    pause_end = stops.begin_s + stops.length_s
    # Pauses do not overlap: a request met one when the first that ends after its begin began before its end.
    place = np.searchsorted(pause_end, begin_s, side="right")
    begins = np.append(stops.begin_s, np.inf)[place]
    return np.asarray(begins >= end_s, dtype=np.bool_)
