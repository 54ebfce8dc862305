"""What both rules of pauses ask: all standstills of one service over its trials, and the period they keep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats as distributions

from loadlens.diagnose import grading
from loadlens.estimate import pauses
from loadlens.estimate.interval import Floats, Interval, product
from loadlens.measure import figures
from loadlens.measure.thresholds import IDLE_CPU
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate
from loadlens.model.shapes import Standstill, StandstillWatch
from loadlens.present import numbers

QUEUED = 1.5  # times the median of the lowest level: beyond, requests wait for each other
FAR_LESS = 0.5  # of the time for which everything stood still
ALIKE = 1.5  # limits of trials that are told as one
AT_ITS_BEGINNING = 0.1  # of a standstill: what starts it lies there
MOSTLY, CHANCE = 0.5, 0.01  # of the standstills, and how often as many would by chance


@dataclass(frozen=True, slots=True)
class Seen:
    """A trial, its level, and whether the service had time to spare there."""

    step: Step
    watch: StandstillWatch
    is_calm: bool


@dataclass(frozen=True, slots=True)
class Service:
    """All trials that met the same processes, or such as were started alike for one curve."""

    curves: tuple[str, ...]
    seen: tuple[Seen, ...]

    @property
    def shortest_s(self) -> float:
        """The shortest standstill that could be told from chance anywhere."""
        return min((one.watch.shortest_s for one in self.seen), default=math.inf)

    @property
    def limit_s(self) -> float:
        """The shortest standstill that could be told from chance wherever it was looked for so closely."""
        limits = [one.watch.shortest_s for one in self.seen]
        return max((limit for limit in limits if limit <= ALIKE * self.shortest_s), default=math.inf)

    @property
    def looked_s(self) -> float:
        """Seconds in which one of that length would have been seen."""
        return sum(one.watch.seconds for one in self.seen if one.watch.shortest_s <= self.limit_s)


def services_of(facts: Facts) -> tuple[Service, ...]:
    """Every service of a record that was looked through: curves that share processes are of one."""
    found: dict[frozenset[str], list[Curve]] = {}
    for curve in facts.curves:
        lives = frozenset(watch.life for step in curve.steps for watch in step.standstills)
        same = next((known for known in found if known & lives), None)
        if same is not None:
            found[same | lives] = [*found.pop(same), curve]
        elif lives:
            found[lives] = [curve]
    if not found and (lives := frozenset(w.life for step in facts.dense for w in step.standstills)):
        found[lives] = []
    return tuple(
        Service(tuple(curve.label for curve in curves), tuple(_seen(facts, curves, lives)))
        for lives, curves in found.items()
    )


def _seen(facts: Facts, curves: Sequence[Curve], lives: frozenset[str]) -> list[Seen]:
    found = [
        Seen(step, watch, True) for step in facts.dense for watch in step.standstills if watch.life in lives
    ]
    for curve in curves:
        for step in curve.steps:
            found += [Seen(step, watch, _is_calm(curve, step)) for watch in step.standstills]
    return sorted(found, key=lambda one: one.watch.begin_s)


def _is_calm(curve: Curve, step: Step) -> bool:
    """Whether hardly anything waits at a level: neither for other requests nor for a core."""
    first, here = curve.steps[0].response.p50, step.response.p50
    if not isinstance(first, Estimate) or not isinstance(here, Estimate):
        return step is curve.steps[0]
    is_queued = here.point > QUEUED * first.point
    is_full = bool(step.processes) and step.server_cores > IDLE_CPU * curve.cores_allotted
    return not is_queued and not is_full


def stops_of(seen: Sequence[Seen], *, least_s: float = 0.0) -> list[Standstill]:
    """All standstills, ascending within a life; those that begin in one trial are never another's."""
    return [stop for one in seen for stop in one.watch.stops if stop.end_s - stop.begin_s >= least_s]


