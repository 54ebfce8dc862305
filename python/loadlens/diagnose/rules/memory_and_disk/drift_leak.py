"""The service's memory grows with every request.

**Means.** Every request leaves memory behind that is never given back. The service grows until it meets its
bound, and is then killed, or pages.

**Needs.** Resident memory of all processes of a service, read 30 times or more while it was measured, over
the trials of one life of the processes. What came within measured parts is put end to end, so that start-up,
new users and idle time between do not count. It grew with the requests: even the lower end of its slope is
above 64 bytes a request and 1 % of the memory a minute; by 10 % and 1 MiB in all; in the last third of the
requests by half as much a request as before, at least; and trials of four times the requests grew in
proportion to these, not to time.

**Ruled out by.** Growth that levels off: a cache that has filled, a heap that found its size. A fall of more
than half of what grew: a collector gives it back. Growth in proportion to time alone. A look shorter than 40
s, memory that has not doubled, or one that grows by less than 0.8 of before in the last third is a suspicion
at most: a collector may not have come by, a cache may be filling. That the level will not be bounded one day
is never excluded, so the finding is probable at best.

**Thresholds.** 1 % a minute: less does not matter within hours. 64 bytes: pages come and go by more. Half as
much in the last third: what levels off exponentially has long fallen below; what grows by the same for ever
stays near 1. Doubled: collectors that let a heap grow before they look through it let it grow by about as
much as it holds.

**Do.** A heap profile after the same number of requests twice: what is there a request more each time. Until
then, restart before the bound is met.

**Confirm.** A restart brings the first level back. Twice the requests: twice the growth; idle for as long:
none.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.estimate import drift
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Absent, Counter, Estimate, Finding, Grade, NotAssessed
from loadlens.model.shapes import MemoryGrowth
from loadlens.present import numbers

ID = "drift.leak"
TITLE = "memory grows with every request"
EXPLAINS: tuple[str, ...] = ()

LEAST_BYTES = 64.0
LEAST_GROWN_BYTES = 2.0**20
LEAST_GROWN = 0.10
STILL_GROWING, AS_BEFORE = 0.5, 0.8
DOUBLED = 1.0
FALLEN = 0.5
LEAST_LOOK_S = 40.0
_WITH = {"requests": "requests", "clock": "length"}


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the memory of every service."""
    looks = [(curve, memory) for curve in facts.curves for memory in curve.memory]
    if not looks:
        return NotAssessed(ID, TITLE, "needs the service's processes: their memory was not read")
    known = [(curve, memory) for curve, memory in looks if isinstance(memory.per_request, Estimate)]
    if not known:
        most = max(memory.readings for _, memory in looks)
        return NotAssessed(ID, TITLE, f"{most} readings of memory under load, needs {drift.FEWEST_POINTS}")
    known.sort(key=lambda look: -look[1].grown_bytes)
    found = grading.first(_finding(facts, curve, memory) for curve, memory in known)
    return found or Absent(ID, TITLE, _silence(known[0][1]))


def _finding(facts: Facts, curve: Curve, memory: MemoryGrowth) -> Finding | None:
    signals, rivals = _signals(memory), _rivals(memory)
    is_long = memory.seconds >= LEAST_LOOK_S and memory.grown_bytes >= DOUBLED * memory.begin_bytes
    cap = Grade.PROBABLE if is_long else Grade.SUSPECTED
    grade = grading.grade_of(signals, rivals, cap=cap)
    each = memory.per_request
    if grade is None or not isinstance(each, Estimate) or _may_be_little(each):
        return None
    grown, a_request = numbers.with_unit(memory.grown_bytes, "bytes"), numbers.with_unit(each.point, "bytes")
    labels = tuple(c.label for c in facts.curves if any(m.label == memory.label for m in c.memory))
    return Finding(
        rule=ID,
        grade=min(grade, cap),
        impact=min(1.0, memory.grown_bytes / (memory.begin_bytes + memory.grown_bytes)),
        scope=f"{memory.label} · {curve.label}",
        statement=grading.statement(
            f"Memory grows by {a_request} a request: {grown} over {memory.requests:,} requests"
        ),
        explanation=f"It grew while the number of users stayed the same, over {memory.trials} trials, and "
        "does so to the last.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"Compare two heap profiles 10,000 requests apart: what is there "
        f"{numbers.with_unit(1e4 * each.point, 'bytes')} more is kept. Until it is mended, restart in time.",
        confirm="a restart brings the first level back; twice the requests leave twice as much behind",
        curves=labels or (curve.label,),
    )


