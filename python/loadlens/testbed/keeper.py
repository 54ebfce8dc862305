"""The lab's end of the keeper: start processes, poll their state, end them.

Invariant: whatever happens to the lab, the keeper or a service, no process of the testbed stays behind. The
keeper ensures this while it lives (`keeper_process.py`). If the keeper itself is killed, the next call here
ends every process that carries the testbed's mark, and raises `KeeperLost`. If both are killed, the keeper's
watch ends the rest; if that is killed as well, the next start does, or `loadlens doctor --clean`
(`remains.py`).
"""

from __future__ import annotations

import json
import os
import secrets as randomness
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from loadlens.errors import TestbedError
from loadlens.temporary import write_note
from loadlens.testbed import keeper_process

REPLY_WITHIN_S = 20.0
END_WITHIN_S = 5.0  # bound of every "end by force"; KILL needs milliseconds unless the kernel is stuck
_TAIL_BYTES = 16 * 1024
_TAIL_LINES = 15


@dataclass(frozen=True, slots=True)
class Command:
    """A process to start: no shell, environment complete, output to `log`."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    log: Path | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    cpus: tuple[int, ...] | None = None
    cgroups: tuple[Path, ...] = ()  # the `cgroup.procs` files to join; the keeper removes the groups
    follow: bool = False  # `standing` also returns its output
    account: tuple[int, int] | None = None  # user and group to run as; None: those of the lab


@dataclass(frozen=True, slots=True)
class Standing:
    """State of a process."""

    status: int | None  # None: running; negative: number of the signal that ended it
    drained: bool  # no process holds its output any more
    output: str  # new complete lines of a followed process
    ended_ns: int | None = None  # when its end was seen, CLOCK_MONOTONIC
    cpu_s: float | None = None  # of the process and of the children it waited for, once it has ended


@dataclass(frozen=True, slots=True)
class Leftover:
    """A process that outlived its service."""

    pid: int
    command: str


class KeeperLost(TestbedError):
    """The keeper ended unexpectedly; its processes have been ended."""


class Keeper:
    """Starts the processes of one testbed and ends them at `close`."""

    def __init__(
        self,
        *,
        marker: str,
        scratch: tuple[Path, ...] = (),
        guarded: tuple[Path, ...] = (),
        secret_values: tuple[str, ...] = (),
        hold: tuple[int, ...] = (),
    ) -> None:
        """Start the keeper.

        Args:
            marker: The run's id; every process carries it as LOADLENS_RUN.
            scratch: Folders removed at the end, even if the lab dies, unless passed to `keep`.
            guarded: The same, behind a lock in `hold`: the next run with the lock removes them first.
            secret_values: Masked in the output of every process.
            hold: Descriptors that stay open as long as the keeper lives, such as that of a lock: a run that
                waits for the lock must not begin before the remains of a dead lab are gone.
        """
        self._marker = marker
        self._scope = f"{marker}-{randomness.token_hex(4)}"
        self._stamp = (1 << 60) | randomness.randbits(60)
        self._lock = threading.Lock()
        self._received = b""
        self._asked = 0
        self._sessions: list[int] = []
        self._lost: KeeperLost | None = None
        self._closed = False
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the keeper
        # the interpreter may need these to start; the keeper gets nothing else of our environment
        libraries = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        note = write_note((*scratch, *guarded), marker=marker, scope=self._scope, stamp=self._stamp)
        descriptor = -1 if note is None else note.descriptor
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    keeper_process.__file__,
                    *map(str, (os.getpid(), descriptor, *hold)),
                ],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self._complaints,
                cwd="/",
                start_new_session=True,
                pass_fds=hold if note is None else (*hold, descriptor),
                env=libraries | {keeper_process.RUN_VARIABLE: marker, keeper_process.KEEPER_VARIABLE: "1"},
            )
        if note is not None:
            os.close(descriptor)  # from now on the lock is the keeper's
        ours.settimeout(REPLY_WITHIN_S)
        self._door = ours
        self._ask(
            "hello",
            marker=marker,
            scope=self._scope,
            stamp=self._stamp,
            note=None if note is None else str(note.path),
            scratch=[str(folder.resolve()) for folder in scratch],
            guarded=[str(folder.resolve()) for folder in guarded],
            secrets=[value for value in secret_values if len(value) >= 4],
        )

    @property
    def pid(self) -> int:
        """Process ID of the keeper itself."""
        return self._process.pid

    def mark(self, name: str) -> str:
        """Return the environment entry that the processes of this name carry."""
        return f"{keeper_process.SERVICE_VARIABLE}={self._scope}:{name}"

    def keep(self, folder: Path) -> None:
        """Keep a scratch folder after all: its content is complete."""
        self._ask("keep", folder=str(folder.resolve()))

    def spawn(self, name: str, command: Command) -> int:
        """Start a process in a session of its own, and return its pid.

        Raises:
            TestbedError: The command could not be started; the message begins with the name.
        """
        variable, _, value = self.mark(name).partition("=")
        env = dict(command.env) | {keeper_process.RUN_VARIABLE: self._marker, variable: value}
        reply = self._ask(
            "spawn",
            id=name,
            argv=list(command.argv),
            env=env,
            cwd=str(command.cwd),
            log=None if command.log is None else str(command.log),
            stop=int(command.stop_signal),
            cpus=None if command.cpus is None else list(command.cpus),
            cgroups=[str(file) for file in command.cgroups],
            follow=command.follow,
            account=command.account,
        )
        if "refused" in reply:
            raise TestbedError(
                f"{name}: {command.argv[0]} {reply['refused']}",
                hint=f"run it by hand in {command.cwd}",
            )
        self._sessions.append(reply["pid"])
        return int(reply["pid"])

    def standing(self) -> dict[str, Standing]:
        """Return the state of every process started here."""
        reply = self._ask("poll")
        return {name: Standing(**standing) for name, standing in reply["children"].items()}

    def last_lines(self, name: str, lines: int = _TAIL_LINES) -> tuple[str, ...]:
        """Return the last lines of a process's output."""
        text = self._ask("tail", id=name, size=_TAIL_BYTES)["text"]
        return tuple(line.rstrip()[:400] for line in text.splitlines() if line.strip())[-lines:]

    def signal(self, name: str, number: int) -> None:
        """Signal a process if it still runs, but not its children."""
        self._ask("signal", id=name, signal=int(number))

    def leftovers(self, name: str | None, *, kill: bool) -> tuple[Leftover, ...]:
        """Return the live processes among a named process and its descendants; among all without a name."""
        reply = self._ask("end", id=name, kill=kill)
        return tuple(Leftover(**left) for left in reply["left"])

    def end(self, name: str | None) -> tuple[Leftover, ...]:
        """Kill a process and its descendants until none is left, and return the killed processes."""
        killed: dict[int, Leftover] = {}
        until = time.monotonic() + END_WITHIN_S
        while left := self.leftovers(name, kill=True):
            for process in left:
                # the first reading counts: a process about to end has no command line any more
                killed.setdefault(process.pid, process)
            if time.monotonic() > until:
                break
            time.sleep(0.01)
        return tuple(killed.values())

    def run(
        self,
        name: str,
        command: Command,
        *,
        within_s: float,
        on_line: Callable[[str], None] | None = None,
        on_turn: Callable[[], None] | None = None,
    ) -> None:
        """Run a command to its end.

        Args:
            name: For messages.
            command: With `follow`, its output goes to `on_line` too.
            within_s: Time limit.
            on_line: Receives its output, line by line.
            on_turn: Called about ten times per second while it runs.

        Raises:
            TestbedError: The command could not be started, failed, or did not end in time; the error carries
                its last output.
        """
        self.spawn(name, command)
        until = time.monotonic() + within_s
        pause = 0.005
        try:
            while True:
                standing = self.standing()[name]
                if on_line is not None:
                    for line in standing.output.splitlines():
                        on_line(line)
                if on_turn is not None:
                    on_turn()
                if standing.status is not None and (standing.drained or pause >= 0.1):
                    break
                if time.monotonic() > until:
                    raise self.failure(name, f"{name} did not end within {within_s:g} s", command.log)
                time.sleep(pause)
                pause = min(0.1, pause * 1.5)
        finally:
            self.end(name)  # a command leaves nothing running
        if standing.status != 0:
            raise self.failure(name, f"{name} failed: {ending(standing.status)}", command.log)

    def failure(self, name: str, words: str, log: Path | None, *, hint: str | None = None) -> TestbedError:
        """Return an error that carries the last lines of a process's output."""
        lines = self.last_lines(name)
        shown = "\n".join(f"    {line}" for line in lines) if lines else "    (no output)"
        return TestbedError(
            f"{words}; its last lines:\n{shown}", where=None if log is None else str(log), hint=hint
        )

    def close(self) -> tuple[Leftover, ...]:
        """End the keeper and everything that still runs here, and return the killed processes."""
        if self._closed:
            return ()
        try:
            killed = self.end(None) if self._lost is None else ()
            if self._lost is None:
                self._ask("quit")
        except KeeperLost:
            killed = ()
        finally:
            self._closed = True
            self._door.close()
            try:
                self._process.wait(timeout=END_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
                self._end_by_mark()
            self._complaints.close()
        return killed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, operation: str, **request: Any) -> dict[str, Any]:
        with self._lock:
            if self._lost is not None:
                raise self._lost
            try:
                self._asked += 1
                message = json.dumps({"op": operation, "number": self._asked, **request})
                self._door.sendall(message.encode() + b"\n")
                # a Ctrl-C may have come between an earlier request and its reply: skip that reply
                while (reply := self._next_reply())["number"] != self._asked:
                    pass
            except OSError as error:
                self._lost = self._give_up(error)
                raise self._lost from error
            return reply

    def _next_reply(self) -> dict[str, Any]:
        while b"\n" not in self._received:
            data = self._door.recv(1 << 16)
            if not data:
                raise ConnectionResetError("the keeper closed its end")
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _give_up(self, error: OSError) -> KeeperLost:
        """End the processes of the lost keeper."""
        self._process.kill()
        self._process.wait()
        self._complaints.seek(0)
        words = self._complaints.read().decode(errors="replace").strip().splitlines()
        left = self._end_by_mark()
        reason = f": {words[-1]}" if words else f" ({ending(self._process.returncode)})"
        return KeeperLost(
            f"the keeper of the testbed was lost{reason}; the services were ended"
            + (f", {len(left)} processes could not be" if left else ""),
            hint="run it again; unless you ended the keeper, please report this as a bug",
        )

    def _end_by_mark(self) -> list[int]:
        """Kill every process with the testbed's mark or stamp, or in its sessions; return surviving pids."""
        entries = [f"{keeper_process.SERVICE_VARIABLE}={self._scope}:".encode()]
        until = time.monotonic() + END_WITHIN_S
        while True:
            left = keeper_process.members(
                keeper_process.all_processes(),
                roots=(),
                sessions=self._sessions,
                entries=entries,
                stamped=self._stamp,
            )
            if not left or time.monotonic() > until:
                return [process.pid for process in left]
            for process in left:
                keeper_process.send(process, signal.SIGKILL)
            time.sleep(0.01)


def ending(status: int) -> str:
    """Describe an exit status."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"
