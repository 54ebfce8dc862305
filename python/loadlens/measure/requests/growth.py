"""Growth while a service answers: of what it holds with its requests, and of the time of a request.

Trials of one life of the processes follow each other: what is held is put together from what grew within
measured parts, and times are compared at the same level of load, so that neither users nor start-up count.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate.drift import FEWEST_POINTS, slope_of
from loadlens.estimate.interval import Floats, Insufficient, Interval, difference
from loadlens.estimate.steady_state import TREND_LEVEL
from loadlens.measure.case import CaseMeasures
from loadlens.measure.figures import estimate
from loadlens.measure.requests.samples import Rows
from loadlens.measure.requests.shapes import life_of, zero_s
from loadlens.measure.source import StepPlan
from loadlens.measure.trial import TrialMeasures
from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided
from loadlens.model.readings import Metric, ProcMetrics
from loadlens.model.shapes import HandleGrowth, HeapGrowth, MemoryBound, MemoryGrowth, Slowdown
from loadlens.signals.read.trial_series import Series, added

MEMORY = ProcMetrics.rss_bytes
TREND_SHARE = math.log1p(0.03)
BETTER = 0.5  # of the other's squares
FEWEST_FITTED, SPREAD = 4, 4.0  # trials, and how far their numbers of requests must lie apart


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """One trial in the life of the service."""

    case: CaseMeasures
    trial: TrialMeasures
    begin_s: float  # on the clock of the record
    before: int  # requests that the life had answered


def _lives(cases: Sequence[CaseMeasures]) -> Iterator[list[_Placed]]:
    """The trials of each life in order; each knows what was answered before it."""
    by_life: dict[str, list[tuple[CaseMeasures, TrialMeasures]]] = {}
    for case in cases:
        for trial in case.usable:
            by_life.setdefault(life_of(trial), []).append((case, trial))
    for members in by_life.values():
        placed, before = [], 0
        for case, trial in sorted(members, key=lambda pair: zero_s(pair[1])):
            placed.append(_Placed(case, trial, zero_s(trial), before))
            before += _answered(trial)
        yield placed


def _lives_of(cases: Sequence[CaseMeasures], everything: Sequence[CaseMeasures]) -> list[list[_Placed]]:
    """Return the lives that any of the cases met, with all that they answered."""
    own = {case.slug for case in cases}
    return [life for life in _lives(everything) if any(placed.case.slug in own for placed in life)]


def _answered(trial: TrialMeasures) -> int:
    """Requests of the load that were answered, warm-up included."""
    result = trial.source.result
    if result is None:
        return 0
    load = result.external or result.load
    return 0 if load is None else load.requests.answered


@dataclass(frozen=True, slots=True)
class _Grown:
    """Requests that a trial answered, and the growth meanwhile."""

    requests: float
    grown: float
    seconds: float


# --- memory -----------------------------------------------------------------------------------------------


def memory_growth(
    cases: Sequence[CaseMeasures], everything: Sequence[CaseMeasures], called: Collection[str] = ()
) -> tuple[MemoryGrowth, ...]:
    """Each service of the life with the most requests, the one that grew most first; none without readings.

    Args:
        cases: The levels of a curve.
        everything: All cases that the same processes may have met, those levels included.
        called: Names of what the services call, which are left out: a database fills a cache, and what its
            processes share counts at each.
    """
    longest = _longest(cases, everything, called)
    grown = [growth for name, life in longest if (growth := _memory(name, life)) is not None]
    return tuple(sorted(grown, key=lambda growth: -growth.grown_bytes))


def _longest(
    cases: Sequence[CaseMeasures], everything: Sequence[CaseMeasures], called: Collection[str]
) -> list[tuple[str, list[_Placed]]]:
    """Return the names of the services in the life with the most requests, and that life."""
    lives = _lives_of(cases, everything)
    if not lives:
        return []
    longest = max(lives, key=lambda life: sum(_answered(placed.trial) for placed in life))
    names = dict.fromkeys(
        process.service
        for placed in longest
        for process in placed.trial.resources.services
        if process.service not in called
    )
    return [(name, longest) for name in names]


@dataclass(frozen=True, slots=True, eq=False)
class _Course:
    """Numbers that all processes of a service hold within the measured parts of a life, put end to end."""

    requests: Floats  # answered until each reading
    clock: Floats  # seconds
    grown: Floats  # since the first reading
    levels: Floats  # as read
    trials: tuple[_Grown, ...]

    @property
    def seconds(self) -> float:
        """Measured."""
        return sum(trial.seconds for trial in self.trials)


def _course(name: str, life: Sequence[_Placed], metric: Metric) -> _Course | None:
    requests, clock, grown, levels = [0.0], [0.0], [0.0], []
    each: list[_Grown] = []
    for placed in life:
        # Of all processes of a service, added up where they were read together
        parts = [
            process.series[metric]
            for process in placed.trial.resources.services
            if process.service == name and metric in process.series
        ]
        series, counted = added(parts), _answered_at(placed.trial)
        if series is None or counted is None or placed.trial.grid is None:
            continue
        edges = placed.trial.grid.edges_s
        inside = series.between(float(edges[0]), float(edges[-1]))
        if inside.values.size < 2:
            continue
        at = np.interp(inside.seconds, counted.seconds, counted.values)
        requests += [requests[-1] + float(step) for step in np.cumsum(np.diff(at))]
        clock += [clock[-1] + float(step) for step in np.cumsum(np.diff(inside.seconds))]
        grown += [grown[-1] + float(step) for step in np.cumsum(np.diff(inside.values))]
        levels.append(inside.values)
        lasted = float(inside.seconds[-1] - inside.seconds[0])
        each.append(_Grown(float(at[-1] - at[0]), float(inside.values[-1] - inside.values[0]), lasted))
    if not levels:
        return None
    return _Course(np.array(requests), np.array(clock), np.array(grown), np.concatenate(levels), tuple(each))


def _memory(name: str, life: Sequence[_Placed]) -> MemoryGrowth | None:
    """Return the growth within the measured parts, over the requests answered, or the time."""
    course = _course(name, life, MEMORY)
    if course is None:
        return None
    follows = _grows_with(course.trials)
    per, unit = ("second", "bytes/s") if follows == "clock" else ("request", "bytes")
    x, y, levels = course.clock if per == "second" else course.requests, course.grown, course.levels
    moved = np.concatenate([[True], np.diff(x) > 0])
    x, y = x[moved], y[moved]
    slope, late, pace = _slope(x, y, f"memory.per-{per}", unit)
    rate = float(x[-1]) / course.seconds if course.seconds > 0 else 0.0
    level = float(levels[-1])
    return MemoryGrowth(
        label=name,
        trials=len(course.trials),
        seconds=course.seconds,
        readings=int(x.size),
        requests=round(float(course.requests[-1])),
        begin_bytes=float(levels[0]),
        grown_bytes=float(y[-1]),
        fallen_bytes=_fallen(levels),
        slope=slope,
        per_minute=None if pace is None or level <= 0 else 60 * rate * pace / level,
        late=late,
        follows=follows,
        bound=next((bounds[name] for bounds in reversed(_bounds(life)) if name in bounds), None),
        heap=_heap(name, life),
    )


def _fallen(levels: Floats) -> float:
    return float((np.maximum.accumulate(levels) - levels).max())


def handle_growth(
    cases: Sequence[CaseMeasures], everything: Sequence[CaseMeasures], called: Collection[str] = ()
) -> tuple[HandleGrowth, ...]:
    """Each service's threads and open files in the life with the most requests; none without readings."""
    return tuple(
        growth
        for name, life in _longest(cases, everything, called)
        for what, metric in (("threads", ProcMetrics.threads), ("open files", ProcMetrics.descriptors))
        if (growth := _handles(name, life, what, metric)) is not None
    )


