"""A JVM from outside: collections, stops, heap and compiling, from the counters that HotSpot keeps in a file.

Every HotSpot JVM maps /tmp/hsperfdata_USER/PID and counts there; `jstat` reads the same file. It is read like
any file, so the JVM does nothing for it. The layout (jdk.internal.perf, version 2.0) is a head with the byte
order and the number of entries, then entries with a name and a value each. Other programs can write to /tmp:
only a regular file of the process's own user is taken, and nothing in it is trusted.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from loadlens.machine.listening_sockets import with_descendants
from loadlens.model.readings import JvmMetrics, MonitorMetrics
from loadlens.signals.collect.monitor import Monitor, Row, labels, reading
from loadlens.signals.collect.scene import Root, Scene

LOOK_AGAIN_EVERY: Final = 10  # ticks: for JVMs that a service has started
LARGEST_BYTES: Final = 1 << 20  # of a file: the JVM makes 32 KiB unless it is asked for more
MOST_ENTRIES: Final = 10_000
MOST_COLLECTORS: Final = 8
MOST_SPACES: Final = 4  # of a generation
KINDS: Final = ("young", "full", "phases")  # of the collectors 0, 1 and 2, as jstat names them
PLACE: Final = "/proc/{pid}/root/tmp"  # as the process sees it, whatever java.io.tmpdir says
NO_FILE: Final = "the JVM keeps no counters: not HotSpot, -XX:-UsePerfData or -XX:+PerfDisableSharedMem"

_MAGIC: Final = b"\xca\xfe\xc0\xc0"
_HEAD: Final = "iiqii"  # used, overflow, time of the last change, offset of the first entry, entries
_ENTRY: Final = (
    "iiibbbbi"  # length, offset of the name, items, type, flags, unit, variability, offset of data
)
_AT_HEAD: Final = 8  # after magic, byte order, version 2.0 and accessible
_WANTED: Final = re.compile(
    r"sun\.gc\.(collector|generation)\.\d\.|sun\.gc\.policy\.name|sun\.rt\.safepoint|sun\.os\.hrt\.frequency"
    r"|java\.threads\.live$|java\.ci\.totalTime"
)

Counters = Mapping[str, int | str]


@dataclass(frozen=True, slots=True)
class Jvms:
    """Settings of the jvm monitor."""

    monitor: ClassVar[str] = "jvm"
    processes: tuple[Root, ...]


def wanted(scene: Scene) -> Jvms | None:
    """The replicas of which a process is a JVM."""
    roots = tuple(
        Root(p.service, p.replica, p.pid)
        for p in scene.replicas
        if p.pid is not None and p.is_here and any(_is_jvm(pid) for pid in with_descendants([p.pid]))
    )
    return Jvms(roots) if roots else None


class JvmMonitor(Monitor):
    """The monitor: a series for each JVM."""

    name = "jvm"
    settings = Jvms

    def __init__(self) -> None:
        self._roots: tuple[Root, ...] = ()
        self._watched: dict[int, dict[str, str | int]] = {}  # labels by pid
        self._silent: set[int] = set()  # of which it was said that they cannot be read
        self._ticks = 0

    def open(self, spec: Jvms) -> None:
        """Take the processes of the spec."""
        self._roots = spec.processes

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Every counter of every JVM once; one row for a JVM that cannot be read."""
        if self._ticks % LOOK_AGAIN_EVERY == 0:
            self._look()
        self._ticks += 1
        for pid, own in self._watched.items():
            try:
                counters = parse(_content(pid))
            except (OSError, ValueError) as fault:
                if pid not in self._silent and os.path.exists(f"/proc/{pid}"):
                    self._silent.add(pid)
                    yield reading(MonitorMetrics.missed, labels(**own, why=_reason(fault)), None)
                continue
            yield from rows(counters, own)

    def _look(self) -> None:
        for root in self._roots:
            for pid in sorted(with_descendants([root.pid])):
                if pid not in self._watched and _is_jvm(pid):
                    self._watched[pid] = {"service": root.service, "replica": root.replica, "pid": pid}


def _is_jvm(pid: int) -> bool:
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name == "java" or _file(pid) is not None
    except OSError:
        return False


def _reason(fault: OSError | ValueError) -> str:
    if isinstance(fault, FileNotFoundError):
        return NO_FILE
    if isinstance(fault, PermissionError):
        return "the JVM's counters belong to another user (sudo)"
    return f"the JVM's counters cannot be read: {getattr(fault, 'strerror', None) or fault}"


# --- the file ---------------------------------------------------------------------------------------------


def _file(pid: int) -> Path | None:
    """Return the file of a process, in the folders and under the pid that the process itself sees."""
    status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    numbers = re.search(r"^NSpid:\s*(.*)$", status, re.MULTILINE)
    inside = numbers[1].split()[-1] if numbers and numbers[1].split() else str(pid)
    folders = Path(PLACE.format(pid=pid)).glob("hsperfdata_*")
    owner = os.stat(f"/proc/{pid}").st_uid
    for folder in folders:
        file = folder / inside
        try:
            entry = file.lstat()
        except OSError:
            continue
        if stat.S_ISREG(entry.st_mode) and entry.st_uid == owner:
            return file
    return None


