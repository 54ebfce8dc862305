"""Some connections are served far less often than others.

**Means.** Users on some connections wait many times as long as users on others, and go on doing so: an
unfair lock or queue, an accept that favours some clients, a shard or class that connections are bound
to. A mean over all of them hides it.

**Needs.** Among at least 10 connections that lived all the time and answered 100 requests each on average:
the best served tenth got 3 times as many as the worst, or twice as many and Jain's index is below 0.8. Best
and worst are those of the first half of a trial, their requests those of the second: who is struck by
chance does not stay the worst. And a single process serves them all.

**Ruled out by.** Several backends or processes of which one is fuller or slower: connections that stay with
it are served less, which is a matter of balancing. Where several serve, or which processes do is not known,
the finding is no more than suspected, however much room there is: a balancer may keep connections with a
replica that is slow at any load. Other requests on other
connections: in a load of several classes this stays open.

**Thresholds.** 3 times and 0.8: chance among equals stays far below with 100 requests each.

**Do.** Serve in order of arrival, give each process its own listener (SO_REUSEPORT) and check how connections
spread over them, and separate classes of users so that they share no queue.

**Confirm.** The same load on new connections: if other connections starve now, the queue is unfair; if the
same clients do, look at what they have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.estimate.connection_use import STARVING_JAIN, STARVING_RATIO
from loadlens.measure.curve import working
from loadlens.model.facts import ConnectionWatch, Curve, Facts, Step
from loadlens.model.finding import Estimate, Finding, Grade
from loadlens.present import numbers

ID = "fairness.starvation"
TITLE = "some connections starve"
EXPLAINS: tuple[str, ...] = ("mixture.slow-path",)

STAYS_WORSE = 2.0  # best over worst: with an index that is low


@dataclass(frozen=True, slots=True)
class UnevenConnections:
    """The connections of one level, and how unevenly they are served."""

    curve: Curve
    step: Step
    watch: ConnectionWatch
    ratio: Estimate
    evenness: float

    @property
    def starves(self) -> bool:
        """True if some get far less."""
        return self.ratio.point >= STARVING_RATIO or (
            self.evenness < STARVING_JAIN and self.ratio.point >= STAYS_WORSE
        )


def observe(facts: Facts) -> Sequence[UnevenConnections] | Lacking | Nothing:
    """Return the closed levels on which connections starve, by load."""
    watched = [(c, s, s.connections) for c in facts.curves for s in c.steps if s.connections is not None]
    levels = [
        UnevenConnections(curve, step, watch, watch.best_over_worst, watch.evenness)
        for curve, step, watch in watched
        if curve.is_closed and watch.evenness is not None and isinstance(watch.best_over_worst, Estimate)
    ]
    if not watched:
        return Lacking("needs connections one by one: the load tool recorded none")
    if not levels:
        return Lacking(
            "needs 10 connections that live all the time with 100 requests each on average; there were "
            f"{max(watch.lasting for _, _, watch in watched)} at most that lived, or they had fewer"
        )
    starving = [level for level in levels if level.starves]
    worst = max(levels, key=lambda level: level.ratio.point)
    return starving or Nothing(
        f"the best served tenth of {worst.watch.lasting} connections got {numbers.short(worst.ratio)} "
        f"times as many as the worst at {worst.step.load:g} users (limit {STARVING_RATIO:g}), Jain's "
        f"index {worst.evenness:.2f}"
    )


def claim(facts: Facts, level: UnevenConnections) -> Claim:
    """Hold the starving connections against requests or backends that differ."""
    ratio, step = level.ratio, level.step
    text = (
        f"the best served tenth got {numbers.shown(ratio)} times as many requests as the worst "
        f"(limit {STARVING_RATIO:g}), Jain's index {level.evenness:.2f} (limit {STARVING_JAIN:g})"
    )
    chip = f"best over worst {ratio.point:.3g}"
    apart = grading.stated("connections.ratio", level.starves, text=text, chip=chip)
    if ratio.point >= STARVING_RATIO:
        apart = grading.at_least("connections.ratio", ratio, STARVING_RATIO, text=text, chip=chip)
    processes, classes = len(working(step)), len(step.classes)
    if processes == 1:
        serve = "one process serves all"
        together = grading.stated("connections.together", True, text=serve, chip="one process")
        backends = grading.rival("uneven backends", serve, True)
    else:
        several = f"{processes} processes serve" if processes else ""
        serve = f"{several or 'which processes serve is not known'}: connections may differ in where they go"
        together = grading.stated("connections.together", None, text=serve)
        backends = grading.rival("uneven backends", several or "which processes serve was not watched", None)
    asked = "all connections ask for the same" if classes == 1 else f"{classes} classes of requests"
    mix = grading.rival("other requests on other connections", asked, True if classes == 1 else None)

    def words(_: Grade) -> Words:
        times, users = numbers.short(ratio), f"{step.load:g} users"
        return Words(
            statement=f"The worst served connections get 1 of {times} requests that the best get, at {users}",
            explanation=f"{level.watch.lasting} connections lived all the time; Jain's index of their "
            f"requests is {level.evenness:.2f} (1: all alike).",
            advice="Find out what the starved connections have in common, and serve first come, first "
            f"served: a mean of {numbers.short(step.response.mean)} hides users who wait {times} times as "
            "long.",
            confirm=f"{users} on new connections: the same index, other victims",
            impact=1 - level.evenness,
            unknown=("which requests had the starved connections in common",),
        )

    return on_curve(level.curve, [apart, together], [mix, backends, grading.generator_rival(step)], words)


def _lightest(pairs: Sequence[tuple[UnevenConnections, Finding]]) -> Finding:
    """The finding of the highest grade, and of equals the one at the lightest load."""
    return max((finding for _, finding in pairs), key=lambda finding: finding.grade)


def _silence(facts: Facts, levels: Sequence[UnevenConnections]) -> str:
    return grading.unclear(claim(facts, levels[0]).signals)


assess = assessing(ID, TITLE, observe, claim, choose=_lightest, silence=_silence)
