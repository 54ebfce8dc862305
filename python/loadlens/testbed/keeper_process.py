"""The keeper: starts the processes of one testbed, drains their output, ends them all when the lab is gone.

Run as a script (`python -I -S keeper_process.py`) so that it starts in milliseconds and needs nothing but the
standard library; `keeper.py` is the lab's end of its socket, and shares the search for processes below. The
keeper is a session leader and a child subreaper: signals meant for the lab do not reach it, and whatever its
descendants leave behind becomes its child. It never blocks on a service: one loop polls everything.

A keeper can be killed, too. So it writes down first what would be left, a second process waits for its end,
and every process that it starts carries a stamp that it hands down whatever it does.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

RUN_VARIABLE = "LOADLENS_RUN"  # on every process of a run
SERVICE_VARIABLE = "LOADLENS_SERVICE"  # SCOPE:SERVICE.REPLICA, on every process of a testbed
KEEPER_VARIABLE = "LOADLENS_KEEPER"  # on keepers, which end by themselves

KEPT_HEAD_BYTES = 512 * 1024
KEPT_TAIL_BYTES = 500 * 1024  # head, tail and the line between them stay below 1 MiB
FOLLOWED_BYTES = 256 * 1024  # buffered output of commands whose output the lab shows
GRACE_S = 1.0  # between TERM and KILL when the lab is gone; no process may be left 3 s after its end
FORCED_S = 1.5

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_F_SETPIPE_SZ = 1031
_IPC_RMID = 0
# Shared memory in the list of what a process maps
_FILE, _SYSTEM_V = b"/dev/shm/PostgreSQL.", b"/SYSV"
_WATCH = "--watch"


# --- processes, as /proc shows them ---------------------------------------------------------------


class Process(NamedTuple):
    """One live process; `started` distinguishes it from a later one with the same pid."""

    pid: int
    parent: int
    session: int
    started: int


def read_process(pid: int) -> Process | None:
    """Return the process with this pid; None if it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if not fields or fields[0] in (b"Z", b"X"):
        return None
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]))


def all_processes() -> dict[int, Process]:
    """Return every live process by pid."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in map(read_process, pids) if process is not None}


def carries(pid: int, *entries: bytes) -> bool:
    """True if the environment that the process was started with holds one of the entries.

    An entry ends with `=value` in full, or with `:` to match the beginning of a value.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = b"\0" + file.read() + b"\0"
    except OSError:
        return False
    return any(
        b"\0" + entry + (b"" if entry.endswith(b":") else b"\0") in environment for entry in entries if entry
    )


def stamp(number: int) -> None:
    """Mark the calling process, and all that will descend from it, with a number of 60 bits.

    The number becomes the soft limit for real-time computing without a pause, in microseconds: longer than
    anything lives, so without effect. fork and exec hand it down, and `setsid`, an empty environment, another
    account or a second fork do not change it.
    """
    with contextlib.suppress(OSError, ValueError):  # a machine with a hard limit below it
        _, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
        resource.setrlimit(resource.RLIMIT_RTTIME, (number, hard))


def has_stamp(pid: int, number: int) -> bool:
    """True if a process, or one that it descends from, was marked with this number."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:
            limits = file.read()
    except OSError:
        return False
    return limits.partition(b"Max realtime timeout")[2].split(maxsplit=1)[:1] == [b"%d" % number]


def members(
    processes: dict[int, Process],
    *,
    roots: Iterable[int],
    sessions: Iterable[int],
    entries: Iterable[bytes],
    stamped: int | None = None,
) -> list[Process]:
    """Return the processes below the roots, in the sessions, or marked by entry or stamp, and all below.

    Keepers and the caller are left out: a keeper ends by itself once its own processes have ended.
    """
    wanted_sessions, marks = set(sessions), tuple(entries)
    pids = set(roots)
    for process in processes.values():
        if (
            process.session in wanted_sessions
            or (marks and carries(process.pid, *marks))
            or (stamped is not None and has_stamp(process.pid, stamped))
        ):
            pids.add(process.pid)
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    waiting = list(pids)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in pids:
                pids.add(child)
                waiting.append(child)
    keeper_entry = f"{KEEPER_VARIABLE}=1".encode()
    return [
        processes[pid]
        for pid in sorted(pids)
        if pid in processes and pid != os.getpid() and not carries(pid, keeper_entry)
    ]


def command_of(pid: int) -> str:
    """Return the command line of a process, shortened for a message."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            text = file.read(4096).replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        text = ""
    return text if len(text) <= 120 else text[:117] + "..."


