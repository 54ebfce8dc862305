"""Memory is short: requests wait for pages that were dropped to make room.

**Means.** The service needs more memory than it may have. Pages are dropped or swapped out to make room, and
a request that touches one waits until storage returns it, or until room is made.

**Needs.** A request waits for at least 0.01 pages from storage (major faults of the service's processes), or
some thread in its control group waits for memory 5 % of the time. Where neither is so and only the machine is
short (5 %, or pages return from swap), the finding is at most suspected. Dropped pages are read again, at
least half as many as the service faults on. Requests are slower for it: their threads sleep in the kernel for
5 % of the response time, or tasks wait for memory 5 % of the time. And the service takes the memory: its
control group reached its bound, or its processes hold half of the machine's memory; otherwise the finding is
suspected.

**Ruled out by.** A cold cache: pages are read for the first time, or faults fade to less than half, from the
first half of the measured parts to the second, from the first trial to the last, or up to the highest load.
Not excluded where the service moves more than twice the bytes of the pages that return, as its threads may
sleep for those; nor where the generator's health is not known.

**Thresholds.** 0.01 pages: one request in a hundred meets a fault, and p99 consists of these; a service with
enough memory has none after its start. 5 %: below it, more memory would bring less than a twentieth; a
machine with enough memory counts next to none. Half of the faults: where pages are shared or read ahead, one
fault and one page are not the same. Half from first to last: faults on pages that are read again and again do
not fade, those of a cache that fills fade to nothing. One page per second from swap: a program that wakes up
causes fewer.

**Do.** Raise the memory limit, shrink a heap or cache, run fewer workers, or keep less data per request.

**Confirm.** Twice the memory: faults vanish, and mean and tail return to what they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Words, assessing, on_curve
from loadlens.diagnose.observe import disk_writes
from loadlens.measure import figures
from loadlens.measure.curve import completed
from loadlens.measure.thresholds import PAGED_IN
from loadlens.model.facts import Curve, Facts, MemoryWatch, Step, StorageWatch
from loadlens.model.finding import Counter, Estimate, Figure, Finding, Grade
from loadlens.present import numbers
from loadlens.present.numbers import about

ID = "memory.pressure"
TITLE = "memory is short"
EXPLAINS: tuple[str, ...] = (
    *("disk.bound", "saturation.plateau", "downstream.serialised"),
    *("threads.pool-limit", "outside.handler-wait", "mixture.slow-path", "cpu.one-core"),
)

WAITED = 0.05  # of the time
SWAPPED = 1.0  # pages per second from swap, over a whole level: fewer are of a program that woke up
AGAIN = 0.5  # of the faults: pages that had been dropped
FADES = 0.5  # from the first to the last
HELD = 0.5  # of the machine's memory
MOVED = 0.5  # of the bytes that the service moves: pages that come back
MOSTLY = 0.5  # of the time: less does not make what else limits appear
PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Level:
    """A level at which memory was watched."""

    curve: Curve
    step: Step
    memory: MemoryWatch
    storage: StorageWatch

    @property
    def faults(self) -> Figure:
        """Return pages from storage per request."""
        rate, ended = self.storage.major_faults, completed(self.step)
        return _times(rate, 1 / ended, "pages") if isinstance(rate, Estimate) and ended > 0 else rate

    @property
    def asleep(self) -> Estimate | None:
        """Return the share of a request's time that its thread sleeps in the kernel (Little's law)."""
        threads, flying = self.storage.blocked_threads, self.step.in_flight
        if not isinstance(threads, Estimate) or not isinstance(flying, Estimate) or flying.point <= 0:
            return None
        return _times(threads, 1 / flying.point, "share")

    @property
    def is_reclaimed(self) -> bool:
        """True if threads of the service's control group wait for memory."""
        return figures.point(self.memory.own_waiting) >= WAITED

    @property
    def is_own(self) -> bool:
        """True if the service itself lacks pages; else the machine may."""
        return figures.point(self.faults) >= PAGED_IN or self.is_reclaimed

    @property
    def waited(self) -> Estimate | None:
        """Return the longest waiting that is known: of the service's threads, else of the machine's tasks."""
        own = [share for share in (self.memory.own_waiting, self.asleep) if isinstance(share, Estimate)]
        machine = self.memory.waiting
        if isinstance(machine, Estimate) and (self.is_own or not own):
            own.append(machine)
        return max(own, key=figures.point, default=None)

    @property
    def pages(self) -> str:
        """Return pages per request, with two digits."""
        return about(figures.point(self.faults))


