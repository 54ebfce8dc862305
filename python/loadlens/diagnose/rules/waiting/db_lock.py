"""One lock lets one request through at a time.

**Means.** Requests hold a lock, as the one writer of an embedded database or a hot row demands, and all
others wait for it. Throughput is one over the time that it is held, however many ask.

**Needs.** A plateau; CPU to spare (computing and waiting for a core, at most 70 % of the cores, no thread
full); gauges of a lock at the highest load: it is held nearly all the time by one (0.85 to 1.5 on average)
and more than 0.5 wait on average. A database that tells its activity serves as well: who waits for a lock,
and who is within a transaction. Half or more of those who wait, X (R - R1), do so here, or they
fill the threads or the pool in front; else it is suspected.

**Ruled out by.** A pool (two or more hold it). Threads that are full without waiting for it. A machine, a
generator or a transfer that is the limit; refusals. Holders that wait in a further line behind it. A disk
that the holder waits for would be the root: ruled out where hardly anything waits for storage (less than
10 % of the time); else it stays open and the finding is at most probable.

**Thresholds.** 0.85 to 1.5 held: a lock that is free more often does not limit, and two holders are a pool.
0.5 waiting: a line before a resource at nine tenths of its capacity holds more. 70 %: at that a CPU adds
little waiting of its own. 10 % of the time: without its disk the lock would be held for so much less at most.

**Do.** Shorter transactions, several writes in one, one writer with a queue, an engine that locks rows or
does not lock readers (WAL).

**Confirm.** A mix without writes scales where the mix with them does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import places as limits
from loadlens.diagnose.observe import waits
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure.thresholds import ONE_HOLDER, SATURATED
from loadlens.model.facts import Facts, Places, Step
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.present import numbers

ID = "db.lock"
TITLE = "one lock serialises requests"
EXPLAINS: tuple[str, ...] = ("saturation.plateau",)

HARDLY = 0.10  # of the time


@dataclass(frozen=True, slots=True)
class FullLock:
    """A lock on a plateau."""

    full: waits.Full
    places: Places
    hold: Interval | Insufficient


def observe(facts: Facts) -> Sequence[FullLock] | Lacking | Nothing:
    """Return the locks on all plateaus, the one with the longest line first."""
    plateaus = waits.plateaus(facts)
    if not isinstance(plateaus, tuple):
        return waits.without_plateau(plateaus)
    locks = [
        FullLock(full, lock, limits.hold(full, lock))
        for full in plateaus
        for lock in limits.of_kind(full, "lock")
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
        held, hold = "", lock.hold
        advice = (
            "Hold the lock for less: shorter transactions, several writes in one, or a store that locks rows."
        )
        if isinstance(hold, Interval):
            held = f", held {numbers.with_unit(hold.point, 's')} each,"
            if isinstance(full.rate, Interval):
                half = numbers.with_unit(hold.point / 2, "s")
                twice = numbers.with_unit(2 * full.rate.point, "1/s")
                advice += f" Held for {half} it lets {twice} through."
        unknown = f"whether who holds {places.held.name} waits for a disk meanwhile"
        return Words(
            statement=f"One lock{held} {verb} {full.most} through{line}",
            explanation=limits.explanation(full, places),
            advice=advice,
            confirm="the same load without what takes the lock: throughput grows with users again",
            impact=full.waiting_share,
            unknown=() if disk.ruled_out else (unknown,),
        )

    return on_curve(full.curve, signals, rivals, words)


def _holders(lock: Places) -> grading.Signal:
    """One holder nearly all the time: neither an idle lock nor a pool."""
    value = limits.point(lock.held)
    if value is None:
        return grading.stated("lock.holders", None, text=f"{lock.held.name} was not read")
    passed: bool | None = SATURATED <= value <= ONE_HOLDER
    if lock.held_is_at_most and value > ONE_HOLDER:  # others are counted among them
        passed = None
    text = f"{limits.told(lock.held)} on average (limits {SATURATED} and {ONE_HOLDER})"
    signal = grading.stated("lock.holders", passed, text=text, chip=f"{value:.2f} hold it")
    mean = lock.held.mean
    ends = (mean.low, mean.high) if isinstance(mean, Estimate) else (None, None)
    is_clear = all(end is not None and SATURATED <= end <= ONE_HOLDER for end in ends)
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
