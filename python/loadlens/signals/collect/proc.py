"""CPU, memory, threads, switches and I/O of the services' processes, from /proc.

Processes that appear later are found: each tick looks at the pids it has not seen before and takes those
whose parent, session or mark belongs to a watched service. Switches and run-queue waits of a process are the
sum over its threads, those that ended included as far as they were seen. A thread that did not run since the
last tick costs one small read and yields no row.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from stat import S_ISREG
from typing import ClassVar, Literal, NamedTuple

from loadlens.model.readings import ProcMetrics
from loadlens.signals.collect.monitor import Monitor, Row, labels, reading
from loadlens.signals.collect.scene import Scene

FIRST_DESCRIPTORS = 64  # logs are opened early; thousands of sockets behind them are not looked at
PSS_EVERY = 5  # ticks: the kernel walks all pages of the process for it
_LOOK_AGAIN_EVERY = 10  # ticks: pids without a known service are looked at again
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_STANDARD_OUTPUT = (1, 2)
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Watched:
    """A process to watch, under the name of its service."""

    service: str
    replica: int
    pid: int
    mark: str = ""  # an environment entry that everything of this replica carries
    tree: bool = True  # false: this process alone, not what it starts


@dataclass(frozen=True, slots=True)
class Processes:
    """Settings of the proc monitor."""

    monitor: ClassVar[str] = "proc"
    processes: tuple[Watched, ...]


def wanted(scene: Scene) -> Processes:
    """Every process; services and drivers with all that they start, other parts of the lab alone."""
    return Processes(
        tuple(
            Watched(p.service, p.replica, p.pid, p.mark, tree=p.is_tree)
            for p in scene.processes
            if p.pid is not None
        )
    )


class _Files(NamedTuple):
    """Of a process; none where we may not look."""

    appended: int | None  # bytes so far
    changed: int | None  # files since the last tick


class _Stat(NamedTuple):
    comm: str
    parent: int
    session: int
    minor_faults: int
    major_faults: int
    user_ticks: int
    system_ticks: int
    threads: int
    started: int
    rss_pages: int


_Written = Literal["end", "elsewhere", "not"]  # where a descriptor writes its file


class _Thread:
    """Counters of one thread so far."""

    __slots__ = ("involuntary", "is_blocked", "labels", "run_ns", "voluntary", "wait_ns")

    def __init__(self) -> None:
        self.run_ns = -1  # -1: not read yet
        self.wait_ns = 0
        self.voluntary = 0
        self.involuntary = 0
        self.labels = ""
        self.is_blocked = False

    def add(self, other: _Thread) -> None:
        """Add what another thread did."""
        self.run_ns += max(0, other.run_ns)
        self.wait_ns += other.wait_ns
        self.voluntary += other.voluntary
        self.involuntary += other.involuntary


class _Process:
    """A process that is watched, and what its ended threads had done."""

    def __init__(self, pid: int, started: int, owner: Watched) -> None:
        self.path = f"/proc/{pid}"
        self.pid = pid
        self.started = started
        self.owner = owner
        self.comm = ""
        self.labels = ""
        self.threads: dict[str, _Thread] = {}
        self.ended = _Thread()
        self.ended.run_ns = 0
        self.appended = 0
        self.written: dict[tuple[int, int, int], _Written] = {}  # by descriptor, device and inode

    def name(self, comm: str) -> None:
        """A process takes another name when it executes another program."""
        if comm == self.comm:
            return
        self.comm = comm
        self.labels = labels(
            service=self.owner.service, replica=self.owner.replica, pid=self.pid, process=comm
        )
        for thread in self.threads.values():
            thread.labels = ""


class ProcMonitor(Monitor):
    """The monitor."""

    name = "proc"
    settings = Processes

    def __init__(self) -> None:
        self._watched: tuple[Watched, ...] = ()
        self._sessions: dict[int, Watched] = {}  # a service leads a session of its own
        self._marks: dict[bytes, Watched] = {}
        self._tracked: dict[int, _Process] = {}
        self._seen: set[int] = set()
        self._ticks = 0
        self._sizes: dict[tuple[int, int], int] = {}  # of files that are appended to, by device and inode
        self._times: dict[tuple[int, int], int] = {}  # of the last change of files that are written elsewhere

    def open(self, spec: Processes) -> None:
        """Watch the processes of the spec, and this monitor itself."""
        self._watched = spec.processes
        if all(watched.pid != os.getpid() for watched in self._watched):
            self._watched += (Watched("(monitor)", 1, os.getpid(), tree=False),)
        trees = [watched for watched in self._watched if watched.tree]
        self._sessions = {watched.pid: watched for watched in trees}
        self._marks = {watched.mark.encode(): watched for watched in trees if watched.mark}
        for watched in self._watched:
            stat = _read_stat(f"/proc/{watched.pid}")
            if stat is not None:
                self._tracked[watched.pid] = _Process(watched.pid, stat.started, watched)

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """One row for each metric of each process, and two for each thread that ran."""
        self._find_new()
        with_pss = last or self._ticks % PSS_EVERY == 0
        self._ticks += 1
        counted: set[tuple[int, int]] = set()
        for process in list(self._tracked.values()):
            stat = _read_stat(process.path)
            if stat is None or stat.started != process.started:
                del self._tracked[process.pid]
                continue
            files = self._read_files(process, counted)
            yield from _read_process(process, stat, files, with_pss=with_pss, all_threads=last)

    def _read_files(self, process: _Process, counted: set[tuple[int, int]]) -> _Files:
        """Return the growth and changes of the files that it writes; none where we may not look.

        Args:
            process: Whose descriptors are looked at.
            counted: Files that were counted in this tick, by whichever process had them first.
        """
        try:
            present = sorted(int(name) for name in os.listdir(f"{process.path}/fd"))
        except OSError:
            return _Files(None, None)
        changed = 0
        for number in present[:FIRST_DESCRIPTORS]:
            try:
                file = os.stat(f"{process.path}/fd/{number}")
            except OSError:
                continue  # closed since it was listed
            if not S_ISREG(file.st_mode):
                continue
            name, key = (file.st_dev, file.st_ino), (number, file.st_dev, file.st_ino)
            if key not in process.written:
                process.written[key] = _where_written(process.path, number)
            where = process.written[key]
            if where == "not" or name in counted:
                continue
            counted.add(name)
            # a file that is met for the first time begins to count; one that was cut off begins anew
            if where == "end":
                process.appended += max(0, file.st_size - self._sizes.get(name, file.st_size))
                self._sizes[name] = file.st_size
            else:
                changed += file.st_mtime_ns != self._times.get(name, file.st_mtime_ns)
                self._times[name] = file.st_mtime_ns
        return _Files(process.appended, changed)

    def _find_new(self) -> None:
        """Add processes that the watched services have started since the last tick."""
        present = {int(name) for name in os.listdir("/proc") if name[0] <= "9"}
        if self._ticks % _LOOK_AGAIN_EVERY == 0:
            self._seen = set(self._tracked)
        self._seen &= present  # a pid that was away may come back as another process
        unknown = {}
        for pid in sorted(present - self._seen):
            stat = _read_stat(f"/proc/{pid}")
            if stat is not None:
                unknown[pid] = stat
        self._seen = present
        has_new = True
        while has_new:  # a child may have a lower pid than its parent
            has_new = False
            for pid, stat in list(unknown.items()):
                owner = self._owner(pid, stat)
                if owner is not None:
                    self._tracked[pid] = _Process(pid, stat.started, owner)
                    del unknown[pid]
                    has_new = True

    def _owner(self, pid: int, stat: _Stat) -> Watched | None:
        parent = self._tracked.get(stat.parent)
        if parent is not None and parent.owner.tree:
            return parent.owner
        by_session = self._sessions.get(stat.session)
        if by_session is not None or not self._marks:
            return by_session
        return next((self._marks[entry] for entry in _environment(pid) if entry in self._marks), None)


def _read_process(
    process: _Process, stat: _Stat, files: _Files, *, with_pss: bool, all_threads: bool
) -> Iterator[Row]:
    process.name(stat.comm)
    text = process.labels
    thread_rows = list(_read_threads(process, every=all_threads))
    done = _Thread()
    done.run_ns = 0
    for thread in (process.ended, *process.threads.values()):
        done.add(thread)
    read_bytes, write_bytes = _read_io(process.path)
    yield reading(ProcMetrics.cpu_user_s, text, round(stat.user_ticks * _TICK_S, 6))
    yield reading(ProcMetrics.cpu_system_s, text, round(stat.system_ticks * _TICK_S, 6))
    yield reading(ProcMetrics.rss_bytes, text, stat.rss_pages * _PAGE_BYTES)
    yield reading(ProcMetrics.threads, text, stat.threads)
    yield reading(
        ProcMetrics.threads_blocked, text, sum(thread.is_blocked for thread in process.threads.values())
    )
    yield reading(ProcMetrics.descriptors, text, _count_descriptors(process.path))
    yield reading(ProcMetrics.descriptor_limit, text, _read_descriptor_limit(process.pid))
    yield reading(ProcMetrics.voluntary_switches, text, done.voluntary)
    yield reading(ProcMetrics.involuntary_switches, text, done.involuntary)
    yield reading(ProcMetrics.run_s, text, done.run_ns / 1e9)
    yield reading(ProcMetrics.runq_wait_s, text, done.wait_ns / 1e9)
    yield reading(ProcMetrics.read_bytes, text, read_bytes)
    yield reading(ProcMetrics.write_bytes, text, write_bytes)
    yield reading(ProcMetrics.appended_bytes, text, files.appended)
    yield reading(ProcMetrics.files_changed, text, files.changed)
    yield reading(ProcMetrics.minor_faults, text, stat.minor_faults)
    yield reading(ProcMetrics.major_faults, text, stat.major_faults)
    if with_pss:
        yield reading(ProcMetrics.pss_bytes, text, _read_pss(process.path))
    yield from thread_rows


def _read_threads(process: _Process, *, every: bool) -> Iterator[Row]:
    """Bring the threads up to date; rows for those that ran, or for all."""
    try:
        present = os.listdir(f"{process.path}/task")
    except OSError:
        present = []
    for tid in process.threads.keys() - set(present):
        process.ended.add(process.threads.pop(tid))
    for tid in present:
        path = f"{process.path}/task/{tid}"
        thread = process.threads.get(tid) or _Thread()
        try:
            run_ns, wait_ns, _ = map(int, _read(f"{path}/schedstat").split())
            ran = run_ns != thread.run_ns or wait_ns != thread.wait_ns
            if ran:
                thread.voluntary, thread.involuntary = _read_switches(path)
            if ran or thread.is_blocked:  # who sleeps as before does so in the same state
                thread.is_blocked = _read_state(path) == b"D"
        except OSError:
            continue  # ended since it was listed
        if not thread.labels:
            thread.labels = _thread_labels(process, tid)
        process.threads[tid] = thread
        thread.run_ns, thread.wait_ns = run_ns, wait_ns
        if ran or every:
            yield reading(ProcMetrics.thread_run_s, thread.labels, run_ns / 1e9)
            yield reading(ProcMetrics.thread_runq_wait_s, thread.labels, wait_ns / 1e9)


def _thread_labels(process: _Process, tid: str) -> str:
    try:
        name = _read(f"{process.path}/task/{tid}/comm").decode(errors="replace").rstrip("\n")
    except OSError:
        name = ""
    return labels(
        service=process.owner.service,
        replica=process.owner.replica,
        pid=process.pid,
        process=process.comm,
        tid=tid,
        thread=name,
    )


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 16_384)
    finally:
        os.close(descriptor)


def _read_stat(path: str) -> _Stat | None:
    """None if the process is gone, or has ended and only waits to be reaped."""
    try:
        head, _, rest = _read(f"{path}/stat").rpartition(b")")
    except OSError:
        return None
    fields = rest.split()
    if not fields or fields[0] in (b"Z", b"X"):
        return None
    return _Stat(
        comm=head.partition(b"(")[2].decode(errors="replace"),
        parent=int(fields[1]),
        session=int(fields[3]),
        minor_faults=int(fields[7]),
        major_faults=int(fields[9]),
        user_ticks=int(fields[11]),
        system_ticks=int(fields[12]),
        threads=int(fields[17]),
        started=int(fields[19]),
        rss_pages=int(fields[21]),
    )


def _read_state(path: str) -> bytes:
    return _read(f"{path}/stat").rpartition(b")")[2].split(None, 1)[0]


def _read_switches(path: str) -> tuple[int, int]:
    """Voluntary and involuntary context switches of one thread."""
    text = _read(f"{path}/status")
    at = text.rfind(b"voluntary_ctxt_switches", 0, text.rfind(b"nonvoluntary_ctxt_switches"))
    fields = text[at:].split()
    return int(fields[1]), int(fields[3])


def _read_io(path: str) -> tuple[int | None, int | None]:
    """Bytes read from and written to storage; none where we may not look."""
    try:
        fields = dict(line.split(b": ") for line in _read(f"{path}/io").splitlines())
        return int(fields[b"read_bytes"]), int(fields[b"write_bytes"])
    except (OSError, KeyError):
        return None, None


def _where_written(path: str, number: int) -> _Written:
    """Return where data that is written to a descriptor goes."""
    try:
        fields = dict(line.split(b":", 1) for line in _read(f"{path}/fdinfo/{number}").splitlines())
        flags = int(fields[b"flags"], 8)
    except (OSError, KeyError, ValueError):
        return "not"
    if flags & os.O_ACCMODE == os.O_RDONLY:
        return "not"
    return "end" if flags & os.O_APPEND or number in _STANDARD_OUTPUT else "elsewhere"


def _count_descriptors(path: str) -> int | None:
    try:
        # the kernel says the number as the folder's size since 6.2; before, the entries must be listed
        return os.stat(f"{path}/fd").st_size or len(os.listdir(f"{path}/fd"))
    except OSError:
        return None


def _read_descriptor_limit(pid: int) -> int | None:
    """Descriptors that a process may have; none where we may not look, or where they are unlimited."""
    try:
        limit = resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]
    except OSError:
        return None
    return None if limit == resource.RLIM_INFINITY else limit


def _read_pss(path: str) -> int | None:
    try:
        for text in _read(f"{path}/smaps_rollup").splitlines():
            if text.startswith(b"Pss:"):
                return int(text.split()[1]) * 1024
    except OSError:
        return None
    return None


def _environment(pid: int) -> list[bytes]:
    """The entries that the process was started with; none of a process that is not ours to look at."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []
