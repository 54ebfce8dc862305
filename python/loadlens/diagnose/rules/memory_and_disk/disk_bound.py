"""Storage is the limit: requests wait until their data is written or read.

**Means.** Each request moves so many bytes to or from storage, or waits for so many writes to be on it, that
the device is busy while processors have time left. More users wait for the device.

**Needs.** Throughput has stopped growing; at the highest load nobody on the machine could go on for storage
10 % of the time, or a device was busy 85 % of it; some task waited for storage at least half of the time,
else it is suspected: what limits is waited for all the time; bytes read and written are the same for each
request over the levels, within 10 %; the service uses at most 70 % of its cores.

Where the kernel counts no such waiting (it leaves out who waits for a file system's journal), threads of the
service that sleep without being interruptible show it: one of them half of the time, and one at a time
(at most 1.2 where there is any, which threads that are independent of each other exceed), or always
(85 %) and each request twice as long as at the lightest load. Many who wait at once, each as long as alone,
find no limit in storage.

**Ruled out by.** Pages that had to come from storage (more than one in a hundred requests: memory is the
limit); a machine that is full. Not excluded where the bytes are lines of a log, or where others write as
much to the device; a generator that did not send in time.

**Thresholds.** 10 %: everything stood still for storage a tenth of the time, where a cache that answers
leaves 0 to 1 %. Half: below, faster storage would bring less than twice the throughput, as where a lock is
held for 20 ms and synced for 3 of them. 85 %: a queue at that use takes seven times its idle time. 70 % of
the cores leaves room for the errors of CPU readings.

**Do.** Write several requests' data at once (group commit), sync less often, cache what is read, or a faster
device.

**Confirm.** The same on a memory file system, or without waiting for the disk: capacity rises.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.diagnose.observe import disk_writes, waits
from loadlens.diagnose.observe.curve_signals import gain_signal, room_signal
from loadlens.estimate.saturation import GAIN_PER_DOUBLING
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of, completed
from loadlens.measure.thresholds import IDLE_CPU, PAGED_IN, SATURATED
from loadlens.model.facts import Curve, Facts, Step, StorageWatch
from loadlens.model.finding import Absent, Counter, Estimate, Finding, NotAssessed
from loadlens.present import load_text, numbers

ID = "disk.bound"
TITLE = "storage is the limit"
EXPLAINS: tuple[str, ...] = (
    "saturation.plateau",
    "downstream.serialised",
    "db.lock",
)

ASLEEP = "threads.asleep"  # the signal

STALLED = 0.10  # of the time nobody could go on
MOSTLY = 0.5  # of the time some task waits
AT_ONCE = 1.2  # threads asleep where there is any: up to there they take turns
LONGER = 2.0  # times the sleep of a request at the lightest load: they queue
SAME_BYTES = 0.10  # coefficient of variation over the levels
LEAST_BYTES = 512.0  # of one request: a sector
LINE_BYTES = 4096.0  # of a request: up to there what is appended may be lines of a log


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the highest load of every curve."""
    looked = [(curve, levels) for curve in facts.curves if (levels := disk_writes.known(curve))]
    readable = [
        (curve, levels)
        for curve, levels in looked
        if disk_writes.per_request(curve, "written", "read") is not None and _is_seen(levels[-1][1])
    ]
    if not readable:
        if any(disk_writes.per_request(curve, "written", "read") is not None for curve, _ in looked):
            reason = "neither disks (/proc/diskstats) nor waiting for them (/proc/pressure) can be read here"
            return NotAssessed(ID, TITLE, reason)
        return NotAssessed(ID, TITLE, disk_writes.why_none(facts))
    found = [f for curve, levels in readable if (f := _finding(facts, curve, *levels[-1])) is not None]
    if found:
        return grading.for_all(found)
    curve, levels = max(readable, key=lambda pair: _stall(pair[1][-1][1]))
    return Absent(ID, TITLE, _silence(facts, curve, *levels[-1]))


def _is_seen(storage: StorageWatch) -> bool:
    told = (storage.stalled, storage.device_busy, storage.blocked)
    return any(isinstance(figure, Estimate) for figure in told)


def _stall(storage: StorageWatch) -> float:
    return figures.point(storage.stalled)


def _signals(curve: Curve, step: Step, storage: StorageWatch) -> list[grading.Signal]:
    return [
        *held_up(curve, step, storage),
        _bytes(curve),
        _cores(curve, step),
        _plateau(curve),
    ]


def held_up(curve: Curve, step: Step, storage: StorageWatch) -> list[grading.Signal]:
    """Whether storage is what requests wait for: as the kernel counts it, else by who sleeps in it."""
    asleep = _asleep(curve, step, storage)
    if asleep is not None and asleep.evidence.passed and not _is_counted(storage):
        return [asleep]
    return [_storage(storage), *_waited_for(storage, asleep)]