_mapped: set[bytes | int] = set()  # shared memory of processes that this one has signalled


def send(process: Process, number: int) -> None:
    """Signal this process, and never a later one that reuses its pid; note the memory that it may leave."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        now = read_process(process.pid)
        if now is not None and now.started == process.started:
            _mapped.update(_segments_of(process.pid))
            signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        pass  # ended meanwhile, or runs as a user we may not signal: the caller checks again
    finally:
        os.close(descriptor)


# --- what is left if the keeper is killed ---------------------------------------------------------


class Left(NamedTuple):
    """Remains of a killed keeper; nothing else is ever ended or removed."""

    marker: str  # the id of the run
    processes: dict[int, str]  # pid -> command line
    folders: list[str]
    still: list[int]  # pids that could not be ended


def what_is_left(path: str, *, end: bool, wait: bool = False) -> Left | None:
    """Find what the keeper of a note left, and end it if asked to; None if it lives, or its note is gone.

    Args:
        path: The note (`temporary.py` writes it). It is removed together with what it names.
        end: End and remove what is found.
        wait: Wait for the keeper's end.
    """
    try:
        note = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(note, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        if os.fstat(note).st_nlink == 0:
            return None  # the keeper, or someone like us, has done it
        with open(note, "rb", closefd=False) as file:
            lines = file.read().splitlines()
        if end and not lines:
            os.unlink(path)  # its writer was killed before it had begun anything
            return None
        content, *more = map(json.loads, lines)
        kept = {line.get("keep") for line in more}
        left = Left(content["marker"], {}, [f for f in content["scratch"] if f not in kept], [])
        _find_processes(left, content, end=end)
        left.folders[:] = filter(os.path.exists, left.folders)
        if end and not left.still:
            for folder in left.folders:
                forget_shared_memory(folder)
                shutil.rmtree(folder, ignore_errors=True)
            for group in filter(None, (line.get("group") for line in more)):
                with contextlib.suppress(OSError):  # removed, or not empty
                    os.rmdir(group)
            os.unlink(path)
        return left
    except (OSError, ValueError, KeyError):  # locked by a keeper that lives, or not a note
        return None
    finally:
        os.close(note)


def _find_processes(left: Left, content: dict[str, Any], *, end: bool) -> None:
    entries = [f"{SERVICE_VARIABLE}={content['scope']}:".encode()]
    until = time.monotonic() + FORCED_S
    while alive := members(all_processes(), roots=(), sessions=(), entries=entries, stamped=content["stamp"]):
        for process in alive:
            # the first reading counts: a process about to end has no command line any more
            left.processes.setdefault(process.pid, command_of(process.pid))
            if end:
                send(process, signal.SIGKILL)
        if not end or time.monotonic() > until:
            left.still.extend(process.pid for process in alive)
            return
        time.sleep(0.01)


def _segments_of(pid: int) -> set[bytes | int]:
    """Return the segments of PostgreSQL that a process maps: files, and ids of those of System V it made."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            mapped = [line.split(maxsplit=5) for line in file if _FILE in line or _SYSTEM_V in line]
    except OSError:
        return set()
    made = {row.number for row in _shared_memory() if row.creator == pid} if mapped else set()
    return {words[5].rstrip() for words in mapped if _FILE in words[5]} | (
        {int(words[4]) for words in mapped} & made
    )


class _Shared(NamedTuple):
    """A segment of System V."""

    number: int
    key: int
    creator: int
    attached: int


def _shared_memory() -> list[_Shared]:
    with contextlib.suppress(OSError), open("/proc/sysvipc/shm", "rb") as table:
        rows = (list(map(int, line.split()[:7])) for line in table.read().splitlines()[1:])
        return [_Shared(row[1], row[0] & 0xFFFFFFFF, row[4], row[6]) for row in rows]
    return []


