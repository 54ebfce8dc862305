"""Memory is short: requests wait for pages that were there before and had to go.

**Means.** What the service needs does not fit into the memory that it may have. Pages are dropped or
swapped out to make room, and whoever touches one waits until storage has it back, or until room was made.

**Needs.** A request waits for at least 0.01 pages from storage (major faults of the service's processes),
or some thread in its control group waits for memory 5 % of the time; where neither is so and only the
machine is short (5 %, or pages come back from swap), it is suspected at most. Pages that had been dropped
are read again, at least half as many as the service faults on. Requests are slower for it: their threads
sleep in the kernel for 5 % of the response time, or tasks wait for memory 5 % of the time. And it is the
service that takes the memory: its control group met its bound, or its processes hold half of the machine's
memory; else it is suspected.

**Ruled out by.** A cold cache: pages are read for the first time, or faults fade to less than half, from
the first half of the measured parts to the second, from the first trial to the last, or up to the highest
load. Not excluded where the service moves more than twice the bytes of the pages that come back, as its
threads may sleep for those; nor where the generator's health is not known.

**Thresholds.** 0.01 pages: one request in a hundred meets a fault, and p99 is made of them; a service with
room has none after its start. 5 %: below, more memory would bring less than a twentieth; a machine with
room counts next to none. Half of the faults: where pages are shared or read ahead, one fault and one page
are not the same. Half from first to last: what is read again and again does not fade, what fills up fades
to nothing. A page a second from swap: fewer are of a program that woke up.

**Do.** A higher bound of memory, a smaller heap or cache, fewer workers, or less data touched by a request.

**Confirm.** Twice the memory: faults vanish, mean and tail return.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.observe import disk_writes
from loadlens.measure import figures
from loadlens.measure.curve import completed
from loadlens.measure.thresholds import PAGED_IN
from loadlens.model.facts import Curve, Facts, MemoryWatch, Step, StorageWatch
from loadlens.model.finding import Absent, Counter, Estimate, Figure, Finding, NotAssessed
from loadlens.present import numbers

ID = "memory.pressure"
TITLE = "memory is short"
EXPLAINS: tuple[str, ...] = (
    *("disk.bound", "saturation.plateau", "downstream.serialised"),
    *("threads.pool-limit", "outside.handler-wait", "mixture.slow-path"),
)

WAITED = 0.05  # of the time
SWAPPED = 1.0  # pages a second from swap, over a whole level: fewer are of a program that woke up
AGAIN = 0.5  # of the faults: pages that had been dropped
FADES = 0.5  # from the first to the last
HELD = 0.5  # of the machine's memory
MOVED = 0.5  # of the bytes that the service moves: pages that come back
MOSTLY = 0.5  # of the time: less does not make what else limits appear
PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class _Look:
    """A level at which memory was watched."""

    curve: Curve
    step: Step
    memory: MemoryWatch
    storage: StorageWatch

    @property
    def faults(self) -> Figure:
        """Pages from storage for a request."""
        rate, ended = self.storage.major_faults, completed(self.step)
        return _times(rate, 1 / ended, "pages") if isinstance(rate, Estimate) and ended > 0 else rate

    @property
    def asleep(self) -> Estimate | None:
        """Share of a request's time that its thread sleeps in the kernel (Little's law); none: unknown."""
        threads, flying = self.storage.blocked_threads, self.step.in_flight
        if not isinstance(threads, Estimate) or not isinstance(flying, Estimate) or flying.point <= 0:
            return None
        return _times(threads, 1 / flying.point, "share")

    @property
    def is_own(self) -> bool:
        """Whether the service itself lacks pages; else the machine may."""
        return figures.point(self.faults) >= PAGED_IN or self.is_reclaimed

    @property
    def is_reclaimed(self) -> bool:
        """Whether threads of its control group wait for memory."""
        return figures.point(self.memory.own_waiting) >= WAITED

    @property
    def waited(self) -> Estimate | None:
        """The most that is known of how long was waited: of its own threads, else of the machine's tasks."""
        own = [one for one in (self.memory.own_waiting, self.asleep) if isinstance(one, Estimate)]
        machine = self.memory.waiting
        if isinstance(machine, Estimate) and (self.is_own or not own):
            own.append(machine)
        return max(own, key=figures.point, default=None)

    @property
    def pages(self) -> str:
        """Pages of a request, with two digits."""
        number = figures.point(self.faults)
        return f"{number:.2g}" if number < 100 else f"{number:.0f}"


