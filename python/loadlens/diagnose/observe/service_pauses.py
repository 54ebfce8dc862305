"""Observations of pauses: all standstills of one service over its trials, and the period they keep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.diagnose import grading
from loadlens.estimate import distributions, pauses
from loadlens.estimate.interval import Floats, Interval, product
from loadlens.measure import figures
from loadlens.measure.thresholds import IDLE_CPU
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate
from loadlens.model.shapes import Standstill, StandstillWatch
from loadlens.present import numbers

QUEUED = 1.5  # times the median of the lowest level: beyond, requests wait for each other
FAR_LESS = 0.5  # of the time for which everything stood still
ALIKE = 1.5  # limits of trials that are reported as one
AT_ITS_BEGINNING = 0.1  # of a standstill: what starts it lies there
SCRAPES_S = (0.5, 1.0, 5.0, 10.0, 15.0, 30.0, 60.0)
LIKE_A_SCRAPE = 0.005
MOSTLY, CHANCE = 0.5, 0.01  # of the standstills, and how often as many would by chance


@dataclass(frozen=True, slots=True)
class TrialPauses:
    """A trial with its standstills, its level, and whether the service had time to spare there."""

    step: Step
    watch: StandstillWatch
    is_calm: bool


@dataclass(frozen=True, slots=True)
class Service:
    """All trials that met the same processes, or such as were started alike for one curve."""

    curves: tuple[str, ...]
    seen: tuple[TrialPauses, ...]

    @property
    def shortest_s(self) -> float:
        """The shortest standstill that any trial could distinguish from chance."""
        return min((trial.watch.shortest_s for trial in self.seen), default=math.inf)

    @property
    def limit_s(self) -> float:
        """The same for all trials that were observed about as closely."""
        limits = [trial.watch.shortest_s for trial in self.seen]
        return max((limit for limit in limits if limit <= ALIKE * self.shortest_s), default=math.inf)

    @property
    def looked_s(self) -> float:
        """Seconds in which a standstill of that length would have been seen."""
        return sum(trial.watch.seconds for trial in self.seen if trial.watch.shortest_s <= self.limit_s)


def services_of(facts: Facts) -> tuple[Service, ...]:
    """Return every service whose trials were searched: curves that share processes belong to one."""
    by_lives: dict[frozenset[str], list[Curve]] = {}
    for curve in facts.curves:
        lives = frozenset(watch.life for step in curve.steps for watch in step.standstills)
        shared = next((others for others in by_lives if others & lives), None)
        if shared is not None:
            by_lives[shared | lives] = [*by_lives.pop(shared), curve]
        elif lives:
            by_lives[lives] = [curve]
    if not by_lives and (lives := frozenset(w.life for step in facts.dense for w in step.standstills)):
        by_lives[lives] = []
    services = []
    for lives, curves in by_lives.items():
        trials = [
            TrialPauses(step, watch, True)
            for step in facts.dense
            for watch in step.standstills
            if watch.life in lives
        ]
        for curve in curves:
            for step in curve.steps:
                trials += [TrialPauses(step, watch, _has_room(curve, step)) for watch in step.standstills]
        in_order = tuple(sorted(trials, key=lambda trial: trial.watch.begin_s))
        services.append(Service(tuple(curve.label for curve in curves), in_order))
    return tuple(services)


def _has_room(curve: Curve, step: Step) -> bool:
    """Return true if hardly any request waits at a level, for other requests or for a core."""
    first, here = curve.steps[0].response.p50, step.response.p50
    if not isinstance(first, Estimate) or not isinstance(here, Estimate):
        return step is curve.steps[0]
    is_queued = here.point > QUEUED * first.point
    is_full = bool(step.processes) and step.server_cores > IDLE_CPU * curve.cores_allotted
    return not is_queued and not is_full


def stops_of(seen: Sequence[TrialPauses], *, least_s: float = 0.0) -> list[Standstill]:
    """Return all standstills, ascending within a life; each belongs to the trial in which it begins."""
    return [stop for trial in seen for stop in trial.watch.stops if stop.end_s - stop.begin_s >= least_s]


def ends_by_life(seen: Sequence[TrialPauses], *, least_s: float = 0.0) -> list[Floats]:
    """Return the ends of standstills in each life: at the end all requests are answered at once.

    The begin is less exact: the last answer before it comes at random.
    """
    lives: dict[str, list[float]] = {}
    for trial in seen:
        ends = [stop.end_s for stop in stops_of([trial], least_s=least_s) if not stop.is_cut]
        lives.setdefault(trial.watch.life, []).extend(ends)
    return [np.sort(np.array(ends)) for ends in lives.values() if ends]


def length_of(seen: Sequence[TrialPauses], *, least_s: float = 0.0) -> Estimate | None:
    """Return the mean length of the standstills that were seen whole; none without any.

    A standstill begins at a moment that the service's clients do not choose: the last answer was then as long
    ago as at any other moment, and that time is subtracted.
    """
    lengths = np.array(
        [
            stop.end_s - stop.begin_s - trial.watch.age_s
            for trial in seen
            for stop in stops_of([trial], least_s=least_s)
            if not stop.is_cut
        ]
    )
    if not lengths.size:
        return None
    point = float(lengths.mean())
    low = high = None
    if lengths.size > 2:
        half = distributions.t_quantile(0.975, lengths.size - 1) * float(lengths.std(ddof=1))
        # The beginning of any is known to a tenth of the distance of answers.
        apart_s = min((trial.watch.between_s for trial in seen if trial.watch.stops), default=0.0)
        half = max(half / math.sqrt(lengths.size), apart_s / 10)
        low, high = max(0.0, point - half), point + half
    trials = sum(bool(trial.watch.stops) for trial in seen)
    return Estimate("pause.length", "s", point, low, high, trials, lengths.size, "t over standstills")


def period_of(lives: Sequence[Floats], beat: pauses.Beat, *, between_s: float = 0.0) -> Estimate:
    """Return the period with its interval: a line through the moments of each life, one slope for all.

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
    half = distributions.t_quantile(0.975, max(1, freedom)) * max(scatter, between_s) / math.sqrt(power)
    size = sum(times.size for times in lives)
    return Estimate(
        "pause.period", "s", slope, slope - half, slope + half, len(lives), size, "least squares over beats"
    )