def _handles(name: str, life: Sequence[_Placed], what: str, metric: Metric) -> HandleGrowth | None:
    course = _course(name, life, metric)
    if course is None:
        return None
    moved = np.concatenate([[True], np.diff(course.requests) > 0])
    x, y = course.requests[moved], course.grown[moved]
    slope, late, _ = _slope(x, y, "handles.per-request", "")
    return HandleGrowth(
        label=name,
        what=what,
        trials=len(course.trials),
        seconds=course.seconds,
        requests=round(float(x[-1])),
        begin=float(course.levels[0]),
        end=float(course.levels[-1]),
        grown=float(y[-1]),
        fallen=_fallen(course.grown),
        slope=slope,
        late=late,
    )


def _bounds(life: Sequence[_Placed]) -> list[Mapping[str, MemoryBound]]:
    return [placed.trial.memory.bounds for placed in life if placed.trial.memory is not None]


def _heap(name: str, life: Sequence[_Placed]) -> HeapGrowth | None:
    """Return how floor and peak of the heap in use grew over the measured parts put end to end."""
    parts = [
        placed.trial.memory.heaps[name].between(
            float(placed.trial.grid.edges_s[0]), float(placed.trial.grid.edges_s[-1])
        )
        for placed in life
        if placed.trial.memory is not None and name in placed.trial.memory.heaps and placed.trial.grid
    ]
    used = np.concatenate([part.values for part in parts]) if parts else np.array([])
    if used.size < FEWEST_POINTS:
        return None
    third = used.size // 3
    first, last = used[:third], used[-third:]
    return HeapGrowth(float(last.min() - first.min()), float(last.max() - first.max()))


