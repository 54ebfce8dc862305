"""The service's memory grows with every request, or with every second.

**Means.** Every request leaves memory behind that is never released, or something that runs by the clock
does. The service grows until it reaches its bound, and is then killed, or pages.

**Needs.** Resident memory of all processes of a service, read 30 times or more during measured parts, over
the trials of one life of the processes. Readings within measured parts are joined end to end, so that
start-up, new users and idle time between them do not count. The lower end of the slope's interval is above 1
% of the memory per minute, and 64 bytes per request; growth is at least 10 % and 1 MiB; in the last third it
is at least half as fast as before. Trials with four times the requests say which it follows: these, or the
clock, where all grew as fast whatever they answered; then the slope is one over time. Where no trials say so
the finding is suspected, unless memory has quadrupled: then it grows too fast to wait for the answer.

The forecast is for the highest throughput that was measured without failures: the growth per request times
this rate, and what is left of the nearest limit (the control group, the heap of a JVM or of Node.js, the free
memory of the machine) over that. It is undecided where the interval of the growth includes zero, and where no
limit is known.

**Ruled out by.** Growth that levels off: a cache that has filled, a heap that reached its size. A fall of
more than half of the growth: a garbage collector releases it. A heap whose peak grows while collections leave
less than half as much more: it grows towards its size. The finding is at most suspected if memory has not
doubled within 40 s or more, or quadrupled within 20 s, or if growth in the last third is below 0.8 of that
before, or above twice that: the collector may not have run, a cache may be filling, or memory grows with the
users, of which there are more in later trials. That the level will be bounded one day is
never excluded, so the finding is at most probable.

**Thresholds.** 1 % per minute: less does not matter within hours. 64 bytes: pages come and go by more. Half
as much in the last third: exponential levelling off is far below that by then; constant growth stays near 1.
Doubled: collectors that let a heap grow before they run let it grow by about what it holds; quadrupled: twice
over. A third of the growth as the peak of the heap: from the first third of the readings to the last a steady
growth makes two thirds of its way, so less than that is not the heap's. 0.1 % of the requests: a level at
which more fail is not borne.

**Do.** Take a heap profile twice, some thousand requests apart: look for what grows with each request. Until
then, restart before the bound is reached.

**Confirm.** A restart brings back the initial level. Twice the requests: twice the growth; idle for as long:
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing
from loadlens.estimate import drift
from loadlens.measure import figures
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.model.shapes import MemoryGrowth
from loadlens.present import numbers

ID = "drift.leak"
TITLE = "memory grows and is not given back"
EXPLAINS: tuple[str, ...] = ()

LEAST_BYTES = 64.0
LEAST_GROWN_BYTES = 2.0**20
LEAST_GROWN = 0.10
STILL_GROWING, AS_BEFORE, FASTER = 0.5, 0.8, 2.0
FALLEN = 0.5
CLEAR = ((40.0, 1.0), (20.0, 3.0))  # seconds, and growth over what it had
LARGE = 3.0  # of growth over what it had: whatever it follows
OF_THE_HEAP, LEFT_OVER = 1 / 3, 0.5  # of the growth; of the growth of the heap's peak
BORNE = 0.001  # share of the requests that fail


def observe(facts: Facts) -> Sequence[tuple[Curve, MemoryGrowth]] | Lacking:
    """Return the growth of all services, the largest first."""
    growths = [(curve, memory) for curve in facts.curves for memory in curve.memory]
    if not growths:
        return Lacking("needs the service's processes: their memory was not read")
    measured = [growth for growth in growths if isinstance(growth[1].slope, Estimate)]
    if not measured:
        most = max(memory.readings for _, memory in growths)
        return Lacking(f"{most} readings of memory under load, needs {drift.FEWEST_POINTS}")
    return sorted(measured, key=lambda growth: -growth[1].grown_bytes)


def claim(facts: Facts, growth: tuple[Curve, MemoryGrowth]) -> Claim | Nothing:
    """Check that memory grows fast enough, to the last, and with the requests or the clock."""
    (curve, memory), each = growth, growth[1].slope
    by_clock = memory.follows == "clock"
    least = LEAST_GROWN_BYTES / memory.seconds if by_clock else LEAST_BYTES
    # The lower end is known and does not matter; an open one leaves a suspicion.
    if not isinstance(each, Estimate) or (each.low is not None and each.low < least):
        return Nothing("memory grows too little")
    grown = numbers.with_unit(memory.grown_bytes, "bytes")
    share = memory.grown_bytes / memory.begin_bytes if memory.begin_bytes else 0.0
    signals = [
        grading.at_least(
            "memory.per-second" if by_clock else "memory.per-request",
            each,
            least,
            text=f"{numbers.shown(each)} for {memory.seconds:.0f} s"
            if by_clock
            else f"{numbers.shown(each)} more with each of {memory.requests:,} requests (limit {least:g} B)",
            chip=numbers.short(each) if by_clock else f"{numbers.short(each)} per request",
        ),
        _pace(memory.per_minute),
        grading.stated(
            "memory.grown",
            memory.grown_bytes >= LEAST_GROWN_BYTES and share >= LEAST_GROWN,
            text=f"{grown} in {memory.seconds:.0f} s, {numbers.percent(share)} of what it had "
            f"(limit {numbers.percent(LEAST_GROWN)})",
            chip=f"{grown} in {memory.seconds:.0f} s",
        ),
        _late(memory.late, "second" if by_clock else "request"),
    ]
    is_open = memory.follows == "unknown" and share >= LARGE
    if not is_open:
        signals.append(_follows(memory))
    fallen = numbers.with_unit(memory.fallen_bytes, "bytes")
    is_kept = memory.grown_bytes <= 0 or memory.fallen_bytes / memory.grown_bytes < FALLEN
    rivals = [
        grading.rival("collector", f"memory fell by {fallen} at most", is_kept),
        *_heap(memory),
        _users_rival(memory),
        grading.rival("cache with a bound", f"none was met in {memory.seconds:.0f} s", None),
    ]

    def words(grade: Grade) -> Words:
        pace = numbers.with_unit(each.point, each.unit)
        statement = f"Memory grows by {pace} per request: {grown} over {memory.requests:,} requests"
        apart, more = "10,000 requests", numbers.with_unit(1e4 * each.point, "bytes")
        confirm = "a restart brings the first level back; twice the requests leave twice as much behind"
        if is_open:
            statement = f"Memory grows by {grown} in {memory.seconds:.0f} s of load: {pace} per request"
        if by_clock:
            statement = f"Memory grows by {pace}, whatever the load: {grown} in {memory.seconds:.0f} s"
            apart, more = "a minute", numbers.with_unit(60 * each.point, "bytes")
            confirm = "a restart brings the first level back; without load it grows as fast"
        return Words(
            statement=statement,
            explanation="It grew while the number of users stayed the same, over "
            f"{memory.trials} trials, and does so to the last. {forecast(curve, memory)}",
            advice=f"Compare two heap profiles {apart} apart: what is there {more} more is kept. Until it is "
            "fixed, restart in time.",
            confirm=confirm,
            impact=memory.grown_bytes / (memory.begin_bytes + memory.grown_bytes),
            unknown=("whether it grows with the requests or with time",) if is_open else (),
            scope=f"{memory.label} · {curve.label}",
        )

    curves = tuple(c.label for c in facts.curves if any(m.label == memory.label for m in c.memory))
    grown_by = memory.grown_bytes / memory.begin_bytes if memory.begin_bytes else 0.0
    is_clear = any(memory.seconds >= least_s and grown_by >= least for least_s, least in CLEAR)
    cap = Grade.PROBABLE if is_clear else Grade.SUSPECTED
    return Claim(curve.label, signals, rivals, words, curves, cap)


def forecast(curve: Curve, memory: MemoryGrowth) -> str:
    """Say when the nearest limit is reached at the highest rate that the service withstands."""
    each, bound = memory.slope, memory.bound
    borne = [step for step in curve.steps if figures.point(step.failed) <= BORNE]
    rate = max((figures.point(step.throughput) for step in borne), default=0.0)
    if not isinstance(each, Estimate) or each.low is None or each.low <= 0:
        return "When memory ends is undecided: the interval of its growth includes zero."
    if memory.follows == "clock":
        rate, begin = 1.0, f"That is {numbers.shown(each)}"
    elif rate <= 0:
        return "When memory ends is undecided: requests fail at every level."
    else:
        begin = f"At {numbers.with_unit(rate, '1/s')} that is {numbers.shown(_per_second(each, rate))}"
    if bound is None:
        return f"{begin}. When memory ends is undecided: no limit of it is known."
    limit, left = (numbers.with_unit(part, "bytes") for part in (bound.limit_bytes, bound.left_bytes))
    whole = f"the {bound.kind}'s {'memory' if bound.kind == 'machine' else 'limit'} of {limit}"
    if bound.left_bytes <= 0:
        return f"{begin}; {whole} is reached."
    soonest, about, latest = (
        numbers.OPEN if slope is None else numbers.duration(bound.left_bytes / (rate * slope))
        for slope in (each.high, each.point, each.low)
    )
    return (
        f"{begin}: {whole}, of which {left} are left, is reached in about {about} "
        f"({soonest}{numbers.EN_DASH}{latest})."
    )


def _per_second(each: Estimate, rate: float) -> Estimate:
    low, high = (None if end is None else end * rate for end in (each.low, each.high))
    return replace(
        each, metric="memory.per-second", unit="bytes/s", point=each.point * rate, low=low, high=high
    )


def _heap(memory: MemoryGrowth) -> list[Counter]:
    """Return the growth of the heap to its size as the rival, if a runtime reports the heap."""
    heap = memory.heap
    if heap is None:
        return []
    floor, peak = (numbers.with_unit(max(0.0, part), "bytes") for part in (heap.floor_bytes, heap.peak_bytes))
    is_heap = heap.peak_bytes >= OF_THE_HEAP * memory.grown_bytes
    is_released = is_heap and heap.floor_bytes < LEFT_OVER * heap.peak_bytes
    text = f"the peak of the heap rose by {peak}, what collections leave by {floor}"
    return [grading.rival("heap below its size", text, not is_released)]


def _pace(per_minute: float | None) -> grading.Signal:
    if per_minute is None:
        return grading.stated("memory.pace", None, text="how fast is not known")
    pace, limit = numbers.percent(per_minute), numbers.percent(drift.LEAK_PER_MINUTE)
    return grading.stated(
        "memory.pace",
        per_minute > drift.LEAK_PER_MINUTE,
        text=f"at least {pace} of the memory per minute (limit {limit})",
        chip=f"{pace} per minute",
    )


def _late(late: float | None, each: str) -> grading.Signal:
    """Growth to the last as before; slower it may level off, faster it may follow the users."""
    if late is None:
        return grading.stated("memory.late", None, text="whether it levels off is not known")
    return grading.stated(
        "memory.late",
        None if STILL_GROWING <= late < AS_BEFORE or late > FASTER else late >= AS_BEFORE,
        text=f"in the last third of the {each}s {late:.2g} times as much per {each} as before "
        f"(limit {STILL_GROWING:g}; sure from {AS_BEFORE:g} to {FASTER:g})",
        chip=f"late growth {late:.2g} of before",
    )


def _users_rival(memory: MemoryGrowth) -> Counter:
    name = "more users"
    if memory.late is not None and memory.late > FASTER:
        text = f"it grew {memory.late:.2g} times as fast late, when there were more"
        return grading.rival(name, text, None)
    return grading.rival(name, "only what grew at one level of load counts", True)


def _follows(memory: MemoryGrowth) -> grading.Signal:
    if memory.follows == "unknown":
        text = "whether it follows the requests or the clock is not known: trials had about as many each"
        return grading.stated("memory.follows", None, text=text)
    requests = memory.follows == "requests"
    return grading.stated(
        "memory.follows",
        True,
        text=f"each trial's growth is in proportion to its {'requests' if requests else 'length'}",
        chip="in step with requests" if requests else "in step with time",
    )


def _silence(facts: Facts, growths: Sequence[tuple[Curve, MemoryGrowth]]) -> str:
    memory = growths[0][1]
    grown = numbers.with_unit(max(0.0, memory.grown_bytes), "bytes")
    text = f"memory of {memory.label} grew by {grown} over {memory.requests:,} requests"
    if memory.grown_bytes < LEAST_GROWN_BYTES or memory.late is None or memory.begin_bytes <= 0:
        return text
    if memory.late < STILL_GROWING:
        return f"{text}, and in the last third of them by {memory.late:.2g} of before: it levels off"
    if memory.fallen_bytes >= FALLEN * memory.grown_bytes:
        return f"{text} and fell by {numbers.with_unit(memory.fallen_bytes, 'bytes')}: it is given back"
    if (rival := grading.against(_heap(memory))) is not None:
        return f"{text}: {rival.text}"
    return f"{text}, {numbers.percent(memory.grown_bytes / memory.begin_bytes)} of what it had"


assess = assessing(ID, TITLE, observe, claim, silence=_silence)
