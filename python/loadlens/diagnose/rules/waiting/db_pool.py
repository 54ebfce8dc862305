"""A pool has too few connections: requests wait for one.

**Means.** Each request needs a connection for a while, there are W, and all are taken. Throughput is W over
the time that one is held.

**Needs.** A plateau; CPU to spare (computing and waiting for a core, at most 70 % of the cores, no thread
full); gauges of a pool at the highest load: nine tenths of its places are taken and more than 0.5 requests
wait on average. How many places there are a gauge says, or else the number taken, when it stays the same
(within 5 %) over the last two levels. Half or more of those who wait, X (R - R1), do so here, or
they fill the threads in front; else it is suspected.

**Ruled out by.** A lock or another pool at which all its holders are (then that is the cause). Threads that
are full without waiting for it. A machine, a generator or a transfer that is the limit; refusals. What lies
behind the pool being slow itself: then a connection is held for longer than a whole request takes alone.

**Thresholds.** Nine tenths: readings fall between a return and the next loan now and then. 0.5 waiting: a
line before a resource at nine tenths of its capacity holds more. 1.2 times the time alone: noise of two
means of few seconds; from twice on it rules the pool out. A pool of one stands here too, as more connections
would help it.

**Do.** W = throughput that is wanted x time that a connection is held, up to what the database serves well;
or hold connections for less.

**Confirm.** Twice the connections: twice the throughput, until the next limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.observe import places as held
from loadlens.diagnose.observe import waits
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.model.facts import Facts, Places
from loadlens.model.finding import Absent, Counter, Finding, Grade, NotAssessed
from loadlens.present import numbers

ID = "db.pool"
TITLE = "too few connections in a pool"
EXPLAINS: tuple[str, ...] = ("saturation.plateau",)


@dataclass(frozen=True, slots=True)
class Look:
    """A pool on a plateau."""

    found: waits.Full
    places: Places
    size: held.Size | None
    hold: Interval | Insufficient


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the pool with the longest line on any plateau."""
    known = waits.plateaus(facts)
    if not isinstance(known, tuple):
        return waits.without(ID, TITLE, known)
    looks = [
        Look(one, pool, held.size_of(one, pool), held.hold(one, pool))
        for one in known
        for pool in held.of_kind(one, "pool")
    ]
    if not looks:
        return NotAssessed(
            ID,
            TITLE,
            "no gauge of a pool: how many hold a connection and how many wait would decide (--metrics)",
        )
    looks = held.by_line(looks)
    found = grading.first(_finding(facts, look) for look in looks)
    return found or Absent(ID, TITLE, _silence(facts, looks[0]))


def _finding(facts: Facts, look: Look) -> Finding | None:
    found = look.found
    signals, rivals = _signals(facts, look), _rivals(facts, look)
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(found.curve))
    if grade is None:
        return None
    return Finding(
        rule=ID,
        grade=grade,
        impact=found.waiting_share,
        scope=found.curve.label,
        statement=grading.statement(_statement(look, grade)),
        explanation=held.explanation(found, look.places),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=_advice(look),
        confirm="twice the connections: twice the throughput, until the next limit",
        curves=(found.curve.label,),
    )


def _signals(facts: Facts, look: Look) -> list[grading.Signal]:
    found, pool = look.found, look.places
    return [
        waits.cpu_signal(facts, found.curve, found.top),
        held.taken_signal(found, pool, look.size, "pool.size"),
        held.waiting_signal(pool, "pool.waiting"),
        *held.line_signals(found, pool, "pool.line"),
        held.hold_signal("pool.hold", look.hold, found),
    ]


def _rivals(facts: Facts, look: Look) -> list[Counter]:
    found, pool = look.found, look.places
    return [
        *waits.rivals(facts, found),
        held.threads_rival(found, pool),
        held.within_rival(found, pool),
        held.slow_behind_rival(look.hold, found),
    ]


def _statement(look: Look, grade: Grade) -> str:
    count = look.size.count if look.size is not None else held.point(look.places.held) or 0.0
    many = f"{count:.3g} connection" + ("" if round(count) == 1 else "s")
    verb = "may carry" if grade is Grade.SUSPECTED else "carries" if round(count) == 1 else "carry"
    waiting = held.point(look.places.waiting)
    line = "" if waiting is None else f"; {waiting:.3g} requests wait for one"
    return f"The pool is full: {many} {verb} {look.found.most}{line}"


def _advice(look: Look) -> str:
    rate, size = look.found.rate, look.size
    if isinstance(look.hold, Insufficient) or isinstance(rate, Insufficient) or size is None:
        return "More connections, as many as the database serves well; or hold each for less."
    more = round(2 * rate.point * look.hold.point)
    return (
        f"{more} connections carry {numbers.with_unit(2 * rate.point, '1/s')} at "
        f"{numbers.with_unit(look.hold.point, 's')} each, if what is behind serves them; or hold it for less."
    )


def _silence(facts: Facts, look: Look) -> str:
    return grading.silence(look.found.curve.label, _signals(facts, look), _rivals(facts, look))