def _is_counted(storage: StorageWatch) -> bool:
    """Whether what the kernel counts of waiting, or of the device's work, shows it already."""
    if _is_by_use(storage):
        return _stall_by_use(storage) > 0 and not _is_written_back(storage)
    return _stall(storage) >= STALLED and figures.point(storage.waiting) >= MOSTLY


def _asleep(curve: Curve, step: Step, storage: StorageWatch) -> grading.Signal | None:
    """Whether threads that sleep in the kernel take turns there, or queue; none where nobody looked."""
    share, threads = storage.blocked, storage.blocked_threads
    if not isinstance(share, Estimate) or not isinstance(threads, Estimate):
        return None
    at_once = threads.point / share.point if share.point > 0 else 0.0
    longer = _longer(curve, step, threads.point)
    text = (
        f"some thread of the service sleeps in the kernel, as who waits for storage does, "
        f"{numbers.shown(share)} of the time (limit {numbers.percent(MOSTLY)})"
    )
    if share.point >= MOSTLY:
        text += f", {at_once:.2g} of them at once"
        if longer is not None and at_once > AT_ONCE:
            text += f", a request {longer:.2g} times as long as at the lightest load"
    queues = share.point >= SATURATED and longer is not None and longer >= LONGER
    passed = share.point >= MOSTLY and (at_once <= AT_ONCE or queues)
    chip = f"asleep in the kernel {numbers.percent(share.point)}"
    found = grading.at_least(ASLEEP, share, MOSTLY, text=text, chip=chip)
    return found if passed else grading.stated(ASLEEP, False, text=text)


def _longer(curve: Curve, step: Step, threads: float) -> float | None:
    """How long a request sleeps, over that of the lightest load (Little's law); none without another."""
    first, storage = disk_writes.known(curve)[0]
    before = storage.blocked_threads
    if first is step or not isinstance(before, Estimate) or before.point <= 0:
        return None
    rates = completed(first), completed(step)
    return (threads / rates[1]) / (before.point / rates[0]) if min(rates) > 0 else None


def _is_by_use(storage: StorageWatch) -> bool:
    """Whether only how busy a device is speaks for it."""
    return not isinstance(storage.stalled, Estimate) or (
        _stall(storage) < STALLED and _stall_by_use(storage) > 0
    )


def _is_written_back(storage: StorageWatch) -> bool:
    """Whether a device is busy with what no task waits for."""
    waiting = storage.waiting
    return _stall_by_use(storage) > 0 and isinstance(waiting, Estimate) and waiting.point < STALLED


def _waited_for(storage: StorageWatch, asleep: grading.Signal | None) -> list[grading.Signal]:
    """A part of what one resource does may stop everything, and another part of it be the limit."""
    waiting = storage.waiting
    if _is_by_use(storage) or not isinstance(waiting, Estimate):
        return []
    text = (
        f"some task waits for storage {numbers.shown(waiting)} of the time (limit {numbers.percent(MOSTLY)})"
    )
    passed = True if waiting.point >= MOSTLY else None
    if passed is None and asleep is not None:
        text += f"; {asleep.evidence.text}"
    return [grading.stated("storage.waited-for", passed, text=text)]


def _storage(storage: StorageWatch) -> grading.Signal:
    """Whether storage holds the machine up: by waiting for it, else by how busy a device is."""
    stalled, busy, waiting = storage.stalled, storage.device_busy, storage.waiting
    by_use = _is_by_use(storage)
    if by_use and isinstance(waiting, Estimate) and _is_written_back(storage):
        text = (
            f"a device is busy {numbers.shown(busy)} of the time, and tasks wait for storage "
            f"{numbers.shown(waiting)} of it (limit {numbers.percent(STALLED)})"
        )
        return grading.stated("storage.busy", None, text=text)  # it writes back what nobody waits for
    if by_use:
        return grading.at_least(
            "storage.busy",
            busy,
            SATURATED,
            text=f"a device is busy {numbers.shown(busy)} of the time (limit {numbers.percent(SATURATED)})",
            chip=f"device busy {_percent(busy)}",
        )
    return grading.at_least(
        "storage.stalled",
        stalled,
        STALLED,
        text=f"nobody could go on for storage {numbers.shown(stalled)} of the time "
        f"(limit {numbers.percent(STALLED)})",
        chip=f"stalled {_percent(stalled)} by storage",
    )


def _percent(figure: object) -> str:
    return numbers.percent(figure.point) if isinstance(figure, Estimate) else "?"


