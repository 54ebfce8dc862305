"""A program that the service calls has few places, and all are taken.

**Means.** Requests call another program of this machine, which works on only W calls at a time. All its
places are taken, and further calls wait there. Throughput is W / (time a call holds a place), whatever the
service itself has.

**Needs.** A plateau. CPU to spare: computing and waiting for a core take at most 70 % of the cores, and no
thread is full. Samples of the threads or tasks of that program show its places: so many wait in the function
of a library that hands them out, or for a semaphore, while others work. As many calls to it are under way as
hold a place or wait for one, within 20 %. Half or more of all waiting requests, X (R - R1), wait there;
otherwise the finding is suspected.

**Ruled out by.** A lock or another pool that all holders of the places wait for. Full threads of the service
that do not wait for the calls. A machine, generator or transfer that is the limit. Refusals. A place that is
held for longer than a whole request takes without other load: then something behind it is slow. More requests
that are let through at once at the begin of a load than there are places, and one rate afterwards, as of a
rate limiter.

**Thresholds.** As for a pool of the service itself (`db.pool`). A program behind, whose threads cannot be
sampled, shows only that always as many calls are under way, or that all wait (`calls.at-once`,
`downstream.serialised`).

**Do.** Ask it less often: keep its answers, or ask for several things in one call. Or give it more places, as
many as what it works with serves.

**Confirm.** The same load with answers that are kept, or with twice the places there: throughput grows.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import limits, pools
from loadlens.model.facts import Facts
from loadlens.model.finding import Grade, Setting

ID = "downstream.full"
TITLE = "a program that is called is full"
EXPLAINS: tuple[str, ...] = (
    "saturation.plateau",
    "part.full",
    "calls.at-once",
    "calls.wait-before",
    "downstream.slow",
)


def observe(facts: Facts) -> Sequence[limits.Taken] | Lacking | Nothing:
    """Return the full places of called programs on all plateaus, those with the longest line first."""
    seen = pools.on_plateaus(facts)
    if not isinstance(seen, list):
        return seen
    there = [pool for pool in seen if pool.called]
    return there or Nothing("no sampled program that is called has a line of its own")


def claim(facts: Facts, pool: limits.Taken) -> Claim:
    """Hold the places against their number, their line, and what else would look the same."""
    signals, rivals, _ = pools.evidence(facts, pool)
    full, called, waiting = pool.full, pool.called, limits.point(pool.places.waiting)

    def text(grade: Grade) -> Words:
        verb = "may serve" if grade is Grade.SUSPECTED else "serves"
        line = "" if waiting is None else f"; {waiting:.3g} wait there"
        return Words(
            statement=f"{called} {verb} {pool.count:.3g} calls at a time, {full.most}{line}",
            explanation=limits.explanation(full, pool.places),
            advice=f"Ask {called} less often, keep its answers, or let it serve more calls at a time.",
            confirm=f"twice the places of {called}: twice the throughput, until the next limit",
            impact=full.waiting_share,
            setting=Setting.places(pool.count),
        )

    return on_curve(full.curve, signals, rivals, text)


assess = assessing(ID, TITLE, observe, claim)
