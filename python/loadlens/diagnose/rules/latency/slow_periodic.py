"""Requests are slow at equal distances of time, whatever the load.

**Means.** Something expires or runs every so many seconds, and the requests that come then are slow: a cache
that expires and is filled again while they wait, or by each of them at once; a flush; a job. Other requests
may be served meanwhile, so that it is no pause.

**Needs.** At loads under which requests do not wait for each other (the usual time is at most 1.2 times the
least): bursts of requests that take more than 1.5 times as long as usual. At least 5 distances between bursts
of a trial, of which 80 % lie within 10 % of their median or of that of their level (of 3 or more), with or
without the length of the bursts; seen at two levels of which one has twice the load of the other, and where
they come hardly sooner. The slow requests take 2 % of that distance longer than usual.

**Ruled out by.** A distance that is usual for scrapes of metrics: they may make requests slow, and then it is
suspected at most. A generator that is late, and other programs on the same machine.

**Thresholds.** Of bursts at random in three trials 4 in a thousand are as alike where there are 5 or 6
distances, and fewer with more. Two levels: what happens once in so many requests comes twice as often under
twice the load. 2 % of the time: p99 is then made by it.

**Do.** Look for what runs or expires at that distance. Renew a cache before it expires, in the background,
and once for all requests.

**Confirm.** Another lifetime or timer: the distance changes with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import service_pauses
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Grade
from loadlens.model.shapes import SlowBursts
from loadlens.present import numbers

ID = "slow.periodic"
TITLE = "requests are slow at equal distances of time"
EXPLAINS: tuple[str, ...] = ("mixture.slow-path", "steady.none")

FEWEST = 5  # distances
ALIKE = 0.8  # of them lie so near to their median
NEAR = 0.10
FEWEST_OF_LEVEL = 3  # distances, to be compared with each other
LOADS = 2.0  # times a lighter load
SOONER = 1.5  # times: what happens once in so many requests would come LOADS times as soon
MATTERS = 0.02  # of the distance
OFF = 0.01  # of it: how well the median of a few is known


@dataclass(frozen=True, slots=True)
class Distance:
    """Two bursts of slow requests that follow each other."""

    load: float
    gap_s: float
    pause_s: float  # from the end of the first to the begin of the second


@dataclass(frozen=True, slots=True)
class Beating:
    """Bursts of slow requests of one class of a curve."""

    curve: Curve
    trials: tuple[SlowBursts, ...]  # with two bursts or more

    @property
    def distances(self) -> list[Distance]:
        """Distances of bursts that follow each other in a trial."""
        return [
            Distance(trial.load, then - begin, then - end)
            for trial in self.trials
            for begin, end, then in zip(trial.begin_s, trial.end_s, trial.begin_s[1:], strict=False)
        ]

    @property
    def every_s(self) -> float:
        """Median distance."""
        return float(np.median([each.gap_s for each in self.distances]))

    @property
    def between(self) -> list[Distance]:
        """The same distances without the bursts themselves."""
        return [replace(each, gap_s=each.pause_s) for each in self.distances]

    @property
    def alike(self) -> float:
        """Share of the distances near their median, or that of their level; without bursts if more."""
        return max(_alike(self.distances), _alike(self.between))

    @property
    def is_of_time(self) -> bool:
        """True if another level has twice the load and bursts follow each other hardly sooner there.

        Bursts themselves are left out: they may be long next to what lies between them.
        """
        levels = sorted(_by_load(self.between).items())
        return any(
            high >= LOADS * low and np.median(there) >= np.median(here) / SOONER
            for (low, here), (high, there) in itertools.combinations(levels, 2)
        )

    @property
    def longer_s(self) -> float:
        """Mean time that the slow requests take longer."""
        return sum(t.longer_s * t.slow for t in self.trials) / sum(t.slow for t in self.trials)

    @property
    def share(self) -> float:
        """Share of the requests that are slow."""
        return sum(t.slow for t in self.trials) / sum(t.requests for t in self.trials)


def _alike(distances: Sequence[Distance]) -> float:
    middle = float(np.median([each.gap_s for each in distances]))
    levels = _by_load(distances)
    near = 0
    for each in distances:
        own = levels[each.load]
        middles = (middle, float(np.median(own))) if len(own) >= FEWEST_OF_LEVEL else (middle,)
        near += any(abs(each.gap_s - other) <= NEAR * other for other in middles)
    return near / len(distances)


def _by_load(distances: Sequence[Distance]) -> dict[float, list[float]]:
    levels: dict[float, list[float]] = {}
    for each in distances:
        levels.setdefault(each.load, []).append(each.gap_s)
    return levels


def observe(facts: Facts) -> Sequence[Beating] | Lacking | Nothing:
    """Return the classes with distances between bursts, the one with the most first."""
    if not any(curve.steps for curve in facts.curves):
        return Lacking("no valid trial")
    beating = []
    for curve in facts.curves:
        for label in dict.fromkeys(bursts.label for bursts in curve.slow_bursts):
            trials = tuple(b for b in curve.slow_bursts if b.label == label and len(b.begin_s) > 1)
            if trials:
                beating.append(Beating(curve, trials))
    return sorted(beating, key=lambda seen: -len(seen.distances)) or Nothing(
        "no trial at a light load has two bursts of slow requests"
    )


def claim(facts: Facts, seen: Beating) -> Claim | Nothing:
    """Require that bursts come at equal distances at several loads, and are long enough to matter."""
    count, every_s, longer_s = len(seen.distances), seen.every_s, seen.longer_s
    if count < FEWEST:
        return Nothing(f"{count} distances between bursts of slow requests: needs {FEWEST}")
    every, longer = numbers.with_unit(every_s, "s"), numbers.with_unit(longer_s, "s")
    loads, share = [trial.load for trial in seen.trials], numbers.percent(seen.share)
    unit = " users" if seen.curve.is_closed else "/s"
    signals = [
        grading.stated(
            "slow.distance",
            seen.alike >= ALIKE,
            text=f"{numbers.percent(seen.alike)} of {count} distances between bursts are within 10 % of "
            f"their median (limit {numbers.percent(ALIKE)}), {every} from begin to begin",
            chip=f"every {every}",
            value=every_s,
        ),
        grading.stated(
            "slow.loads",
            seen.is_of_time,
            text=f"seen at {min(loads):g} to {max(loads):g}{unit} (limit {LOADS:g} times), and hardly sooner "
            "with more: time makes them, not the number of requests",
            chip=f"at {min(loads):g} to {max(loads):g}{unit}",
        ),
        grading.stated(
            "slow.longer",
            longer_s >= MATTERS * every_s,
            text=f"they take {longer} longer, {numbers.percent(longer_s / every_s)} of that distance (limit "
            f"{numbers.percent(MATTERS)})",
            chip=f"{longer} longer",
            value=longer_s,
        ),
    ]
    scrapes = service_pauses.scrapes_rival(every_s, OFF * every_s)
    signals.append(grading.stated("slow.no-scrape", scrapes.ruled_out, text=scrapes.text))
    steps = [step for step in seen.curve.steps if step.load in loads]
    worst = max(steps, key=lambda step: step.other_cores or 0.0, default=seen.curve.steps[0])
    rivals = [grading.generator_rival(worst), grading.interference_rival(worst, facts.cores)]

    def words(grade: Grade) -> Words:
        verb = "may take" if grade is Grade.SUSPECTED else "take"
        return Words(
            statement=f"Every {every} requests {verb} {longer} longer: {share} of them",
            explanation=f"At light loads {share} of {seen.trials[0].request} come in such bursts; the others "
            f"take {numbers.with_unit(seen.trials[0].usual_s, 's')}.",
            advice=f"Look for what expires or runs every {every}: a cache, a flush, a job. Renew a cache "
            "before it expires, in the background and once, not by every request that misses it.",
            confirm=f"another lifetime or timer: the distance of {every} changes with it",
            impact=min(1.0, longer_s / every_s),
            unknown=("what it is",),
        )

    return on_curve(seen.curve, signals, rivals, words, cap=Grade.PROBABLE)


assess = assessing(ID, TITLE, observe, claim)