def ends_by_life(seen: Sequence[Seen], *, least_s: float = 0.0) -> list[Floats]:
    """When standstills ended in each life: then all are let go at once; the last answer before is chance."""
    lives: dict[str, list[float]] = {}
    for one in seen:
        ends = [s.end_s for s in one.watch.stops if not s.is_cut and s.end_s - s.begin_s >= least_s]
        lives.setdefault(one.watch.life, []).extend(ends)
    return [np.sort(np.array(ends)) for ends in lives.values() if ends]


def length_of(seen: Sequence[Seen], *, least_s: float = 0.0) -> Estimate | None:
    """Mean length of the standstills that were seen whole; none without any.

    It begins at a moment that the service's clients do not choose: the last answer was then as long ago as at
    any other moment, and that is taken off.
    """
    lengths = np.array(
        [
            stop.end_s - stop.begin_s - one.watch.age_s
            for one in seen
            for stop in one.watch.stops
            if not stop.is_cut and stop.end_s - stop.begin_s >= least_s
        ]
    )
    if not lengths.size:
        return None
    point = float(lengths.mean())
    low = high = None
    if lengths.size > 2:
        half = float(distributions.t.ppf(0.975, lengths.size - 1)) * float(lengths.std(ddof=1))
        half = max(half / math.sqrt(lengths.size), _resolution(seen))
        low, high = max(0.0, point - half), point + half
    trials = sum(bool(one.watch.stops) for one in seen)
    return Estimate("pause.length", "s", point, low, high, trials, lengths.size, "t over standstills")


def _resolution(seen: Sequence[Seen]) -> float:
    """A tenth of the distance of answers: how well the beginning of any is known."""
    return min((one.watch.between_s for one in seen if one.watch.stops), default=0.0) / 10


def period_of(lives: Sequence[Floats], beat: pauses.Beat, *, between_s: float = 0.0) -> Estimate:
    """The period with its interval: a line through the moments of each life, one slope for all.

    Args:
        lives: When standstills ended in each life.
        beat: The period that they keep.
        between_s: Mean distance of answers: the first one after a standstill comes up to so much later.
    """
    beats, offs = [], []
    for times in lives:
        if times.size > 1:
            number = np.round((times - times[0]) / beat.period_s)
            beats.append(number - number.mean())
            offs.append(times - times.mean())
    x, y = np.concatenate(beats), np.concatenate(offs)
    power = float(x @ x)
    slope = float(x @ y) / power
    freedom = x.size - len(beats) - 1
    scatter = float(np.sqrt(((y - slope * x) ** 2).sum() / max(1, freedom)))
    half = float(distributions.t.ppf(0.975, max(1, freedom))) * max(scatter, between_s) / math.sqrt(power)
    size = sum(times.size for times in lives)
    return Estimate(
        "pause.period", "s", slope, slope - half, slope + half, len(lives), size, "least squares over beats"
    )


def stopped_share(length: Estimate, per_s: Interval) -> Estimate:
    """Share of the time for which the service stands still.

    Args:
        length: Of a standstill, seconds.
        per_s: How many come in a second.
    """
    found = product(figures.known(length), per_s, method=f"length times how often: {per_s.method}")
    low, high = (None if end is None else min(1.0, end) for end in (found.low, found.high))
    return Estimate(
        "pause.share",
        "share",
        min(1.0, found.point),
        low,
        high,
        length.trials,
        length.samples,
        found.method,
    )


def share_signal(share: Estimate) -> grading.Signal:
    """The service stands still for a share of the time."""
    part = numbers.percent(share.point)
    found = grading.at_least(
        "pause.share",
        share,
        0.0,
        text=f"it stands still for {numbers.shown(share)} of the time",
        chip=f"{part} of the time",
    )
    return replace(found, is_clear=True)  # it follows from the length and how often, which are judged


def at_one_moment(seen: Sequence[Seen], *, least_s: float = 0.0) -> bool:
    """Whether each trial has one, at the same moment of it: distances are those of the trials then."""
    lengths = [one.watch.seconds for one in seen if stops_of([one], least_s=least_s)]
    return bool(lengths) and follows_the_trials(seen, float(np.mean(lengths)), least_s=least_s)


