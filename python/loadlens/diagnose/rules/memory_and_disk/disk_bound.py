"""Storage is the limit: requests wait until their data is written or read.

**Means.** Each request moves data to or from storage, or waits until its writes are stored, so that the
device is busy while processors have time left. More users wait for the device.

**Needs.** Throughput has stopped growing. At the highest load all tasks of the machine were stalled for
storage 10 % of the time, or a device was busy 85 % of it. Some task waited for storage at least half of the
time; otherwise the finding is suspected, since a limit is waited for all the time. Bytes read and written per
request are the same at all levels, within 10 %. The service uses at most 70 % of its cores.

Where the kernel counts no such waiting (it leaves out waits for a file system's journal), threads of the
service in uninterruptible sleep show it: one of them half of the time, and one at a time (on average at most
1.2 while any sleeps, which independent threads exceed); or one of them 85 % of the time, and each request
sleeps twice as long as at the lightest load. Many that wait at once, each as long as without load, have not
reached a limit of storage.

**Ruled out by.** Pages that had to come from storage (more than one per hundred requests: memory is the
limit); a full machine. Not excluded where the bytes are lines of a log, where other programs write as much to
the device, or where the generator did not send in time.

**Thresholds.** 10 %: everything was stalled for storage a tenth of the time; with a cache that answers it is
0 to 1 %. Half: below it, faster storage would bring less than twice the throughput, as where a lock is held
for 20 ms and synced for 3 ms of them. 85 %: a queue at that utilisation takes seven times its idle time. 70 %
of the cores leaves room for errors of CPU readings.

**Do.** Write the data of several requests at once (group commit), sync less often, cache reads, or use a
faster device.

**Confirm.** The same load on a memory file system, or without waiting for the disk: capacity rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Words, assessing, for_all, on_curve
from loadlens.diagnose.observe import disk_writes, waits
from loadlens.diagnose.observe.curve_signals import gain_signal, room_signal
from loadlens.estimate.saturation import GAIN_PER_DOUBLING
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of, completed
from loadlens.measure.thresholds import IDLE_CPU, PAGED_IN, SATURATED
from loadlens.model.facts import Curve, Facts, Step, StorageWatch
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.present import load_text, numbers

ID = "disk.bound"
TITLE = "storage is the limit"
EXPLAINS: tuple[str, ...] = (
    "saturation.plateau",
    "downstream.serialised",
    "db.lock",
)

ASLEEP = "threads.asleep"  # the signal

STALLED = 0.10  # of the time no task could go on
MOSTLY = 0.5  # of the time some task waits
AT_ONCE = 1.2  # threads asleep where there is any: up to there they take turns
LONGER = 2.0  # times the sleep of a request at the lightest load: they queue
SAME_BYTES = 0.10  # coefficient of variation over the levels
LEAST_BYTES = 512.0  # of one request: a sector
LINE_BYTES = 4096.0  # of a request: up to there what is appended may be lines of a log


@dataclass(frozen=True, slots=True)
class Level:
    """Storage at the highest load of a curve at which it was watched."""

    curve: Curve
    step: Step
    storage: StorageWatch

    @property
    def is_read(self) -> bool:
        """True if anything says how long storage was waited for, or busy."""
        readings = (self.storage.stalled, self.storage.device_busy, self.storage.blocked)
        return any(isinstance(figure, Estimate) for figure in readings)

    @property
    def stalled(self) -> float:
        """Return the share of the time in which no task could go on for storage; 0 if not known."""
        return figures.point(self.storage.stalled)

    @property
    def busy(self) -> float:
        """Return the share of the time for which a device was busy, if that is most of it; else 0."""
        busy = figures.point(self.storage.device_busy)
        return busy if busy >= SATURATED else 0.0

    @property
    def is_by_use(self) -> bool:
        """True if only a busy device suggests that storage is the limit."""
        return not isinstance(self.storage.stalled, Estimate) or (self.stalled < STALLED and self.busy > 0)


def observe(facts: Facts) -> Sequence[tuple[Level, disk_writes.PerRequest]] | Lacking:
    """Return storage and the bytes of a request on every curve on which both were read."""
    levels = [
        (Level(curve, *steps[-1]), moved)
        for curve in facts.curves
        if (steps := disk_writes.known(curve))
        and (moved := disk_writes.per_request(curve, "written", "read")) is not None
    ]
    if not levels:
        return Lacking(disk_writes.why_none(facts))
    return [(level, moved) for level, moved in levels if level.is_read] or Lacking(
        "neither disks (/proc/diskstats) nor waiting for them (/proc/pressure) can be read here"
    )


def claim(facts: Facts, seen: tuple[Level, disk_writes.PerRequest]) -> Claim:
    """Compare waiting for storage with the bytes, the cores and what else makes storage busy."""
    level, moved = seen
    curve, step, storage, each = level.curve, level.step, level.storage, disk_writes.size(moved.mean)
    signals = [*held_up(level), _bytes(moved), _cores(curve, step), _plateau(curve)]
    rivals = [
        waits.machine_rival(facts, curve, step),
        _paging(curve),
        _log_lines(curve),
        disk_writes.own_rival(storage),
        grading.generator_rival(step),
    ]

    def words(grade: Grade) -> Words:
        if signals[0].evidence.signal == ASLEEP:
            what, stall = "Threads sleep until storage has done its part", figures.point(storage.blocked)
        elif level.is_by_use:
            what, stall = "A device is busy", level.busy
        else:
            what, stall = "Storage holds everything up", level.stalled
        return Words(
            statement=f"{what} {numbers.percent(stall)} of the time: each request moves {each} there",
            explanation=f"At {load_text.load_with_unit(curve, step)} requests wait for storage while "
            "processors have time left.",
            advice=f"Write several requests' data at once or sync less often: {each} each at "
            f"{numbers.with_unit(completed(step), '1/s')} is what this device supports.",
            confirm="the same on a memory file system, or without waiting for the disk: capacity rises",
            impact=stall,
        )

    return on_curve(curve, signals, rivals, words)


def held_up(level: Level) -> list[grading.Signal]:
    """Return the signals that requests wait for storage: as the kernel counts it, else threads that sleep."""
    storage, waiting, busy = level.storage, level.storage.waiting, level.storage.device_busy
    # A device may be busy with writing back, for which no task waits.
    is_written_back = level.busy > 0 and isinstance(waiting, Estimate) and waiting.point < STALLED
    is_counted = level.stalled >= STALLED and figures.point(waiting) >= MOSTLY
    if level.is_by_use:
        is_counted = level.busy > 0 and not is_written_back
    asleep = _asleep(level)
    if asleep is not None and asleep.evidence.passed and not is_counted:
        return [asleep]
    if level.is_by_use and is_written_back:
        text = (
            f"a device is busy {numbers.shown(busy)} of the time, and tasks wait for storage "
            f"{numbers.shown(waiting)} of it (limit {numbers.percent(STALLED)})"
        )
        return [grading.stated("storage.busy", None, text=text)]
    if level.is_by_use:
        text = f"a device is busy {numbers.shown(busy)} of the time (limit {numbers.percent(SATURATED)})"
        chip = f"device busy {numbers.percent(figures.point(busy))}"
        return [grading.at_least("storage.busy", busy, SATURATED, text=text, chip=chip)]
    text = (
        f"all tasks were stalled for storage {numbers.shown(storage.stalled)} of the time "
        f"(limit {numbers.percent(STALLED)})"
    )
    chip = f"stalled {numbers.percent(level.stalled)} by storage"
    signals = [grading.at_least("storage.stalled", storage.stalled, STALLED, text=text, chip=chip)]
    if isinstance(waiting, Estimate):
        # A part of what one resource does may stop everything, and another part of it be the limit.
        text = (
            f"some task waits for storage {numbers.shown(waiting)} of the time "
            f"(limit {numbers.percent(MOSTLY)})"
        )
        passed = True if waiting.point >= MOSTLY else None
        if passed is None and asleep is not None:
            text += f"; {asleep.evidence.text}"
        signals.append(grading.stated("storage.waited-for", passed, text=text))
    return signals


def _asleep(level: Level) -> grading.Signal | None:
    """Return the signal that threads take turns asleep in the kernel, or queue; none if that was not read."""
    share, threads = level.storage.blocked, level.storage.blocked_threads
    if not isinstance(share, Estimate) or not isinstance(threads, Estimate):
        return None
    at_once = threads.point / share.point if share.point > 0 else 0.0
    longer = _longer(level, threads.point)
    text = (
        f"some thread of the service sleeps in the kernel, as who waits for storage does, "
        f"{numbers.shown(share)} of the time (limit {numbers.percent(MOSTLY)})"
    )
    if share.point >= MOSTLY:
        text += f", {numbers.about(at_once)} of them at once"
        if longer is not None and at_once > AT_ONCE:
            text += f", a request {numbers.about(longer)} times as long as at the lightest load"
    queues = share.point >= SATURATED and longer is not None and longer >= LONGER
    if share.point < MOSTLY or (at_once > AT_ONCE and not queues):
        return grading.stated(ASLEEP, False, text=text)
    chip = f"asleep in the kernel {numbers.percent(share.point)}"
    return grading.at_least(ASLEEP, share, MOSTLY, text=text, chip=chip)


def _longer(level: Level, threads: float) -> float | None:
    """Return the sleep of a request over that at the lightest load (Little's law); none without another."""
    first, storage = disk_writes.known(level.curve)[0]
    before = storage.blocked_threads
    if first is level.step or not isinstance(before, Estimate) or before.point <= 0:
        return None
    rates = completed(first), completed(level.step)
    return (threads / rates[1]) / (before.point / rates[0]) if min(rates) > 0 else None


def _bytes(moved: disk_writes.PerRequest) -> grading.Signal:
    """Return the signal that requests move bytes, each as many as the others."""
    each, spread = disk_writes.size(moved.mean), moved.variation
    text = f"a request moves {each} to or from storage"
    if moved.mean < LEAST_BYTES:
        return grading.stated("storage.bytes", False, text=f"{text} (limit {disk_writes.size(LEAST_BYTES)})")
    if spread is None:
        return grading.stated("storage.bytes", None, text=f"{text}, at the one level that was looked at")
    limit = numbers.percent(SAME_BYTES)
    text += f", the same over the levels within {numbers.percent(spread)} (limit {limit})"
    return grading.stated("storage.bytes", spread <= SAME_BYTES, text=text, chip=f"{each} per request")


def _cores(curve: Curve, step: Step) -> grading.Signal:
    if not step.processes or curve.cores_allotted <= 0:
        return grading.stated("cpu.room", None, text="CPU of the service was not read")
    room = room_signal(curve, step, IDLE_CPU)
    unread = [process for process in step.processes if not isinstance(process.cpu, Estimate)]
    if unread and room.evidence.passed:  # what was not read is not zero
        text = f"the CPU of {len(unread)} of {len(step.processes)} processes was not read"
        return grading.stated("cpu.room", None, text=text)
    return room


def _plateau(curve: Curve) -> grading.Signal:
    capacity = capacity_of(curve)
    if not isinstance(capacity, Capacity):
        return grading.stated("throughput.gain", None, text=capacity.reason)
    gain = capacity.saturation.gain_per_doubling
    return gain_signal("throughput.gain", gain, gain < GAIN_PER_DOUBLING)


def _paging(curve: Curve) -> Counter:
    """Memory that is too small makes storage busy as well."""
    faults = disk_writes.per_request(curve, "major_faults")
    if faults is None:
        return grading.rival("paging", "page faults were not read", None)
    text = f"{numbers.about(faults.mean)} pages for a request had to come from storage (limit {PAGED_IN})"
    return grading.rival("paging", text, faults.mean <= PAGED_IN)


def _log_lines(curve: Curve) -> Counter:
    """Bytes that are written may be lines of a log: then storage is the limit, and the log the cause."""
    appended = disk_writes.per_request(curve, "appended")
    if appended is None:
        return grading.rival("lines of a log", "which files grew was not read", None)
    text = f"files that are written at their end grew by {disk_writes.size(appended.mean)} per request"
    return grading.rival("lines of a log", text, None if 0 < appended.mean <= LINE_BYTES else True)


def _silence(facts: Facts, observed: Sequence[tuple[Level, disk_writes.PerRequest]]) -> str:
    worst = claim(facts, max(observed, key=lambda seen: seen[0].stalled))
    return grading.reason(worst.signals, worst.rivals)


assess = assessing(ID, TITLE, observe, claim, choose=for_all, silence=_silence)