def _times(figure: Estimate, factor: float, unit: str) -> Estimate:
    low, high = (None if end is None else end * factor for end in (figure.low, figure.high))
    return replace(figure, point=figure.point * factor, low=low, high=high, unit=unit)


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every level, and keep of each curve the one at which requests wait most."""
    readable = [look for curve in facts.curves for look in _looks(curve) if _is_readable(look)]
    if not readable:
        lack = "neither page faults (/proc/PID/stat) nor waiting for memory (/proc/pressure) can be read here"
        return NotAssessed(ID, TITLE, grading.unwatched(facts, lack))
    found: list[Finding] = []
    for curve in facts.curves:
        own = [f for look in readable if look.curve is curve and (f := _finding(look)) is not None]
        found += [grading.strongest(own[::-1])] if own else []  # of equals the highest load
    if found:
        return grading.for_all(found)
    return Absent(ID, TITLE, _silence(max(readable, key=lambda look: figures.point(look.faults))))


def _looks(curve: Curve) -> list[_Look]:
    return [
        _Look(curve, step, step.memory, step.storage)
        for step in curve.steps
        if step.memory is not None and step.storage is not None
    ]


def _is_readable(look: _Look) -> bool:
    told = (look.storage.major_faults, look.memory.own_waiting, look.memory.waiting)
    return any(isinstance(figure, Estimate) for figure in told)


# --- what it needs ------------------------------------------------------------------------------------------


def _signals(look: _Look) -> list[grading.Signal]:
    again = [] if look.is_reclaimed or not look.is_own else [_again(look)]
    return [_short(look), *again, _waited(look), _taken(look)]


def _short(look: _Look) -> grading.Signal:
    """Whether pages are missing: by faults of the service, by its group, else somewhere on the machine."""
    memory, faults = look.memory, look.faults
    own = memory.own_waiting
    if look.is_reclaimed and isinstance(own, Estimate) and figures.point(faults) < PAGED_IN:
        text = f"some thread of its control group waits for memory {numbers.shown(own)} of the time"
        return grading.at_least("memory.group", own, WAITED, text=f"{text} (limit {numbers.percent(WAITED)})")
    text = f"pages that a request fetches from storage: {numbers.shown(faults)} (limit {PAGED_IN})"
    if look.is_own:
        return grading.at_least(
            "faults.request", faults, PAGED_IN, text=text, chip=f"{look.pages} pages a request"
        )
    signs = [
        f"tasks of the machine wait for memory {numbers.shown(memory.waiting)} of the time"
        if figures.point(memory.waiting) >= WAITED
        else "",
        f"{figures.point(memory.swapped_in):.2g} pages a second come back from swap"
        if figures.point(memory.swapped_in) >= SWAPPED
        else "",
    ]
    if any(signs):
        return grading.stated("memory.machine", None, text=f"{text}; {', '.join(filter(None, signs))}")
    return grading.stated("faults.request", False, text=text)


def _again(look: _Look) -> grading.Signal:
    """Whether the pages had been in memory: else they are read for the first time."""
    again, faults = look.memory.again, figures.point(look.storage.major_faults)
    if not isinstance(again, Estimate):
        return grading.stated("memory.again", None, text="which pages had been dropped before was not read")
    share = again.point / faults
    text = (
        f"{numbers.with_unit(again.point, '1/s')} pages are read again that had been dropped, of "
        f"{numbers.with_unit(faults, '1/s')} that the service faults on (limit {numbers.percent(AGAIN)})"
    )
    return grading.stated("memory.again", share >= AGAIN, text=text, chip="pages dropped and read again")


def _waited(look: _Look) -> grading.Signal:
    """Whether requests are slower for it."""
    waited = look.waited
    if waited is None:
        return grading.stated(
            "memory.waited-for", None, text="how long threads waited for pages was not read"
        )
    share = numbers.shown(waited)
    limit = f"(limit {numbers.percent(WAITED)})"
    text = (
        f"threads sleep in the kernel for {share} of the time of a request {limit}"
        if waited == look.asleep
        else f"tasks wait for memory {share} of the time {limit}"
    )
    chip = f"waited for {numbers.percent(waited.point)}"
    return grading.at_least("memory.waited-for", waited, WAITED, text=text, chip=chip)


def _taken(look: _Look) -> grading.Signal:
    """Whether it is the service that takes the memory: what others take is only a suspicion."""
    memory = look.memory
    if figures.point(memory.at_bound) > 0:
        bound = "" if memory.bound_bytes is None else f" of {disk_writes.size(memory.bound_bytes)}"
        rate = numbers.with_unit(figures.point(memory.at_bound), "1/s")
        return grading.stated(
            "memory.bound", True, text=f"its control group meets its bound{bound} {rate}", chip="at its bound"
        )
    if memory.held is None:
        return grading.stated("memory.bound", None, text="what the services hold of the memory is not known")
    held, limit = numbers.percent(memory.held), numbers.percent(HELD)
    text = f"the services hold {held} of the machine's memory (limit {limit})"
    return grading.stated("memory.bound", True if memory.held >= HELD else None, text=text)


# --- what looks the same ------------------------------------------------------------------------------------


def _rivals(look: _Look) -> list[Counter]:
    return [_cold(look), _other_bytes(look), grading.generator_rival(look.step)]


def _cold(look: _Look) -> Counter:
    """What is read for the first time after a start is not read for long."""
    if not look.is_own or look.is_reclaimed:
        return grading.rival("cold cache", "no page of the service comes from storage", True)
    each, later = look.memory.faults, look.memory.later
    top = _highest(look)
    ratios = {
        "from the first half of a trial to the second": later,
        "from the first trial to the last": _ratio(each),
        "up to the highest load": None
        if top.step is look.step
        else _ratio((figures.point(look.faults), figures.point(top.faults))),
    }
    known = {what: ratio for what, ratio in ratios.items() if ratio is not None}
    if not known:
        return grading.rival("cold cache", "too few faults to say whether they fade", None)
    what, least = min(known.items(), key=lambda item: item[1])
    text = f"faults go to {numbers.percent(least)} {what} (limit {numbers.percent(FADES)})"
    return grading.rival("cold cache", text, least >= FADES)


def _highest(look: _Look) -> _Look:
    """At the highest load of the curve at which faults were read; it is one of them itself."""
    known = [one for one in _looks(look.curve) if isinstance(one.faults, Estimate)]
    return known[-1] if known else look


def _ratio(values: Sequence[float]) -> float | None:
    return values[-1] / values[0] if len(values) > 1 and values[0] > 0 else None


def _other_bytes(look: _Look) -> Counter:
    """Threads sleep for whatever storage does: the pages that come back must be much of it."""
    name, again = "other reads and writes", look.memory.again
    read, written = look.storage.read, look.storage.written
    if look.waited != look.asleep:
        return grading.rival(name, "tasks wait for memory and not for storage", True)
    if not isinstance(again, Estimate) or not isinstance(read, Estimate) or not isinstance(written, Estimate):
        return grading.rival(name, "what the services read and write is not known", None)
    pages, moved = again.point * PAGE_BYTES, read.point + written.point
    text = (
        f"the services move {numbers.with_unit(moved, 'bytes/s')}, and pages that come back are "
        f"{numbers.with_unit(pages, 'bytes/s')}"
    )
    return grading.rival(name, text, True if pages >= MOVED * moved else None)


# --- what is said -------------------------------------------------------------------------------------------


def _finding(look: _Look) -> Finding | None:
    signals, rivals = _signals(look), _rivals(look)
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(look.curve))
    if grade is None:
        return None
    share = min(1.0, figures.point(look.waited))
    unit = "users" if look.curve.is_closed else "requests/s"
    return Finding(
        rule=ID,
        grade=grade,
        impact=share,
        scope=look.curve.label,
        statement=grading.statement(_statement(look, share)),
        explanation=f"At {look.step.load:g} {unit} pages are dropped to make room, and read again later.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=_advice(look),
        confirm="twice the memory: faults vanish, mean and tail return",
        curves=(look.curve.label,),
        explains_others=share >= MOSTLY,
    )


def _statement(look: _Look, share: float) -> str:
    time = f"{numbers.percent(share)} of the time"
    if figures.point(look.faults) >= PAGED_IN:
        return f"Memory is short: a request waits for {look.pages} pages, {time}"
    whose = "its threads wait" if look.is_own else "somebody on the machine waits"
    return f"Memory is short: {whose} for it {time}"


def _advice(look: _Look) -> str:
    bound = look.memory.bound_bytes
    if figures.point(look.memory.at_bound) > 0 and bound is not None:
        what = f"Raise the bound of {disk_writes.size(bound)}, or let the service"
    else:
        what = "Give the machine more memory, or let what runs there"
    return f"{what} keep and touch less: heap, caches, workers."


def _silence(look: _Look) -> str:
    signals, rivals = _signals(look), _rivals(look)
    if any(signal.evidence.passed is False for signal in signals):
        return grading.unclear(signals)
    found = [rival.text for rival in rivals if rival.ruled_out is False]
    return found[0] if found else grading.unclear(signals)