def _grows_with(each: Sequence[_Grown]) -> str:
    """Return whether trials grew in proportion to their requests or to their lengths."""
    requests, grown, seconds = (
        np.array([getattr(trial, name) for trial in each]) for name in ("requests", "grown", "seconds")
    )
    if len(each) < FEWEST_FITTED or requests.min() <= 0 or requests.max() < SPREAD * requests.min():
        return "unknown"
    return _better(_squares(grown, requests), _squares(grown, seconds))


def _slope(x: Floats, y: Floats, metric: str, unit: str) -> tuple[Figure, float | None, float | None]:
    """Bytes of a request or in a second; how the last third compares with those before; its lower end."""
    if x.size < FEWEST_POINTS:
        return Undecided(metric, unit, f"{x.size} readings, needs {FEWEST_POINTS}"), None, None
    whole = slope_of(x, y)
    figure = estimate(metric, unit, whole, 1, int(x.size))
    cut = int(np.searchsorted(x, x[-1] * 2 / 3))
    cut = min(max(cut, 2), x.size - 2)
    early = (y[cut] - y[0]) / (x[cut] - x[0])
    last = (y[-1] - y[cut]) / (x[-1] - x[cut])
    return figure, float(last / early) if early > 0 else None, whole.low


def _answered_at(trial: TrialMeasures) -> Series | None:
    """Requests of the load that had ended by the end of each interval of the measured part."""
    grid, load = trial.grid, trial.load
    if grid is None or load is None:
        return None
    ended = np.concatenate([[0.0], np.cumsum(load.ok + load.not_ok)])
    return Series(grid.edges_s, ended) if np.isfinite(ended).all() else None


# --- times ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Timed:
    """Times of one class in one trial."""

    placed: _Placed
    load: float
    requests: int  # of the class
    seconds: float
    middle: Floats  # of the median: the point and both ends; empty with too few
    change: float | None  # of the logarithm over the trial; none with too few
    p_value: float


def slowdowns(cases: Sequence[CaseMeasures], everything: Sequence[CaseMeasures]) -> tuple[Slowdown, ...]:
    """Each class of a curve; its load is closed, so that a queue without end is no slowdown.

    Args:
        cases: The levels.
        everything: All cases that the same processes may have met, those levels included.
    """
    first = cases[0].reference
    if first is None or not first.plan.is_closed:
        return ()
    steps = [step.request for step in first.plan.steps]
    alike = [
        case
        for case in everything
        if case.reference is not None
        and case.reference.plan.is_closed
        and case.reference.plan.think_s == first.plan.think_s
        and [step.request for step in case.reference.plan.steps] == steps
    ]
    lives = _lives_of(cases, everything)
    return tuple(_slowdown(step, lives, alike) for step in first.plan.steps)