def stopped_share(length: Estimate, per_s: Interval) -> Estimate:
    """Return the share of the time for which the service stands still.

    Args:
        length: Of a standstill, seconds.
        per_s: How many come in a second.
    """
    method = f"length times how often: {per_s.method}"
    share = product(figures.known(length), per_s, method=method)
    point, low, high = (
        None if end is None else min(1.0, end) for end in (share.point, share.low, share.high)
    )
    return Estimate("pause.share", "share", point or 0.0, low, high, length.trials, length.samples, method)


def share_signal(share: Estimate) -> grading.Signal:
    """State the share of the time for which the service stands still; it follows from judged figures."""
    return grading.stated(
        "pause.share",
        True,
        text=f"it stands still for {numbers.shown(share)} of the time",
        chip=f"{numbers.percent(share.point)} of the time",
        value=share,
        threshold=0.0,
    )


def at_one_moment(seen: Sequence[TrialPauses], *, least_s: float = 0.0) -> bool:
    """Return true if each trial has one, at the same moment of it: then their distances are the trials'."""
    lengths = [trial.watch.seconds for trial in seen if stops_of([trial], least_s=least_s)]
    return bool(lengths) and follows_the_trials(seen, float(np.mean(lengths)), least_s=least_s)


def follows_the_trials(seen: Sequence[TrialPauses], period_s: float, *, least_s: float = 0.0) -> bool:
    """Return true if they come at one moment of each trial: then the trials' own beginning makes them."""
    each = [(trial, stops_of([trial], least_s=least_s)) for trial in seen]
    offsets = [stop.end_s - trial.watch.begin_s for trial, stops in each for stop in stops if not stop.is_cut]
    is_once = all(len(stops) <= 1 for _, stops in each)
    return is_once and len(offsets) > 2 and float(np.std(offsets)) < pauses.OFF_BEAT * period_s


