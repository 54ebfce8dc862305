"""Only so many calls to another program go at once.

**Means.** Something in the service lets only so many calls to another program go at a time: a lock that is
kept during the call, a pool of connections or of threads, a semaphore. Requests wait for their turn.
Throughput is that number over the time of a call, however many users there are.

**Needs.** A plateau. CPU to spare: computing and waiting for a core take at most 70 % of the cores, and no
thread is full. Calls to another program of this machine, of which the kernel never sees more under way than
at the level before, and 85 % of that number on average, and a cheap probe that does not wait. Requests that
waited in the other program would be calls under way. A connection may carry many at once, though; that stays
open where no more connections are in use, and the finding is at most probable in any case: what lets so many
go is not seen. The waiting requests are X (R - R1).

**Ruled out by.** Places of the service itself that fit: a lock, a pool or threads that are all taken are then
the cause. Full threads that do not wait for the calls. A machine, generator or transfer that is the limit.
Refusals. A slow service behind: a call is then under way for longer than a whole request takes without other
load. Answers that come one at a time, while several calls are under way.

**Thresholds.** 85 %: between two calls a place is free while the next one is made, and connects. Calls that
nothing holds to a number, as many on average, are now and then more: of 1.7 at random more than two are under
way at one look in four.

**Do.** Find what lets so many go: allow more, as many as the other program serves well, or keep it for less.

**Confirm.** Twice as many at a time: throughput doubles, until the next limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import gauge_courses, limits, long_holds, waits
from loadlens.estimate.interval import Interval
from loadlens.model.facts import Facts
from loadlens.model.finding import Grade, Setting
from loadlens.present import numbers

ID = "calls.at-once"
TITLE = "only so many calls to another program go at once"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "calls.wait-before", "downstream.slow")


def observe(facts: Facts) -> Sequence[limits.Taken] | Lacking | Nothing:
    """Return the calls on all plateaus, those with the longest line first."""
    plateaus = waits.plateaus(facts)
    if not isinstance(plateaus, tuple):
        return waits.without_plateau(plateaus)
    seen = [limits.taken(full, calls) for full in plateaus for calls in gauge_courses.calls_at_once(full)]
    return limits.by_line(seen) if seen else Nothing("no calls of which always as many are under way")


def claim(facts: Facts, few: limits.Taken) -> Claim:
    """Hold the calls against their number, their time, and what else would look the same."""
    full, calls, hold = few.full, few.places, few.hold
    signals = [
        waits.cpu_signal(facts, full.curve, full.top),
        limits.taken_signal(full, calls, few.size, "pool.size"),
        limits.waiting_signal(calls, "pool.waiting"),
        limits.hold_signal("pool.hold", hold, full),
    ]
    rivals = [
        *waits.rivals(facts, full),
        limits.threads_rival(full, calls),
        limits.within_rival(full, calls),
        limits.slow_behind_rival(hold, full),
        limits.one_connection_rival(full, calls),
        grading.rival(
            "another limit of as many", "the kernel sees the calls, and not what lets so many go", None
        ),
    ]

    def words(grade: Grade) -> Words:
        is_one, long = round(few.count) == 1, long_holds.holders(full, hold)
        count = "one" if is_one else f"{few.count:.3g}"
        explanation = limits.explanation(full, calls)
        advice = (
            f"Find what lets only {count} of these calls go at a time, "
            + (
                "a lock that is kept during the call or the only connection"
                if is_one
                else "a pool or threads"
            )
            + ": keep it for less, or allow more."
        )
        if isinstance(hold, Interval) and isinstance(full.rate, Interval):
            twice, each = 2 * full.rate.point, numbers.with_unit(hold.point, "s")
            many, rate = round(twice * hold.point), numbers.with_unit(twice, "1/s")
            advice += f" {many} at a time are {rate} at {each} each, if what is behind serves them."
        if not limits.are_in_front(full, calls):
            advice += " If one connection carries many calls at once, look at the other program."
        if long is not None:
            explanation += f" {long.text(few.count, 'place', full)}."
            advice += f" {long.apart(few.count)}."
        return Words(
            statement=limits.calls_at_a_time(full, calls, count, grade),
            explanation=explanation,
            advice=advice,
            confirm="twice as many at a time: twice the throughput, until the next limit",
            impact=full.waiting_share,
            unknown=("whether it is a lock, a pool, threads, or another limit of what may be at work",),
            setting=Setting.places(few.count),
        )

    return on_curve(full.curve, signals, rivals, words)


assess = assessing(ID, TITLE, observe, claim)