def _slowdown(step: StepPlan, lives: Sequence[Sequence[_Placed]], alike: Sequence[CaseMeasures]) -> Slowdown:
    own = {case.slug for case in alike}
    timed = [
        [
            _timed(placed, placed.trial.rows, step.index)
            for placed in life
            if placed.case.slug in own and _is_known(placed)
        ]
        for life in lives
    ]
    pairs = [pair for life in timed for pair in _pairs(life)]
    best = max(pairs, key=lambda pair: pair[1].placed.before - pair[0].placed.before, default=None)
    with_trend = [trial for life in timed for trial in life if trial.change is not None]
    moves = [trial for trial in with_trend if trial.p_value < TREND_LEVEL]
    change: Figure = NotMeasured("drift.change", "no level was measured twice in one life of the service")
    load, between, seconds, doubling = None, 0, 0.0, None
    if best is not None:
        early, late = best
        change, load = _ratio(early, late), early.load
        between = late.placed.before - early.placed.before
        seconds = late.placed.begin_s - early.placed.begin_s
        doubling = _doubling(early, late)
    return Slowdown(
        label=step.name,
        request=step.request,
        trials=len(with_trend),
        rising=sum((trial.change or 0.0) > TREND_SHARE for trial in moves),
        falling=sum((trial.change or 0.0) < -TREND_SHARE for trial in moves),
        change=change,
        load=load,
        requests=between,
        seconds=seconds,
        doubling=doubling,
        follows=_follows(with_trend, doubling),
    )


def _is_known(placed: _Placed) -> bool:
    return isinstance(placed.trial.rows, Rows) and placed.trial.load is not None


def _timed(placed: _Placed, rows: Rows | Insufficient, index: int) -> _Timed:
    assert isinstance(rows, Rows)  # others were left out
    assert placed.trial.load is not None
    assert placed.trial.grid is not None
    part = rows.steps[index]
    return _Timed(
        placed,
        placed.trial.load.plan.load,
        part.usual.observed,
        placed.trial.grid.seconds,
        part.middle_s,
        part.change,
        part.p_value,
    )


def _pairs(life: Sequence[_Timed]) -> Iterator[tuple[_Timed, _Timed]]:
    """The first and the last trial of each level."""
    levels: dict[float, list[_Timed]] = {}
    for trial in life:
        if trial.middle.size:
            levels.setdefault(trial.load, []).append(trial)
    for members in levels.values():
        if len(members) > 1:
            yield members[0], members[-1]


def _ratio(early: _Timed, late: _Timed) -> Estimate:
    """Median over median; errors of both added in squares, as logarithms."""
    apart = difference(_logarithm(late), _logarithm(early), method="ratio of two medians")
    assert apart.low is not None  # both medians are known
    assert apart.high is not None
    point, low, high = math.exp(apart.point), math.exp(apart.low), math.exp(apart.high)
    size = early.requests + late.requests
    return Estimate("drift.change", "ratio", point, low, high, 2, size, apart.method)


def _logarithm(timed: _Timed) -> Interval:
    point, low, high = (float(value) for value in np.log(timed.middle))
    return Interval(point, low, high, float(timed.requests), "logarithm of a median")


def _doubling(early: _Timed, late: _Timed) -> float | None:
    """Requests after which the first time is doubled, when it grows by as much with each."""
    ratio = float(late.middle[0] / early.middle[0])
    begin = early.placed.before + early.requests / 2
    end = late.placed.before + late.requests / 2
    if ratio <= 1:
        return None
    doubling = (end - ratio * begin) / (ratio - 1)
    return doubling if doubling > 0 else None


def _follows(trials: Sequence[_Timed], doubling: float | None) -> str:
    """Return whether rises within trials are in proportion to the requests of each or to its length."""
    if len(trials) < FEWEST_FITTED:
        return "unknown"
    requests = np.array([float(trial.requests) for trial in trials])
    if requests.max() < SPREAD * requests.min():
        return "unknown"
    before = np.array([trial.placed.before + trial.requests / 2 for trial in trials])
    changes = np.array([trial.change or 0.0 for trial in trials])
    by_requests = requests / ((doubling or requests.sum() * 1e3) + before)
    by_clock = np.array([trial.seconds for trial in trials])
    return _better(_squares(changes, by_requests), _squares(changes, by_clock))


def _better(by_requests: float, by_clock: float) -> str:
    """Return which of two shapes leaves far less."""
    if by_requests < BETTER * by_clock:
        return "requests"
    return "clock" if by_clock < BETTER * by_requests else "unknown"


def _squares(values: Floats, shape: Floats) -> float:
    """Return the squares that a multiple of a shape leaves of some values."""
    scale = float(values @ shape) / float(shape @ shape)
    return float(((values - scale * shape) ** 2).sum())