def own_reading(seen: Sequence[TrialPauses], *, least_s: float = 0.0) -> list[grading.Signal]:
    """State that they begin as we read the service's metrics, which may cause them; empty: they do not.

    The number of readings that chance puts at the beginning of a standstill is binomial.
    """
    hits, chances = 0, []
    for trial in seen:
        watch = trial.watch
        for stop in stops_of([trial], least_s=least_s):
            length = stop.end_s - stop.begin_s
            near = watch.between_s + AT_ITS_BEGINNING * length
            first, last = stop.begin_s - watch.between_s, stop.begin_s + near
            hits += any(first <= at <= last for at in watch.scrapes_s)
            chances.append(min(1.0, (last - first) * len(watch.scrapes_s) / watch.seconds))
    count = len(chances)
    if hits < MOSTLY * count or not hits:
        return []
    if distributions.binomial_at_least(hits, count, float(np.mean(chances))) >= CHANCE:
        return []
    text = f"{hits} of {count} begin as we read the service's metrics: our looking may make them"
    return [grading.stated("pause.own-reading", None, text=text)]


def stolen_rival(seen: Sequence[TrialPauses], cores: int, *, least_s: float = 0.0) -> Counter:
    """Weigh other machines of the host: a cause if they took as long as the service stood still."""
    name = "other machines on the host"
    stopped = [trial for trial in seen if stops_of([trial], least_s=least_s)]
    stolen = [cores * t.step.steal * t.watch.seconds for t in stopped if t.step.steal is not None]
    if not stolen or len(stolen) < len(stopped):
        return grading.rival(name, "time that they took was not read", None)
    stood_s = sum(stop.end_s - stop.begin_s for stop in stops_of(stopped, least_s=least_s))
    stolen_s = sum(stolen)
    took, stood = numbers.with_unit(stolen_s, "s"), numbers.with_unit(stood_s, "s")
    ruled_out = True if stolen_s < FAR_LESS * stood_s else False if stolen_s >= stood_s else None
    return grading.rival(name, f"they took {took} of a core, the service stood still for {stood}", ruled_out)


def trials_rival(follows: bool) -> Counter:
    """Weigh the beginning of each trial as the cause."""
    text = "once in each trial, at the same moment" if follows else "at any moment of a trial"
    return grading.rival("beginning of a trial", text, not follows)


def who_stops(step: Step) -> str:
    """Return the first words of an explanation; only probes show that the whole service stops."""
    if step.probes:
        return "Cheap requests stop as well, so it is the whole service"
    return "No request of the load is answered"


def not_looked(facts: Facts) -> str:
    """Return why standstills cannot be assessed."""
    if not facts.curves and not facts.dense:
        return "no valid trial"
    return "needs every request of a trial in its log: none was kept whole"


def not_looked_for(shortest_s: float) -> str:
    """Return what stays unknown next to the pauses found."""
    return f"pauses shorter than {numbers.with_unit(shortest_s, 's')} were not looked for"


def none_seen(service: Service) -> str:
    """`no stretch of 72 ms or more without an answer in 31 s; shorter ones not assessed`."""
    limit = numbers.with_unit(service.limit_s, "s")
    looked = f"in {service.looked_s:.0f} s"
    return f"no stretch of {limit} or more without an answer {looked}; shorter ones not assessed"


def scrapes_rival(period_s: float, off_s: float) -> Counter:
    """Weigh scrapes of the service's metrics, which keep a usual period.

    Args:
        period_s: Of what is slow or stands still.
        off_s: How well it is known.
    """
    is_scrape = any(abs(period_s - usual) <= max(LIKE_A_SCRAPE * usual, off_s) for usual in SCRAPES_S)
    text = f"every {numbers.with_unit(period_s, 's')} is {'a' if is_scrape else 'no'} usual period of scrapes"
    return grading.rival("scrapes of metrics", text, None if is_scrape else True)