def forget_shared_memory(folder: str) -> None:
    """Remove the shared memory of PostgreSQL servers that were killed and have their data below a folder.

    The seventh line of `postmaster.pid` has its key and id (System V); the first, the process that made it.
    `initdb` runs servers, too, and removes that file when it is ended: what a process mapped when it was
    signalled counts, too.
    """
    named = {}
    for place, below, files in os.walk(folder):
        if "postmaster.pid" in files:
            below.clear()
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(os.path.join(place, "postmaster.pid"), "rb") as file:
                    lines = file.read().splitlines()
                key, number = map(int, lines[6].split())
                named[number] = (key & 0xFFFFFFFF, abs(int(lines[0])))  # negative if it serves no clients
    left = _mapped.difference(*map(_segments_of, all_processes())) if _mapped else set()
    _mapped.difference_update(left)
    for path in left:
        if isinstance(path, bytes):
            with contextlib.suppress(OSError):
                os.unlink(path)
    for row in _shared_memory() if named or left else ():
        if (row.number in left or named.get(row.number) == (row.key, row.creator)) and not row.attached:
            ctypes.CDLL(None, use_errno=True).shmctl(row.number, _IPC_RMID, None)


# --- output ---------------------------------------------------------------------------------------


class Output:
    """Output of a process: the first and the last half MiB, written to its log with secrets masked."""

    def __init__(self, log: str | None, *, secrets: tuple[bytes, ...], follow: bool) -> None:
        self._file = -1
        if log is not None:
            self._file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._secrets = secrets
        self._overlap = max((len(secret) for secret in secrets), default=1) - 1
        self._held = b""  # possibly the beginning of a secret
        self._follow = follow
        self._followed = bytearray()
        self._tail = bytearray()
        self._total = 0

    def feed(self, data: bytes) -> None:
        """Take a piece of output as it arrives."""
        if self._secrets:
            data = self._held + data
            for secret in self._secrets:
                data = data.replace(secret, b"*" * 8)
            cut = len(data) - self._begun_secret(data)
            data, self._held = data[:cut], data[cut:]
        self._keep(data)

    def _begun_secret(self, data: bytes) -> int:
        """Return the length of the longest suffix of the data that could begin a secret."""
        for length in range(min(self._overlap, len(data)), 0, -1):
            if any(secret.startswith(data[-length:]) for secret in self._secrets):
                return length
        return 0

    def _keep(self, data: bytes) -> None:
        room = KEPT_HEAD_BYTES - self._total
        if room > 0:
            self._write(data[:room])
        self._total += len(data)
        self._tail += data
        if len(self._tail) > 2 * KEPT_TAIL_BYTES:
            del self._tail[:-KEPT_TAIL_BYTES]
        if self._follow:
            self._followed += data
            if len(self._followed) > FOLLOWED_BYTES:
                del self._followed[:-FOLLOWED_BYTES]

    def take_followed(self) -> str:
        """Return complete lines received since the last call; an incomplete line stays buffered."""
        cut = self._followed.rfind(b"\n") + 1
        text = self._followed[:cut].decode(errors="replace")
        del self._followed[:cut]
        return text

    def last(self, size: int) -> str:
        """Return the last `size` bytes as text."""
        return self._tail[-size:].decode(errors="replace")

    def finish(self) -> None:
        """Write buffered output to the log; safe to call twice."""
        held, self._held = self._held, b""
        self._keep(held)
        if self._follow and self._followed and not self._followed.endswith(b"\n"):
            self._followed += b"\n"
        beyond = self._total - KEPT_HEAD_BYTES
        if self._file >= 0 and beyond > 0:
            kept = min(beyond, KEPT_TAIL_BYTES)
            if beyond > kept:
                self._write(f"\n[loadlens left out {beyond - kept} bytes here]\n".encode())
            self._write(self._tail[-kept:])
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, data: bytes | bytearray) -> None:
        if self._file < 0:
            return
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
                raise
            # a full disk ends the log; the service keeps running and its output is still drained
            os.close(self._file)
            self._file = -1


class Child:
    """A process that the lab asked for."""

    def __init__(self, pid: int, entry: bytes, stop_signal: int, output: Output) -> None:
        self.pid = pid
        self.entry = entry
        self.stop_signal = stop_signal
        self.output = output
        self.groups: list[str] = []  # control groups that are its own
        self.pipe = -1  # read end of its output; -1: every holder has closed it
        self.status: int | None = None  # as Popen.returncode
        self.ended_ns: int | None = None
        self.cpu_s: float | None = None