def _times(figure: Estimate, factor: float, unit: str) -> Estimate:
    low, high = (None if end is None else end * factor for end in (figure.low, figure.high))
    return replace(figure, point=figure.point * factor, low=low, high=high, unit=unit)


def _levels(curve: Curve) -> list[Level]:
    return [
        Level(curve, step, step.memory, step.storage)
        for step in curve.steps
        if step.memory is not None and step.storage is not None
    ]


def observe(facts: Facts) -> Sequence[Level] | Lacking:
    """Return all levels at which page faults or waiting for memory were read."""
    levels = []
    for level in (level for curve in facts.curves for level in _levels(curve)):
        readings = (level.storage.major_faults, level.memory.own_waiting, level.memory.waiting)
        if any(isinstance(figure, Estimate) for figure in readings):
            levels.append(level)
    lack = "neither page faults (/proc/PID/stat) nor waiting for memory (/proc/pressure) can be read here"
    return levels or Lacking(grading.unwatched(facts, lack))


def claim(facts: Facts, level: Level) -> Claim:
    """Check that pages are missing, that requests wait for them, and that the service takes the memory."""
    memory, bound = level.memory, level.memory.bound_bytes
    is_at_bound, share = figures.point(memory.at_bound) > 0, min(1.0, figures.point(level.waited))
    again = [_again(level)] if level.is_own and not level.is_reclaimed else []
    signals = [_short(level), *again, _waited(level), _taken(memory)]
    rivals = [_cold(level), _other_bytes(level), grading.generator_rival(level.step)]

    def words(grade: Grade) -> Words:
        what = f"{'its threads wait' if level.is_own else 'tasks of the machine wait'} for it"
        if figures.point(level.faults) >= PAGED_IN:
            what = f"a request waits for {level.pages} pages,"
        who = "Give the machine more memory, or let what runs there"
        if is_at_bound and bound is not None:
            who = f"Raise the bound of {disk_writes.size(bound)}, or let the service"
        unit = "users" if level.curve.is_closed else "requests/s"
        return Words(
            statement=f"Memory is short: {what} {numbers.percent(share)} of the time",
            explanation=f"At {level.step.load:g} {unit} pages are dropped to make room, and read again "
            "later.",
            advice=f"{who} keep and touch less: heap, caches, workers.",
            confirm="twice the memory: faults vanish, mean and tail return",
            impact=share,
        )

    return on_curve(level.curve, signals, rivals, words, explains_others=share >= MOSTLY)


# --- signals ------------------------------------------------------------------------------------------------


def _short(level: Level) -> grading.Signal:
    """Return the signal that pages are missing: to the service, to its group, else on the machine."""
    memory, faults, own = level.memory, level.faults, level.memory.own_waiting
    if level.is_reclaimed and figures.point(faults) < PAGED_IN:
        text = f"some thread of its control group waits for memory {numbers.shown(own)} of the time"
        return grading.at_least("memory.group", own, WAITED, text=f"{text} (limit {numbers.percent(WAITED)})")
    text = f"pages that a request fetches from storage: {numbers.shown(faults)} (limit {PAGED_IN})"
    if level.is_own:
        chip = f"{level.pages} pages per request"
        return grading.at_least("faults.request", faults, PAGED_IN, text=text, chip=chip)
    signs = []
    if figures.point(memory.waiting) >= WAITED:
        signs.append(f"tasks of the machine wait for memory {numbers.shown(memory.waiting)} of the time")
    if figures.point(memory.swapped_in) >= SWAPPED:
        signs.append(f"{about(figures.point(memory.swapped_in))} pages per second come back from swap")
    if signs:
        return grading.stated("memory.machine", None, text=f"{text}; {', '.join(signs)}")
    return grading.stated("faults.request", False, text=text)


def _again(level: Level) -> grading.Signal:
    """Return the signal that the pages had been in memory: else they are read for the first time."""
    again, faults = level.memory.again, figures.point(level.storage.major_faults)
    if not isinstance(again, Estimate):
        return grading.stated("memory.again", None, text="which pages had been dropped before was not read")
    text = (
        f"{numbers.with_unit(again.point, '1/s')} pages are read again that had been dropped, of "
        f"{numbers.with_unit(faults, '1/s')} that the service faults on (limit {numbers.percent(AGAIN)})"
    )
    is_again = again.point / faults >= AGAIN
    return grading.stated("memory.again", is_again, text=text, chip="pages dropped and read again")


