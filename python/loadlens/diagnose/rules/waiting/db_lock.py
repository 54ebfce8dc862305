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

from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.observe import places as held
from loadlens.diagnose.observe import waits
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.model.facts import Facts, Places, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, Grade, NotAssessed
from loadlens.present import numbers

ID = "db.lock"
TITLE = "one lock serialises requests"
EXPLAINS: tuple[str, ...] = ("saturation.plateau",)

HARDLY = 0.10  # of the time


@dataclass(frozen=True, slots=True)
class Look:
    """A lock on a plateau."""

    found: waits.Full
    places: Places
    hold: Interval | Insufficient


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the lock with the longest line on any plateau."""
    known = waits.plateaus(facts)
    if not isinstance(known, tuple):
        return waits.without(ID, TITLE, known)
    looks = [Look(one, lock, held.hold(one, lock)) for one in known for lock in held.of_kind(one, "lock")]
    if not looks:
        return NotAssessed(ID, TITLE, "no gauge of a lock: its holders and waiters would decide (--metrics)")
    looks = held.by_line(looks)
    found = grading.first(_finding(facts, look) for look in looks)
    return found or Absent(ID, TITLE, _silence(facts, looks[0]))


def _finding(facts: Facts, look: Look) -> Finding | None:
    found, lock = look.found, look.places
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
        explanation=held.explanation(found, lock),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=_advice(look),
        confirm="the same load without what takes the lock: throughput grows with users again",
        unknown=()
        if _disk_rival(found.top).ruled_out
        else (f"whether who holds {lock.held.name} waits for a disk meanwhile",),
        curves=(found.curve.label,),
    )


def _signals(facts: Facts, look: Look) -> list[grading.Signal]:
    found, lock = look.found, look.places
    return [
        waits.cpu_signal(facts, found.curve, found.top),
        _holders(lock),
        held.waiting_signal(lock, "lock.waiters"),
        *held.line_signals(found, lock, "lock.line"),
        held.hold_signal("lock.hold", look.hold, found),
    ]


def _holders(lock: Places) -> grading.Signal:
    value = held.point(lock.held)
    if value is None:
        return grading.stated("lock.holders", None, text=f"{lock.held.name} was not read")
    passed: bool | None = held.LEAST_HELD <= value <= held.ONE_HOLDER
    if lock.held_is_at_most and value > held.ONE_HOLDER:  # others are counted among them
        passed = None
    text = f"{held.told(lock.held)} on average (limits {held.LEAST_HELD} and {held.ONE_HOLDER})"
    signal = grading.stated("lock.holders", passed, text=text, chip=f"{value:.2f} hold it")
    mean = lock.held.mean
    ends = (mean.low, mean.high) if isinstance(mean, Estimate) else (None, None)
    is_clear = all(end is not None and held.LEAST_HELD <= end <= held.ONE_HOLDER for end in ends)
    return replace(signal, is_clear=signal.is_clear and is_clear)


def _rivals(facts: Facts, look: Look) -> list[Counter]:
    found, lock = look.found, look.places
    return [
        *waits.rivals(facts, found),
        held.threads_rival(found, lock),
        held.within_rival(found, lock),
        _disk_rival(found.top),
    ]


def _disk_rival(step: Step) -> Counter:
    """Storage as what the holder waits for: tasks that wait for it, else how busy a device is."""
    storage = step.storage
    seen = (storage.waiting, storage.device_busy) if storage is not None else ()
    known = next((figure for figure in seen if isinstance(figure, Estimate)), None)
    if storage is None or known is None:
        return grading.rival("slow disk", "how busy disks were is not read", None)
    what = "some task waits for storage" if known is storage.waiting else "a device is busy"
    text = f"{what} {numbers.percent(known.point)} of the time (limit {numbers.percent(HARDLY)})"
    return grading.rival("slow disk", text, True if known.point < HARDLY else None)


def _statement(look: Look, grade: Grade) -> str:
    rate = look.found.most
    verb = "may let" if grade is Grade.SUSPECTED else "lets"
    waiting = held.point(look.places.waiting)
    line = "" if waiting is None else f"; {waiting:.3g} wait for it"
    if isinstance(look.hold, Insufficient):
        return f"One lock {verb} {rate} through{line}"
    return f"One lock, held {numbers.with_unit(look.hold.point, 's')} each, {verb} {rate} through{line}"


def _advice(look: Look) -> str:
    how = "Hold the lock for less: shorter transactions, several writes in one, or a store that locks rows"
    rate = look.found.rate
    if isinstance(look.hold, Insufficient) or isinstance(rate, Insufficient):
        return f"{how}."
    half = numbers.with_unit(look.hold.point / 2, "s")
    return f"{how}. Held for {half} it lets {numbers.with_unit(2 * rate.point, '1/s')} through."


def _silence(facts: Facts, look: Look) -> str:
    return grading.silence(look.found.curve.label, _signals(facts, look), _rivals(facts, look))
