"""A pool has too few connections: requests wait for one.

**Means.** Each request needs a connection for part of its time. The pool has W connections and all are in
use. Throughput is W / (time a connection is held per request). That time is the mean of all requests. Where a
few long requests take a quarter of it or more, the finding names their share, and what the connections carry
without them. It does not if the time differs by more than a quarter from the time that requests take without
load: these requests then spend their time without a connection.

**Needs.** A plateau. CPU to spare: computing and waiting for a core take at most 70 % of the cores, and no
thread is full. Gauges of a pool at the highest load that show 90 % of the connections in use and a mean of
more than 0.5 waiting requests. The size of the pool comes from a gauge, or is the number in use if that stays
within 5 % over the last two levels. Without gauges, samples of threads serve: so many wait in the function of
a library that hands out connections, or for a semaphore, while others work. Half or more of all waiting
requests, X (R - R1), wait for this pool, or they fill the threads in front of it; otherwise the finding is
suspected. Where no name of a gauge says pool, two gauges that behave like two or more full places and like
their queue serve as well, if a cheap probe does not wait (`downstream.serialised` says which). So do gauges
of threads with their own queue, which then do only a part of the work of a request, and titles of the
processes of a PostgreSQL server: 90 % of its connections from the service are at work, their number is the
same at the level before, at least 1.2 users come for each, and a cheap probe does not wait. The waiting
requests are then X (R - R1), and whether something else in front of the pool lets in just as many stays open:
the finding is at most probable.

**Ruled out by.** A lock or another pool that all holders of the connections wait for (then that is the
cause). Full threads that do not wait for the pool. A machine, generator or transfer that is the limit.
Refusals. A slow service behind the pool: a connection is then held for longer than a whole request takes
without other load. Where samples of threads alone show the places: more requests that are let through at
once at the begin of a load than there are places, and one rate afterwards, as of a rate limiter.

**Thresholds.** 90 % in use: a reading sometimes falls between a return and the next use. 0.5 waiting: more
wait in front of a resource that is 90 % utilised. 1.2 times the time without other load: up to there it may
be noise, as both are means of a few seconds; from twice that time on, the pool is ruled out. A pool with one
connection belongs here too, because more connections would help.

**Do.** Set W = wanted throughput x time a connection is held, up to what the database serves well; or hold
each connection for less time.

**Confirm.** Double the connections: throughput doubles, until the next limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import limits, long_holds, pools, waits
from loadlens.estimate.interval import Interval
from loadlens.model.facts import Facts
from loadlens.model.finding import Grade, Setting
from loadlens.present import numbers, words

ID = "db.pool"
TITLE = "too few connections in a pool"
EXPLAINS: tuple[str, ...] = (
    "saturation.plateau",
    "part.full",
    "calls.at-once",
    "calls.wait-before",
    "downstream.slow",
)


def observe(facts: Facts) -> Sequence[limits.Taken] | Lacking | Nothing:
    """Return the pools on all plateaus, the one with the longest line first."""
    seen = pools.on_plateaus(facts)
    if not isinstance(seen, list):
        return seen
    own = [pool for pool in seen if not pool.called]
    if seen and not own:
        return Nothing(f"the full places are those of {seen[0].called}")
    return own or Lacking(
        "no gauge of a pool: how many hold a connection and how many wait would decide (--metrics)"
    )


def claim(facts: Facts, pool: limits.Taken) -> Claim:
    """Hold the pool against its size, its line, and what else would look the same."""
    full, places, size, hold = pool.full, pool.places, pool.size, pool.hold
    signals, rivals, in_front = pools.evidence(facts, pool)

    def text(grade: Grade) -> Words:
        count, long = pool.count, long_holds.holders(full, hold)
        waiting = limits.point(places.waiting)
        noun = {"pool": "connection", "threads": "thread"}.get(places.kind, "place")
        line = "" if waiting is None else f"; {waiting:.3g} requests wait for one"
        explanation = limits.explanation(full, places)
        advice = f"More {noun}s, as many as what is behind serves well; or hold each for less."
        if isinstance(hold, Interval) and isinstance(full.rate, Interval) and size is not None:
            twice = 2 * full.rate.point
            advice = (
                f"{round(twice * hold.point)} {noun}s carry {numbers.with_unit(twice, '1/s')} at "
                f"{numbers.with_unit(hold.point, 's')} each, if what is behind serves them; or hold it for "
                "less."
            )
        if pools.at_rest(places, ""):
            advice = f"Give the connection back before that work. {advice}"
        if long is not None:
            line = f"; {long.of_places}"
            explanation += f" {long.text(count, noun, full)}."
            advice += f" {long.apart(count)}."
        unknown: tuple[str, ...] = ()
        if in_front.ruled_out is None:
            unknown = (f"whether the pool has no more, or something in front of it lets in just {count:.3g}",)
        is_pool = in_front.ruled_out is True
        apart, others = limits.with_room_beside(full, places) if is_pool else ("", 0)
        if others:
            line = f"; {words.plural(others, 'other')} {'has' if others == 1 else 'have'} room"
            advice = f"Spread what goes there over the others. {advice}"
        return Words(
            statement=_statement(full, count, grade, noun, of=apart, is_pool=is_pool) + line,
            explanation=explanation,
            advice=advice,
            confirm=f"twice the {noun}s: twice the throughput, until the next limit",
            impact=full.waiting_share,
            unknown=unknown,
            setting=Setting.places(count),
        )

    return on_curve(full.curve, signals, rivals, text)


def _statement(full: waits.Full, count: float, grade: Grade, noun: str, *, of: str, is_pool: bool) -> str:
    """Name the pool; where something in front of it may let in as many, only say what is at work."""
    is_one, is_suspected = round(count) == 1, grade is Grade.SUSPECTED
    if is_pool:
        many = f"{count:.3g} {noun}" + ("" if is_one else "s")
        verb = "may carry" if is_suspected else "carries" if is_one else "carry"
        return f"The pool{f' of {of}' if of else ''} is full: {many} {verb} {full.most}"
    all_of_them = "The one database connection" if is_one else f"All {count:.3g} database connections"
    verb = "may be" if is_suspected else "is" if is_one else "are"
    return f"{all_of_them} {verb} at work: {full.most}"


assess = assessing(ID, TITLE, observe, claim)