def _waited(level: Level) -> grading.Signal:
    """Return the signal that requests are slower for it."""
    waited = level.waited
    if waited is None:
        text = "how long threads waited for pages was not read"
        return grading.stated("memory.waited-for", None, text=text)
    share, chip = numbers.shown(waited), f"waited for {numbers.percent(waited.point)}"
    text = f"tasks wait for memory {share} of the time"
    if waited == level.asleep:
        text = f"threads sleep in the kernel for {share} of the time of a request"
    text += f" (limit {numbers.percent(WAITED)})"
    return grading.at_least("memory.waited-for", waited, WAITED, text=text, chip=chip)


def _taken(memory: MemoryWatch) -> grading.Signal:
    """Return the signal that the service takes the memory: what others take is only a suspicion."""
    if figures.point(memory.at_bound) > 0:
        bound = "" if memory.bound_bytes is None else f" of {disk_writes.size(memory.bound_bytes)}"
        rate = numbers.with_unit(figures.point(memory.at_bound), "1/s")
        text = f"its control group meets its bound{bound} {rate}"
        return grading.stated("memory.bound", True, text=text, chip="at its bound")
    if memory.held is None:
        return grading.stated("memory.bound", None, text="what the services hold of the memory is not known")
    held, limit = numbers.percent(memory.held), numbers.percent(HELD)
    text = f"the services hold {held} of the machine's memory (limit {limit})"
    return grading.stated("memory.bound", True if memory.held >= HELD else None, text=text)


# --- rivals -------------------------------------------------------------------------------------------------


def _cold(level: Level) -> Counter:
    """Return the rival of a cold cache: pages that are read for the first time are not read for long."""
    if not level.is_own or level.is_reclaimed:
        return grading.rival("cold cache", "no page of the service comes from storage", True)
    read = [other for other in _levels(level.curve) if isinstance(other.faults, Estimate)]
    top = read[-1] if read else level
    to_top = [] if top.step is level.step else [figures.point(level.faults), figures.point(top.faults)]
    ratios = {
        "from the first half of a trial to the second": level.memory.later,
        "from the first trial to the last": _ratio(level.memory.faults),
        "up to the highest load": _ratio(to_top),
    }
    fading = {what: ratio for what, ratio in ratios.items() if ratio is not None}
    if not fading:
        return grading.rival("cold cache", "too few faults to say whether they fade", None)
    what, least = min(fading.items(), key=lambda item: item[1])
    text = f"faults go to {numbers.percent(least)} {what} (limit {numbers.percent(FADES)})"
    return grading.rival("cold cache", text, least >= FADES)


def _ratio(values: Sequence[float]) -> float | None:
    return values[-1] / values[0] if len(values) > 1 and values[0] > 0 else None


def _other_bytes(level: Level) -> Counter:
    """Return the rival of other reads and writes: threads sleep for whatever storage does."""
    name, again = "other reads and writes", level.memory.again
    read, written = level.storage.read, level.storage.written
    if level.waited != level.asleep:
        return grading.rival(name, "tasks wait for memory and not for storage", True)
    if not isinstance(again, Estimate) or not isinstance(read, Estimate) or not isinstance(written, Estimate):
        return grading.rival(name, "what the services read and write is not known", None)
    pages, moved = again.point * PAGE_BYTES, read.point + written.point
    text = (
        f"the services move {numbers.with_unit(moved, 'bytes/s')}, and pages that come back are "
        f"{numbers.with_unit(pages, 'bytes/s')}"
    )
    return grading.rival(name, text, True if pages >= MOVED * moved else None)


# --- which finding, and why none ----------------------------------------------------------------------------


def _worst_of_curves(pairs: Sequence[tuple[Level, Finding]]) -> Finding:
    """Return the strongest finding for the curves of all; each curve speaks once, at its worst level."""
    by_curve: dict[str, list[Finding]] = {}
    for level, finding in reversed(pairs):  # of equals the highest load
        by_curve.setdefault(level.curve.label, []).append(finding)
    return grading.for_all([grading.strongest(by_curve[label]) for label in reversed(by_curve)])


def _silence(facts: Facts, levels: Sequence[Level]) -> str:
    made = claim(facts, max(levels, key=lambda level: figures.point(level.faults)))
    return grading.reason(made.signals, made.rivals)


assess = assessing(ID, TITLE, observe, claim, choose=_worst_of_curves, silence=_silence)