def _may_be_little(each: Estimate) -> bool:
    """Whether the lower end is known and does not matter; an open one leaves it a suspicion."""
    return each.low is not None and each.low < LEAST_BYTES


def _signals(memory: MemoryGrowth) -> list[grading.Signal]:
    grown = numbers.with_unit(memory.grown_bytes, "bytes")
    share = memory.grown_bytes / memory.begin_bytes if memory.begin_bytes else 0.0
    pace = memory.per_minute
    return [
        grading.at_least(
            "memory.per-request",
            memory.per_request,
            LEAST_BYTES,
            text=f"{numbers.shown(memory.per_request)} more with each of {memory.requests:,} requests "
            f"(limit {LEAST_BYTES:g} B)",
            chip=f"{numbers.short(memory.per_request)} a request",
        ),
        grading.stated(
            "memory.pace",
            None if pace is None else pace > drift.LEAK_PER_MINUTE,
            text="how fast is not known"
            if pace is None
            else f"at least {numbers.percent(pace)} of the memory a minute "
            f"(limit {numbers.percent(drift.LEAK_PER_MINUTE)})",
            chip="" if pace is None else f"{numbers.percent(pace)} a minute",
        ),
        grading.stated(
            "memory.grown",
            memory.grown_bytes >= LEAST_GROWN_BYTES and share >= LEAST_GROWN,
            text=f"{grown} in {memory.seconds:.0f} s, {numbers.percent(share)} of what it had "
            f"(limit {numbers.percent(LEAST_GROWN)})",
            chip=f"{grown} in {memory.seconds:.0f} s",
        ),
        grading.stated(
            "memory.late",
            _is_lasting(memory.late),
            text="whether it levels off is not known"
            if memory.late is None
            else f"in the last third of the requests {memory.late:.2g} times as much a request as before "
            f"(limit {STILL_GROWING:g})",
            chip="" if memory.late is None else f"late growth {memory.late:.2g} of before",
        ),
        grading.stated(
            "memory.follows",
            None if memory.follows == "unknown" else memory.follows == "requests",
            text="whether it follows the requests or the clock is not known: trials had about as many each"
            if memory.follows == "unknown"
            else f"each trial's growth is in proportion to its {_WITH[memory.follows]}",
            chip="in step with requests" if memory.follows == "requests" else "",
        ),
    ]


def _is_lasting(late: float | None) -> bool | None:
    """Whether it grows to the last as it did before; none where it may level off."""
    if late is None or STILL_GROWING <= late < AS_BEFORE:
        return None
    return late >= AS_BEFORE


def _rivals(memory: MemoryGrowth) -> list[Counter]:
    fallen = memory.fallen_bytes / memory.grown_bytes if memory.grown_bytes > 0 else 0.0
    return [
        grading.rival(
            "collector",
            f"memory fell by {numbers.with_unit(memory.fallen_bytes, 'bytes')} at most",
            fallen < FALLEN,
        ),
        grading.rival("more users", "only what grew at one level of load counts", True),
        grading.rival("cache with a bound", f"none was met in {memory.seconds:.0f} s", None),
    ]


def _silence(memory: MemoryGrowth) -> str:
    grown = numbers.with_unit(max(0.0, memory.grown_bytes), "bytes")
    text = f"memory of {memory.label} grew by {grown} over {memory.requests:,} requests"
    if memory.grown_bytes < LEAST_GROWN_BYTES or memory.late is None or memory.begin_bytes <= 0:
        return text
    if memory.late < STILL_GROWING:
        return f"{text}, and in the last third of them by {memory.late:.2g} of before: it levels off"
    if memory.fallen_bytes >= FALLEN * memory.grown_bytes:
        return f"{text} and fell by {numbers.with_unit(memory.fallen_bytes, 'bytes')}: it is given back"
    if memory.follows == "clock":
        return f"{text}, in proportion to time and not to these"
    return f"{text}, {numbers.percent(memory.grown_bytes / memory.begin_bytes)} of what it had"
