"""Requests are slow at equal distances of time, whatever the load.

**Means.** Something expires or runs every so many seconds, and the requests that come then are slow: a cache
that expires and is filled again while they wait, or by each of them at once; a flush; a job. Other requests
may be served meanwhile, so that it is no pause.

**Needs.** At loads under which requests do not wait for each other (the usual time is at most 1.2 times that
of one user): bursts of requests that take more than 1.5 times as long as usual. At least 5 distances between
bursts of a trial, of which 80 % lie within 10 % of their median, with or without the length of the bursts;
seen at two levels or more of which one has twice the load of another. The slow requests take 2 % of that
distance longer than usual.

**Ruled out by.** A distance that is usual for scrapes of metrics leaves it open that they make requests slow.
A generator that is late, and other programs on the same machine.

**Thresholds.** Distances at random are as alike less than two times in a thousand. Two levels: what happens
once in so many requests comes twice as often under twice the load. 2 % of the time: p99 is then made by it.

**Do.** Look for what runs or expires at that distance. Renew a cache before it expires, in the background,
and once for all requests.

**Confirm.** Another lifetime or timer: the distance changes with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
LOADS = 2.0  # times the lightest load
MATTERS = 0.02  # of the distance


@dataclass(frozen=True, slots=True)
class Beating:
    """Bursts of slow requests of one class of a curve."""

    curve: Curve
    trials: tuple[SlowBursts, ...]  # with two bursts or more

    @property
    def distances(self) -> list[tuple[float, float]]:
        """Distances of bursts in a trial, and the same without what slow requests took longer, seconds."""
        return [
            (float(gap), float(gap) - trial.longer_s)
            for trial in self.trials
            for gap in np.diff(trial.begin_s)
        ]

    @property
    def every_s(self) -> float:
        """Median distance."""
        return float(np.median([gap for gap, _ in self.distances]))

    @property
    def alike(self) -> float:
        """Share of the distances within 10 % of their median, with or without the length of the bursts."""
        return max(_alike([each[way] for each in self.distances]) for way in (0, 1))

    @property
    def longer_s(self) -> float:
        """Mean time that the slow requests take longer."""
        return sum(t.longer_s * t.slow for t in self.trials) / sum(t.slow for t in self.trials)

    @property
    def share(self) -> float:
        """Of the requests."""
        return sum(t.slow for t in self.trials) / sum(t.requests for t in self.trials)


def _alike(distances: Sequence[float]) -> float:
    values = np.array(distances)
    return float((np.abs(values - np.median(values)) <= NEAR * np.median(values)).mean())


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
            max(loads) >= LOADS * min(loads),
            text=f"seen at {min(loads):g} to {max(loads):g} users (limit {LOADS:g} times): time makes them, "
            "not the number of requests",
            chip=f"at {min(loads):g} to {max(loads):g} users",
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
    steps = [step for step in seen.curve.steps if step.load in loads]
    worst = max(steps, key=lambda step: step.other_cores or 0.0, default=seen.curve.steps[0])
    rivals = [
        service_pauses.scrapes_rival(every_s, NEAR * every_s),
        grading.generator_rival(worst),
        grading.interference_rival(worst, facts.cores),
    ]

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