def _content(pid: int) -> bytes:
    """Return the file of a process; a mapping would end this process if the file were cut meanwhile."""
    file = _file(pid)
    if file is None:
        raise FileNotFoundError(NO_FILE)
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, LARGEST_BYTES)
    finally:
        os.close(descriptor)


def parse(content: bytes) -> Counters:
    """Return the counters that are wanted, by name: numbers, and texts for names.

    An entry that does not lie within the content is left out, with all behind it if its length is wrong.

    Raises:
        ValueError: The content is no file of counters, or one of a version that is not known.
    """
    if len(content) < _AT_HEAD + 24 or content[:4] != _MAGIC:
        raise ValueError("no file of a JVM's counters")
    order, major, accessible = content[4], content[5], content[7]
    if order not in (0, 1) or major != 2:
        raise ValueError(f"version {major} is not known")
    if not accessible:
        raise ValueError("the JVM has not finished its start")
    end = "<" if order else ">"
    _, _, _, at, entries = struct.unpack_from(end + _HEAD, content, _AT_HEAD)
    form = struct.Struct(end + _ENTRY)
    counters: dict[str, int | str] = {}
    for _ in range(min(entries, MOST_ENTRIES)):
        if not 0 <= at <= len(content) - form.size:
            break
        length, name_at, items, kind, _, _, _, data_at = form.unpack_from(content, at)
        if length < form.size or at + length > len(content):
            break
        entry = content[at : at + length]
        at += length
        if not 0 < name_at < length or not 0 < data_at < length:
            continue
        name = entry[name_at:].partition(b"\0")[0].decode("ascii", errors="replace")
        if not _WANTED.match(name):
            continue
        if kind == ord("J") and items == 0 and data_at + 8 <= length:
            counters[name] = struct.unpack_from(end + "q", entry, data_at)[0]
        elif kind == ord("B") and items > 0:
            counters[name] = entry[data_at : data_at + items].partition(b"\0")[0].decode(errors="replace")
    return counters


# --- counters to rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The counters of a JVM; a negative number is none."""

    counters: Counters

    def number(self, name: str) -> int | None:
        value = self.counters.get(name)
        return value if isinstance(value, int) and value >= 0 else None

    def text(self, name: str) -> str:
        value = self.counters.get(name)
        return value if isinstance(value, str) else ""

    def seconds(self, name: str) -> float | None:
        ticks, frequency = self.number(name), self.number("sun.os.hrt.frequency")
        return ticks / frequency if ticks is not None and frequency else None


def rows(counters: Counters, own: Mapping[str, str | int]) -> Iterator[Row]:
    """Yield the readings of one JVM; what its version does not count is left out.

    Args:
        counters: As `parse` returns them.
        own: Labels of the process.
    """
    numbers, text = _Numbers(counters), labels(**own)
    for place in range(MOST_COLLECTORS):
        prefix = f"sun.gc.collector.{place}"
        count, took = numbers.number(f"{prefix}.invocations"), numbers.seconds(f"{prefix}.time")
        if count is None:
            continue
        kind = KINDS[place] if place < len(KINDS) else "other"
        named = labels(**own, kind=kind, name=numbers.text(f"{prefix}.name"))
        yield reading(JvmMetrics.collections, named, count)
        yield reading(JvmMetrics.collection_s, named, took)
    yield from _heap(numbers, own)
    for metric, value in (
        (JvmMetrics.safepoints, numbers.number("sun.rt.safepoints")),
        (JvmMetrics.at_safepoint_s, numbers.seconds("sun.rt.safepointTime")),
        (JvmMetrics.live_threads, numbers.number("java.threads.live")),
        (JvmMetrics.compiling_s, numbers.seconds("java.ci.totalTime")),
    ):
        if value is not None:
            yield reading(metric, text, value)


def _heap(numbers: _Numbers, own: Mapping[str, str | int]) -> Iterator[Row]:
    """Yield used bytes of each space, and of the heap and its old part the bytes that there may be.

    Generations with a size of their own share the heap; elsewhere each may take all of it. Of the two
    survivor spaces of a generation with a size of its own, one is always empty.
    """
    capacity, bounds = 0, []
    is_divided = ":" in numbers.text("sun.gc.policy.name")  # Copy:MSC, ParScav:MSC; not GarbageFirst
    for generation in range(2):
        prefix = f"sun.gc.generation.{generation}"
        most, has = numbers.number(f"{prefix}.maxCapacity"), numbers.number(f"{prefix}.capacity")
        if not most or has is None:
            continue
        capacity += has
        bounds.append(most)
        for space in range(MOST_SPACES):
            used = numbers.number(f"{prefix}.space.{space}.used")
            if used is None:
                continue
            part, whole = numbers.text(f"{prefix}.space.{space}.name"), numbers.text(f"{prefix}.name")
            name = part if generation == 0 else whole.lower()
            yield reading(JvmMetrics.heap_bytes, labels(**own, area="heap", id=name), used)
    if not bounds:
        return
    of_heap = labels(**own, area="heap")
    yield reading(JvmMetrics.heap_capacity_bytes, of_heap, capacity)
    yield reading(JvmMetrics.heap_most_bytes, of_heap, sum(bounds) if is_divided else max(bounds))
    if is_divided and len(bounds) > 1:
        yield reading(JvmMetrics.old_generation_most_bytes, labels(**own), bounds[1])