def _bytes(curve: Curve) -> grading.Signal:
    """Whether requests move bytes, and each as many as the others."""
    moved = disk_writes.per_request(curve, "written", "read")
    if moved is None:
        return grading.stated("storage.bytes", None, text="bytes of a request are not known")
    text = f"a request moves {disk_writes.size(moved.mean)} to or from storage"
    if moved.mean < LEAST_BYTES:
        return grading.stated("storage.bytes", False, text=f"{text} (limit {disk_writes.size(LEAST_BYTES)})")
    spread = moved.variation
    if spread is None:
        return grading.stated("storage.bytes", None, text=f"{text}, at the one level that was looked at")
    text += (
        f", the same over the levels within {numbers.percent(spread)} (limit {numbers.percent(SAME_BYTES)})"
    )
    return grading.stated(
        "storage.bytes", spread <= SAME_BYTES, text=text, chip=f"{disk_writes.size(moved.mean)} a request"
    )


def _cores(curve: Curve, step: Step) -> grading.Signal:
    if not step.processes or curve.cores_allotted <= 0:
        return grading.stated("cpu.room", None, text="CPU of the service was not read")
    unread = [process for process in step.processes if not isinstance(process.cpu, Estimate)]
    found = room_signal(curve, step, IDLE_CPU)
    if unread and found.evidence.passed:  # what was not read is not zero
        text = f"the CPU of {len(unread)} of {len(step.processes)} processes was not read"
        return grading.stated("cpu.room", None, text=text)
    return found


def _plateau(curve: Curve) -> grading.Signal:
    capacity = capacity_of(curve)
    if not isinstance(capacity, Capacity):
        return grading.stated("throughput.gain", None, text=capacity.reason)
    gain = capacity.saturation.gain_per_doubling
    return gain_signal("throughput.gain", gain, gain < GAIN_PER_DOUBLING)


def _rivals(facts: Facts, curve: Curve, step: Step, storage: StorageWatch) -> list[Counter]:
    return [
        waits.machine_rival(facts, curve, step),
        _paging(curve),
        _log_lines(curve),
        disk_writes.own_rival(storage),
        grading.generator_rival(step),
    ]


def _paging(curve: Curve) -> Counter:
    """Memory that is too small makes storage busy as well."""
    faults = disk_writes.per_request(curve, "major_faults")
    if faults is None:
        return grading.rival("paging", "page faults were not read", None)
    text = f"{faults.mean:.2g} pages for a request had to come from storage (limit {PAGED_IN})"
    return grading.rival("paging", text, faults.mean <= PAGED_IN)


def _log_lines(curve: Curve) -> Counter:
    """What is written may be lines of a log: then storage is the limit, and the log the cause."""
    appended = disk_writes.per_request(curve, "appended")
    if appended is None:
        return grading.rival("lines of a log", "which files grew was not read", None)
    text = f"files that are written at their end grew by {disk_writes.size(appended.mean)} a request"
    is_line = 0 < appended.mean <= LINE_BYTES
    return grading.rival("lines of a log", text, None if is_line else True)


def _finding(facts: Facts, curve: Curve, step: Step, storage: StorageWatch) -> Finding | None:
    signals, rivals = _signals(curve, step, storage), _rivals(facts, curve, step, storage)
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(curve))
    if grade is None:
        return None
    moved = disk_writes.per_request(curve, "written", "read")
    each = "its bytes" if moved is None else disk_writes.size(moved.mean)
    if any(signal.evidence.signal == ASLEEP for signal in signals):
        what, stall = "Threads sleep until storage has done its part", figures.point(storage.blocked)
    elif _is_by_use(storage):
        what, stall = "A device is busy", _stall_by_use(storage)
    else:
        what, stall = "Storage holds everything up", _stall(storage)
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, stall),
        scope=curve.label,
        statement=grading.statement(
            f"{what} {numbers.percent(stall)} of the time: each request moves {each} there"
        ),
        explanation=f"At {load_text.load_with_unit(curve, step)} requests wait for storage while "
        f"processors have "
        "time left.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"Write several requests' data at once or sync less often: {each} each at "
        f"{numbers.with_unit(completed(step), '1/s')} is what this device bears.",
        confirm="the same on a memory file system, or without waiting for the disk: capacity rises",
        curves=(curve.label,),
    )


def _stall_by_use(storage: StorageWatch) -> float:
    busy = storage.device_busy
    return busy.point if isinstance(busy, Estimate) and busy.point >= SATURATED else 0.0


def _silence(facts: Facts, curve: Curve, step: Step, storage: StorageWatch) -> str:
    return grading.reason(_signals(curve, step, storage), _rivals(facts, curve, step, storage))
