"""Processes of a PostgreSQL server that serve the services, by what their titles say that they do.

The server keeps the title of each such process up to date (`update_process_title`): who is connected, from
where, and the command that it executes, with `waiting` while it waits for a lock. To read it costs the server
nothing and needs no credentials. Connections of a user to a database are left out unless one of them was seen
to be of a service, or they cannot be seen.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from loadlens.machine.listening_sockets import name_of, with_descendants
from loadlens.machine.peers import Ends
from loadlens.model.readings import BackendsMetrics, MonitorMetrics
from loadlens.signals.collect.monitor import NO_LABELS, Monitor, Row, labels, reading
from loadlens.signals.collect.scene import Scene

EVERY_S: Final = 0.1
LOOK_AGAIN_S: Final = 1.0  # for servers, and for who is connected
KNOWN_S: Final = 5.0  # likewise, once a server and a client of it are known
MOST_LOOKS: Final = 5  # at the connections of a user to a database
BEGIN: Final = b"postgres: "
# User and database, and the cluster's name before them, may have blanks: the place of the client has none.
_TITLE: Final = re.compile(
    r"postgres: (?!(?:[^ ]+: )?walsender )(.* (?:\[local\]|[^ ]*(?=\()))(?:\((\d+)\))? (.+)"
)
_STARTING: Final = frozenset({"startup", "authentication", "initializing"})


@dataclass(frozen=True, slots=True)
class Root:
    """A process that may call a server, or be one, with all that it started."""

    service: str
    pid: int


@dataclass(frozen=True, slots=True)
class Callers:
    """Settings of the backends monitor."""

    monitor: ClassVar[str] = "backends"
    processes: tuple[Root, ...]


@dataclass(frozen=True, slots=True)
class Backend:
    """A process that serves one connection."""

    client: str  # user, database and host
    port: int  # of the client; 0: a socket of the file system
    state: str  # idle, idle in transaction, active, or waiting for a lock
    command: str  # that it executes; empty: none


def wanted(scene: Scene) -> Callers | None:
    """The services on this machine and what they call: a server may be any of them, or started by one."""
    roots = tuple(Root(p.service, p.pid) for p in scene.replicas if p.pid is not None and p.is_here)
    return Callers(roots) if roots else None


def backend_of(title: str) -> Backend | None:
    """Return what a title says; none if it is none of a process that serves a connection."""
    words = _TITLE.fullmatch(title)
    if words is None or words[3] in _STARTING:
        return None
    client, port, activity = words[1], int(words[2] or 0), words[3]
    if activity.endswith(" waiting"):
        return Backend(client, port, "waiting", activity.removesuffix(" waiting"))
    if activity.startswith("idle"):
        return Backend(client, port, activity.removesuffix(" (aborted)"), "")
    return Backend(client, port, "active", activity)


class BackendsMonitor(Monitor):
    """The monitor; a thread samples between its ticks."""

    name = "backends"
    settings = Callers

    def __init__(self) -> None:
        self._roots: tuple[Root, ...] = ()
        self._servers: dict[int, dict[str, str]] = {}  # labels by pid of a server's first process
        self._own: set[str] = set()  # clients that are services
        self._looks: Counter[str] = Counter()  # at clients that are not known as services
        self._looked_ns = 0
        self._reported: set[str] = set()  # reasons why a sample failed
        self._rows: deque[Row] = deque()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="backends", daemon=True)

    def open(self, spec: Callers) -> None:
        """Begin to sample."""
        self._roots = spec.processes
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Yield the samples since the last tick."""
        if last:
            self.close()
        while self._rows:
            yield self._rows.popleft()

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            now_ns = time.monotonic_ns()
            try:
                self._rows.extend(self._moment(now_ns))
            except Exception as error:  # whatever it is, the thread goes on and the gap is in the record
                why = f"{type(error).__name__}: {error}"[:300]
                if why not in self._reported:
                    self._reported.add(why)
                    self._rows.append(reading(MonitorMetrics.missed, labels(why=why), None, now_ns))

    def _moment(self, now_ns: int) -> Iterator[Row]:
        """Yield a sample of every server, after a look for them if one is due."""
        if now_ns - self._looked_ns >= (KNOWN_S if self._own else LOOK_AGAIN_S) * 1e9:
            self._looked_ns = now_ns
            self._look()
        for server, own in self._servers.items():
            yield from self._sample(server, own, now_ns)
        if self._servers:
            yield reading(BackendsMetrics.sampling_cpu_s, NO_LABELS, time.thread_time(), now_ns)

    def _look(self) -> None:
        """Look for servers, which have processes with titles, and for clients that are services."""
        self._servers = {
            parent: {"service": root.service, "process": name_of(parent)}
            for root in self._roots
            for pid in with_descendants([root.pid])
            if _title(pid).startswith(BEGIN.decode())
            for parent in [_parent(pid)]
        }
        backends = {pid: each for server in self._servers for pid, each in _backends(server).items()}
        unknown = {pid: each for pid, each in backends.items() if each.client not in self._own}
        unknown = {pid: each for pid, each in unknown.items() if self._looks[each.client] < MOST_LOOKS}
        if unknown:
            callers = {root.pid for root in self._roots} - self._servers.keys()
            ends = Ends.of(sorted(callers), apart=self._servers)
            self._own |= {each.client for pid, each in unknown.items() if ends.has(pid, each.port)}
            self._looks.update({each.client for each in unknown.values()})

    def _sample(self, server: int, of: Mapping[str, str], now_ns: int) -> Iterator[Row]:
        """Yield the backends of a server by state and command, and how many there are."""
        own = [backend for backend in _backends(server).values() if backend.client in self._own]
        counts = Counter((backend.state, backend.command) for backend in own)
        for (state, command), count in sorted(counts.items()):
            text = labels(**of, state=state, kind=command)
            yield reading(BackendsMetrics.backends, text, count, now_ns)
        yield reading(BackendsMetrics.backends_in_all, labels(**of), len(own), now_ns)


def _backends(server: int) -> dict[int, Backend]:
    """Return the processes of a server that serve connections, by pid."""
    titles = ((pid, backend_of(_title(pid))) for pid in _children(server))
    return {pid: backend for pid, backend in titles if backend is not None}


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].decode(errors="replace").rstrip()
    except OSError:
        return ""  # it ended


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return sorted(with_descendants([pid]) - {pid})  # a kernel without these files, or it ended