# --- the loop -------------------------------------------------------------------------------------


class Gone(Exception):
    """The lab closed its end."""


class Refused(Exception):
    """A request that cannot be done; the text is the reply."""


class Keeper:
    """The state behind the socket."""

    def __init__(self, door: socket.socket, lab_pid: int, note: int, hold: list[int]) -> None:
        self._door = door
        self._hold = hold
        self._lab_pid = lab_pid
        self._received = b""
        self._marker = b""
        self._scope = b""
        self._scratch: list[str] = []
        self._stamp = 0
        self._note = note  # descriptor of the note, whose lock says that this process lives; -1: none
        self._note_path = ""
        self._watch: int | None = None  # pid of the process that waits for the end of this one
        self._secrets: tuple[bytes, ...] = ()
        self._children: dict[str, Child] = {}
        self._poll = select.poll()
        self._pipes: dict[int, Child] = {}
        self._wake, wake_write = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler, so that the pipe is written
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(door, select.POLLIN)

    def serve(self) -> None:
        """Serve until the lab sends `quit`, closes its end, or dies."""
        try:
            while True:
                self._turn(1000)
                while b"\n" in self._received:
                    line, _, self._received = self._received.partition(b"\n")
                    if self._answer(json.loads(line)):
                        self._remove_scratch()  # the lab may die before it removes the folders itself
                        return
                if os.getppid() != self._lab_pid:
                    raise Gone  # some child of the lab still holds the other end of the socket
        except (Gone, ConnectionError):
            self._clean_up()
        except BaseException:
            self._clean_up()  # a bug in the keeper must not leave services behind
            raise

    def _turn(self, timeout_ms: int) -> None:
        """Run one round: drain output, reap children, read requests of the lab."""
        for descriptor, _ in self._poll.poll(timeout_ms):
            if descriptor == self._wake:
                os.read(self._wake, 4096)
            elif descriptor == self._door.fileno():
                data = self._door.recv(1 << 16)
                if not data:
                    raise Gone
                self._received += data
            else:
                self._drain(descriptor)
        self._reap()

    def _drain(self, descriptor: int) -> None:
        child = self._pipes[descriptor]
        try:
            data = os.read(descriptor, 1 << 20)
        except BlockingIOError:
            return
        if data:
            child.output.feed(data)
            return
        self._poll.unregister(descriptor)
        del self._pipes[descriptor]
        os.close(descriptor)
        child.pipe = -1
        child.output.finish()

    def _reap(self) -> None:
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for child in self._children.values():
                if child.pid == pid:
                    child.status = os.waitstatus_to_exitcode(status)
                    child.ended_ns = time.monotonic_ns()
                    child.cpu_s = used.ru_utime + used.ru_stime

    def _answer(self, request: dict[str, Any]) -> bool:
        """Do one request and reply; true: it was the last."""
        operation = request["op"]
        reply: dict[str, Any]
        try:
            reply = getattr(self, f"_do_{operation}")(request)
        except Refused as refused:
            reply = {"refused": str(refused)}
        reply["number"] = request["number"]
        self._door.sendall(json.dumps(reply).encode() + b"\n")
        return bool(operation == "quit")

    # each request is one method

    def _do_hello(self, request: dict[str, Any]) -> dict[str, Any]:
        self._marker = request["marker"].encode()
        self._scope = request["scope"].encode()
        self._scratch = request["scratch"] + request["guarded"]
        self._stamp = request["stamp"]
        # longest first: one secret may contain another
        self._secrets = tuple(sorted((s.encode() for s in request["secrets"]), key=len, reverse=True))
        if self._note >= 0:
            self._note_path = request["note"]
            with contextlib.suppress(OSError):  # no further process is allowed
                self._watch = self._start_watch(self._note_path)
        return {"pid": os.getpid()}

    def _start_watch(self, note: str) -> int:
        """Start the process that takes over if this one is killed; it inherits the locks that are held."""
        pid = os.fork()
        if pid:
            return pid
        try:
            os.setsid()
            for descriptor in self._hold:
                os.set_inheritable(descriptor, True)
            environment = {name: value for name, value in os.environ.items() if name != RUN_VARIABLE}
            os.execve(sys.executable, [sys.executable, "-I", "-S", __file__, _WATCH, note], environment)
        finally:
            os._exit(1)

    def _do_keep(self, request: dict[str, Any]) -> dict[str, Any]:
        self._add_to_note({"keep": request["folder"]})
        self._scratch = [folder for folder in self._scratch if folder != request["folder"]]
        return {}

    def _add_to_note(self, content: dict[str, str]) -> None:
        if self._note >= 0:
            with contextlib.suppress(OSError):  # a full disk
                os.lseek(self._note, 0, os.SEEK_END)
                os.write(self._note, json.dumps(content).encode() + b"\n")

    def _do_spawn(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request["id"]
        if name in self._children and self._children[name].status is None:
            raise Refused(f"{name} is running already")
        try:
            output = Output(request["log"], secrets=self._secrets, follow=request["follow"])
        except OSError as error:
            raise Refused(f"its log cannot be written: {error}") from error
        reading, writing = os.pipe()
        with contextlib.suppress(OSError):  # beyond the user's limit for pipes: slower, but correct
            fcntl.fcntl(reading, _F_SETPIPE_SZ, 1 << 20)
        os.set_blocking(reading, False)
        groups = [os.path.dirname(file) for file in request["cgroups"]]
        for group in groups:
            self._add_to_note({"group": group})
        try:
            pid = _start(request, writing, self._stamp)
        except Refused:
            os.close(reading)
            output.finish()
            raise
        finally:
            os.close(writing)
        child = Child(pid, b"%s=%s" % (SERVICE_VARIABLE.encode(), self._mark(name)), request["stop"], output)
        child.pipe = reading
        child.groups = groups
        self._children[name] = child
        self._pipes[reading] = child
        self._poll.register(reading, select.POLLIN)
        return {"pid": pid}

    def _mark(self, name: str) -> bytes:
        return self._scope + b":" + name.encode()

    def _do_poll(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the state of every process, and the new output of followed ones (all of it once ended)."""
        for child in self._children.values():
            if child.status is not None and child.pipe >= 0:
                self._drain(child.pipe)  # it may have written and ended since the pipe was last read
        standing = {
            name: {
                "status": child.status,
                "drained": child.pipe < 0,
                "output": child.output.take_followed(),
                "ended_ns": child.ended_ns,
                "cpu_s": child.cpu_s,
            }
            for name, child in self._children.items()
        }
        return {"children": standing}

    def _do_tail(self, request: dict[str, Any]) -> dict[str, Any]:
        child = self._children[request["id"]]
        if child.pipe >= 0:
            self._drain(child.pipe)  # the last output may still be in the pipe
        return {"text": child.output.last(request["size"])}

    def _do_signal(self, request: dict[str, Any]) -> dict[str, Any]:
        child = self._children[request["id"]]
        if child.status is None:  # not reaped, so the pid is still its own
            os.kill(child.pid, request["signal"])
        return {}

    def _do_end(self, request: dict[str, Any]) -> dict[str, Any]:
        """List the live processes of one name or of all, and kill them if asked to; callers repeat it."""
        processes = all_processes()
        if request["id"] is None:
            left = members(
                processes,
                roots=[os.getpid()],
                sessions=[child.pid for child in self._children.values()],
                entries=[SERVICE_VARIABLE.encode() + b"=" + self._scope + b":"],
            )
        else:
            child = self._children[request["id"]]
            roots = [child.pid] if child.status is None else []
            left = members(processes, roots=roots, sessions=[child.pid], entries=[child.entry])
        named = [{"pid": process.pid, "command": command_of(process.pid)} for process in left]
        for process in left if request["kill"] else ():
            send(process, signal.SIGKILL)
        return {"left": named}

    def _do_quit(self, request: dict[str, Any]) -> dict[str, Any]:
        self._finish()
        return {}

    # the lab is gone

    def _clean_up(self) -> None:
        """End every process of the run by its stop signal, then by KILL; remove the scratch folders."""
        self._poll.unregister(self._door)
        stop_signals = {
            child.pid: child.stop_signal for child in self._children.values() if child.status is None
        }
        for process in self._everything():
            send(process, stop_signals.get(process.pid, signal.SIGTERM))
        for deadline, number in ((GRACE_S, 0), (FORCED_S, signal.SIGKILL)):
            until = time.monotonic() + deadline
            while (left := self._everything()) and time.monotonic() < until:
                for process in left:
                    send(process, number)  # 0: only looks what memory it has made meanwhile
                self._turn(20)
        self._finish()
        self._remove_scratch()

    def _remove_scratch(self) -> None:
        for folder in self._scratch:
            forget_shared_memory(folder)
            shutil.rmtree(folder, ignore_errors=True)
        if self._note_path:
            with contextlib.suppress(OSError):
                os.unlink(self._note_path)
        if self._watch is not None:
            os.kill(self._watch, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._watch, 0)

    def _everything(self) -> list[Process]:
        """Return all descendants, and every process that carries the marker of the run."""
        return members(
            all_processes(),
            roots=[os.getpid()],
            sessions=[child.pid for child in self._children.values()],
            entries=[RUN_VARIABLE.encode() + b"=" + self._marker],
        )

    def _finish(self) -> None:
        for descriptor in list(self._pipes):
            self._drain(descriptor)
        for child in self._children.values():
            child.output.finish()
            for group in child.groups:
                with contextlib.suppress(OSError):  # empty now, unless a process could not be ended
                    os.rmdir(group)


def _start(request: dict[str, Any], output: int, number: int) -> int:
    """Fork and exec in a new session; raise `Refused` with the reason if the command could not be started."""
    report_read, report_write = os.pipe()  # closed by exec: end of file means success
    prctl = _prctl()
    pid = os.fork()
    if pid == 0:
        stage = "started"
        try:
            os.setsid()
            stamp(number)
            program = _program(request)
            for words, step in _placing(request):
                stage = words
                step()
            # ends the services if the keeper is killed together with the lab; set after the change of
            # account, which clears it
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            stage = f"started in {request['cwd']}"
            os.chdir(request["cwd"])
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                if signal.getsignal(number) is not None:
                    signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            stage = "started"
            if program is not None:
                os.execve(program, request["argv"], request["env"])
            os.execvpe(request["argv"][0], request["argv"], request["env"])
        except BaseException as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            os.write(report_write, f"could not be {stage}: {reason}".encode()[:4000])
        finally:
            os._exit(127)
    os.close(report_write)
    with os.fdopen(report_read, "rb") as report:
        words = report.read().decode(errors="replace")
    if words:
        os.waitpid(pid, 0)
        raise Refused(words)
    return pid


def _program(request: dict[str, Any]) -> int | None:
    """Open the program while we may: another user cannot read our folders, such as the cache.

    None if it runs under our own account, or is a script: an interpreter has to open a script itself.
    """
    if request["account"] is None:
        return None
    path = shutil.which(request["argv"][0], path=request["env"].get("PATH"))
    if path is None:
        return None
    with open(path, "rb") as file:
        if file.read(2) == b"#!":
            return None
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _placing(request: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the steps that put the new process on its CPUs, into its control groups and under its account."""
    if request["cpus"] is not None:
        yield "placed on its CPUs", lambda: os.sched_setaffinity(0, request["cpus"])
    for file in request["cgroups"]:
        yield f"put into {os.path.dirname(file)}", lambda file=file: _write_text(file, "0")
    if request["account"] is not None:
        yield "run as another user", lambda: _become(*request["account"])


def _become(user: int, group: int) -> None:
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)


def _write_text(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    os.write(descriptor, text.encode())
    os.close(descriptor)


def _prctl() -> Any:
    return ctypes.CDLL(None, use_errno=True).prctl


def main() -> None:
    """Take over the socket on descriptor 0; arguments: the lab's pid, descriptors of the note and to hold.

    Or `--watch NOTE`: wait until the keeper of the note is gone, and end what it left.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    if sys.argv[1] == _WATCH:
        what_is_left(sys.argv[2], end=True, wait=True)
        return
    note, *hold = (int(descriptor) for descriptor in sys.argv[2:])
    for descriptor in hold if note < 0 else (note, *hold):
        os.set_inheritable(descriptor, False)
    _prctl()(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    door = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    Keeper(door, int(sys.argv[1]), note, hold).serve()


if __name__ == "__main__":
    main()
