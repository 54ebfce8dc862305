"""Some connections are served far less often than others.

**Means.** Users on some connections wait many times as long as users on others, and go on doing so: an
unfair lock or queue, an accept that favours whoever it knows, a shard or class that connections are bound
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

**Do.** A fair queue (first come, first served), one listener for each process (SO_REUSEPORT) looked at
anew, and classes of users that share nothing they may wait for.

**Confirm.** The same load on new connections: the same index, other victims; the same victims: look at what
they have in common.
"""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.estimate.connection_use import STARVING_JAIN, STARVING_RATIO
from loadlens.measure.curve import working
from loadlens.model.facts import ConnectionWatch, Curve, Facts, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, NotAssessed
from loadlens.present import numbers

ID = "fairness.starvation"
TITLE = "some connections starve"
EXPLAINS: tuple[str, ...] = ("mixture.slow-path",)

STAYS_WORSE = 2.0  # best over worst: with an index that is low


@dataclass(frozen=True, slots=True)
class Look:
    """A level whose connections can be compared."""

    curve: Curve
    step: Step
    watch: ConnectionWatch
    ratio: Estimate
    evenness: float

    @property
    def starves(self) -> bool:
        """Whether some get far less."""
        return self.ratio.point >= STARVING_RATIO or (
            self.evenness < STARVING_JAIN and self.ratio.point >= STAYS_WORSE
        )


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every closed level with enough connections; the calmest that shows it best speaks."""
    looks = [look for curve in facts.curves if curve.is_closed for look in _looks(curve)]
    if not looks:
        return NotAssessed(ID, TITLE, _why_not(facts))
    starving = [look for look in looks if look.starves]
    if not starving:
        worst = max(looks, key=lambda look: look.ratio.point)
        return Absent(
            ID,
            TITLE,
            f"the best served tenth of {worst.watch.lasting} connections got {numbers.short(worst.ratio)} "
            f"times as many as the worst at {worst.step.load:g} users (limit {STARVING_RATIO:g}), Jain's "
            f"index {worst.evenness:.2f}",
        )
    found = [finding for look in starving if (finding := _finding(look)) is not None]
    if not found:
        return Absent(ID, TITLE, grading.unclear(_signals(starving[0])))
    return max(found, key=lambda finding: finding.grade)  # of equals the first: the calmest


def _looks(curve: Curve) -> list[Look]:
    found = []
    for step in curve.steps:
        watch = step.connections
        if watch is None or watch.evenness is None or not isinstance(watch.best_over_worst, Estimate):
            continue
        found.append(Look(curve, step, watch, watch.best_over_worst, watch.evenness))
    return found


def _why_not(facts: Facts) -> str:
    most = [s.connections.lasting for c in facts.curves for s in c.steps if s.connections is not None]
    if not most:
        return "needs connections one by one: what made the load tells of none"
    return (
        f"needs 10 connections that live all the time with 100 requests each on average; there were "
        f"{max(most)} at most that lived, or they had fewer"
    )


def _finding(look: Look) -> Finding | None:
    signals = _signals(look)
    rivals = [_mix_rival(look), _backend_rival(look), grading.generator_rival(look.step)]
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(look.curve))
    if grade is None:
        return None
    ratio, users = numbers.short(look.ratio), f"{look.step.load:g} users"
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, max(0.0, 1 - look.evenness)),
        scope=look.curve.label,
        statement=grading.statement(
            f"The worst served connections get 1 of {ratio} requests that the best get, at {users}"
        ),
        explanation=f"{look.watch.lasting} connections lived all the time; Jain's index of their requests is "
        f"{look.evenness:.2f} (1: all alike).",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice="Find out what the starved connections have in common, and serve first come, first served: a "
        f"mean of {numbers.short(look.step.response.mean)} hides users who wait {ratio} times as long.",
        confirm=f"{users} on new connections: the same index, other victims",
        unknown=("which requests had the starved connections in common",),
        curves=(look.curve.label,),
    )


def _signals(look: Look) -> list[grading.Signal]:
    text = (
        f"the best served tenth got {numbers.shown(look.ratio)} times as many requests as the worst "
        f"(limit {STARVING_RATIO:g}), Jain's index {look.evenness:.2f} (limit {STARVING_JAIN:g})"
    )
    chip = f"best over worst {look.ratio.point:.3g}"
    if look.ratio.point >= STARVING_RATIO:
        ratio = grading.at_least("connections.ratio", look.ratio, STARVING_RATIO, text=text, chip=chip)
    else:
        ratio = grading.stated("connections.ratio", look.starves, text=text, chip=chip)
    return [ratio, _together(look)]


def _together(look: Look) -> grading.Signal:
    """Whether all connections go to the same place."""
    name, processes = "connections.together", len(working(look.step))
    if processes == 1:
        return grading.stated(name, True, text="one process serves all", chip="one process")
    known = f"{processes} processes serve" if processes else "which processes serve is not known"
    return grading.stated(name, None, text=f"{known}: connections may differ in where they go")


def _mix_rival(look: Look) -> Counter:
    classes = len(look.step.classes)
    text = "all connections ask for the same" if classes == 1 else f"{classes} classes of requests"
    return grading.rival("other requests on other connections", text, True if classes == 1 else None)


def _backend_rival(look: Look) -> Counter:
    processes = len(working(look.step))
    if processes == 1:
        return grading.rival("uneven backends", "one process serves all", True)
    text = f"{processes} processes serve" if processes else "which processes serve was not watched"
    return grading.rival("uneven backends", text, None)
