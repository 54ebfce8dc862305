"""One lock lets one request through at a time.

**Means.** Every request needs the same lock, for example the single writer of an embedded database or the
lock of a hot row. One request holds it and the others wait. Throughput is at most 1 / (time the lock is held
per request), however many users there are.

**Needs.** A plateau. CPU to spare: computing and waiting for a core take at most 70 % of the cores, and no
thread is full. Gauges of a lock at the highest load that show a mean of 0.85 to 1.5 holders and of more than
0.5 waiting requests; a database that reports its activity (sessions that wait for a lock, sessions within a
transaction) serves as well. So do samples of threads that wait for a lock, in a call or asleep until they try
again, while one other at a time works past it; there a mean of 0.75 holders is enough. Titles of the
processes of a PostgreSQL server serve likewise: they name the command that waits, and show whether the holder
is idle in its transaction meanwhile. Half or more of all waiting requests, X (R - R1), wait for this lock, or
they fill the threads or the pool in front of it; otherwise the finding is suspected. Where no name of a gauge
says lock, two gauges that behave like one full place and like its queue serve as well, if a cheap probe does
not wait (`downstream.serialised` says which).

**Ruled out by.** A pool (two or more holders). Full threads that do not wait for the lock. A machine,
generator or transfer that is the limit. Refusals. Holders of the lock that wait in a further queue behind it.
A disk that the holder waits for would be the root cause: it is excluded where the processes wait for storage
less than 10 % of the time; otherwise it stays open and the finding is at most probable.

**Thresholds.** 0.85 to 1.5 holders: a lock that is free more often is not the limit, and two holders are a
pool. 0.75 in samples: they show 0.85 no more exactly than that. 0.5 waiting: more wait in front of a resource
that is 90 % utilised. 70 %: up to there a CPU adds little waiting of its own. 10 % of the time: without the
disk, the lock would be held for at most that much less.

**Do.** Shorten transactions, combine several writes into one, use one writer with a queue, or use an engine
that locks rows or does not block readers (WAL).

**Confirm.** A mix without writes scales; the mix with writes does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import gauge_courses, limits, pools, waits
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure.thresholds import ONE_HOLDER
from loadlens.model.facts import ConcurrencyLimit, Facts, Step
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.present import numbers

ID = "db.lock"
TITLE = "one lock serialises requests"
EXPLAINS: tuple[str, ...] = (
    "saturation.plateau",
    "part.full",
    "calls.at-once",
    "calls.wait-before",
    "downstream.slow",
)

HARDLY = 0.10  # of the time


@dataclass(frozen=True, slots=True)
class FullLock:
    """A lock on a plateau."""

    full: waits.Full
    places: ConcurrencyLimit
    hold: Interval | Insufficient


def observe(facts: Facts) -> Sequence[FullLock] | Lacking | Nothing:
    """Return the locks on all plateaus, the one with the longest line first."""
    plateaus = waits.plateaus(facts)
    if not isinstance(plateaus, tuple):
        return waits.without_plateau(plateaus)
    locks = [
        FullLock(full, lock, limits.hold(full, lock))
        for full in plateaus
        for lock in (*limits.of_kind(full, "lock"), *gauge_courses.of_kind(full, "lock"))
    ]
    if not locks:
        return Lacking("no gauge of a lock: its holders and waiters would decide (--metrics)")
    return limits.by_line(locks)


def claim(facts: Facts, lock: FullLock) -> Claim:
    """Hold the lock against its holders, its line, and what else would look the same."""
    full, places = lock.full, lock.places
    disk = _disk_rival(full.top)
    signals = [
        waits.cpu_signal(facts, full.curve, full.top),
        _holders(places),
        limits.waiting_signal(places, "lock.waiters"),
        *limits.line_signals(full, places, "lock.line"),
        limits.hold_signal("lock.hold", lock.hold, full),
        *pools.at_rest(places, "lock.idle"),
    ]
    rivals = [
        *waits.rivals(facts, full),
        limits.threads_rival(full, places),
        limits.within_rival(full, places),
        disk,
    ]

    def words(grade: Grade) -> Words:
        verb = "may let" if grade is Grade.SUSPECTED else "lets"
        waiting = limits.point(places.waiting)
        line = "" if waiting is None else f"; {waiting:.3g} wait for it"
        if line and places.command:
            line += f" in {places.command}"
        held, hold = "", lock.hold
        advice = (
            "Hold the lock for less: shorter transactions, several writes in one, or a store that locks rows."
        )
        if pools.at_rest(places, ""):
            advice = f"Commit before that work, or begin the transaction after it. {advice}"
        unknown = f"whether who holds {places.held.name} waits for a disk meanwhile"
        if isinstance(hold, Interval):
            each = "each" if len(full.top.classes) <= 1 else "per request"  # of a mix not all may take it
            held = f", held {numbers.with_unit(hold.point, 's')} {each},"
            if isinstance(full.rate, Interval):
                half = numbers.with_unit(hold.point / 2, "s")
                twice = numbers.with_unit(2 * full.rate.point, "1/s")
                advice += f" Held for {half} it lets {twice} through."
        return Words(
            statement=f"One lock{held} {verb} {full.most} through{line}",
            explanation=limits.explanation(full, places),
            advice=advice,
            confirm="the same load without what takes the lock: throughput grows with users again",
            impact=full.waiting_share,
            unknown=() if disk.ruled_out else (unknown,),
        )

    return on_curve(full.curve, signals, rivals, words)


def _holders(lock: ConcurrencyLimit) -> grading.Signal:
    """One holder nearly all the time: neither an idle lock nor a pool."""
    value = limits.point(lock.held)
    if value is None:
        return grading.stated("lock.holders", None, text=f"{lock.held.name} was not read")
    least = limits.least_held(lock)
    passed: bool | None = least <= value <= ONE_HOLDER
    if lock.held_is_at_most and value > ONE_HOLDER:  # others are counted among them
        passed = None
    text = f"{limits.reading(lock.held)} on average (limits {least} and {ONE_HOLDER})"
    signal = grading.stated("lock.holders", passed, text=text, chip=f"{value:.2f} hold it")
    mean = lock.held.mean
    ends = (mean.low, mean.high) if isinstance(mean, Estimate) else (None, None)
    is_clear = all(end is not None and least <= end <= ONE_HOLDER for end in ends)
    return replace(signal, is_clear=signal.is_clear and is_clear)


def _disk_rival(step: Step) -> Counter:
    """Storage as what the holder waits for: tasks that wait for it, else how busy a device is."""
    storage = step.storage
    seen = (storage.waiting, storage.device_busy) if storage is not None else ()
    busy = next((figure for figure in seen if isinstance(figure, Estimate)), None)
    if storage is None or busy is None:
        return grading.rival("slow disk", "how busy disks were is not read", None)
    what = "some task waits for storage" if busy is storage.waiting else "a device is busy"
    text = f"{what} {numbers.percent(busy.point)} of the time (limit {numbers.percent(HARDLY)})"
    return grading.rival("slow disk", text, True if busy.point < HARDLY else None)


assess = assessing(ID, TITLE, observe, claim)