def follows_the_trials(seen: Sequence[Seen], period_s: float, *, least_s: float = 0.0) -> bool:
    """Whether they come at one moment of each trial: then the trials' own beginning makes them."""
    each = [stops_of([one], least_s=least_s) for one in seen]
    offsets = [
        stop.end_s - one.watch.begin_s
        for one, stops in zip(seen, each, strict=True)
        for stop in stops
        if not stop.is_cut
    ]
    is_once = all(len(stops) <= 1 for stops in each)
    return is_once and len(offsets) > 2 and float(np.std(offsets)) < pauses.OFF_BEAT * period_s


def own_reading(seen: Sequence[Seen], *, least_s: float = 0.0) -> list[grading.Signal]:
    """That they begin as we read the service's metrics, whose looking may make them; empty: they do not.

    How often chance puts as many of our readings at the beginning of a standstill is binomial.
    """
    hits, chances = 0, []
    for one in seen:
        watch = one.watch
        for stop in stops_of([one], least_s=least_s):
            length = stop.end_s - stop.begin_s
            near = watch.between_s + AT_ITS_BEGINNING * length
            first, last = stop.begin_s - watch.between_s, stop.begin_s + near
            hits += any(first <= at <= last for at in watch.scrapes_s)
            chances.append(min(1.0, (last - first) * len(watch.scrapes_s) / watch.seconds))
    count = len(chances)
    if hits < MOSTLY * count or not hits:
        return []
    if float(distributions.binom.sf(hits - 1, count, float(np.mean(chances)))) >= CHANCE:
        return []
    text = f"{hits} of {count} begin as we read the service's metrics: our looking may make them"
    return [grading.stated("pause.own-reading", None, text=text)]


def stolen_rival(seen: Sequence[Seen], cores: int, *, least_s: float = 0.0) -> Counter:
    """Other machines of the host: found when they took as long as everything stood still, in these trials."""
    name = "other machines on the host"
    stopped = [one for one in seen if stops_of([one], least_s=least_s)]
    shares = [one.step.steal for one in stopped]
    known = [share for share in shares if share is not None]
    if not known or len(known) < len(shares):
        return grading.rival(name, "time that they took was not read", None)
    stood_s = sum(stop.end_s - stop.begin_s for stop in stops_of(stopped, least_s=least_s))
    stolen_s = sum(cores * share * one.watch.seconds for share, one in zip(known, stopped, strict=True))
    text = (
        f"they took {numbers.with_unit(stolen_s, 's')} of a core, "
        f"the service stood still for {numbers.with_unit(stood_s, 's')}"
    )
    return grading.rival(
        name, text, True if stolen_s < FAR_LESS * stood_s else False if stolen_s >= stood_s else None
    )


def trials_rival(follows: bool) -> Counter:
    """The beginning of each trial as what makes them."""
    text = "once in each trial, at the same moment" if follows else "at any moment of a trial"
    return grading.rival("beginning of a trial", text, not follows)


def who_stops(step: Step) -> str:
    """Begins an explanation; probes are the cheap requests, without them the load alone is known to stop."""
    if step.probes:
        return "Cheap requests stop as well, so it is the whole service"
    return "No request of the load is answered"


def not_looked(facts: Facts) -> str:
    """Why nothing can be said of standstills."""
    if not facts.curves and not facts.dense:
        return "no valid trial"
    return "needs every request of a trial in its log: none was kept whole"


def not_looked_for(shortest_s: float) -> str:
    """What stays unknown beside pauses that were found."""
    return f"pauses shorter than {numbers.with_unit(shortest_s, 's')} were not looked for"


def none_seen(service: Service) -> str:
    """`no stretch of 72 ms or more without an answer in 31 s; shorter ones were not assessed`."""
    limit = numbers.with_unit(service.limit_s, "s")
    looked = f"in {service.looked_s:.0f} s"
    return f"no stretch of {limit} or more without an answer {looked}; shorter ones not assessed"
