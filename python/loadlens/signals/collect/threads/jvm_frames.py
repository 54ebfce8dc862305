"""Frames of the threads of a JVM, asked from the JVM itself as `jcmd PID Thread.print` does.

The JVM listens on a Unix socket once it was asked to with SIGQUIT and a file of a certain name; it checks
that the file and the connection are of its own user or of root. A dump stops all threads for a moment.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import socket
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final

from loadlens.machine.listening_sockets import jvm_start
from loadlens.model.stacks import Frame, Stack, Wait
from loadlens.signals.collect.threads import NOT_PERMITTED, NotRead, Threads

WITHIN_S: Final = 3.0
_HEAD: Final = re.compile(  # since JDK 21 the number of the thread stands in brackets
    r'^"(?P<name>.*)" (?:#\d+ \[(?P<bracketed>\d+)\]|.*\bnid=(?P<tid>0x[0-9a-f]+|\d+)\b)'
)
_FRAME: Final = re.compile(
    r"^\s+at (?P<class>[^(]+)\.(?P<method>[^.(]+)"
    r"\((?:(?P<jdk>[^()/]*)/)?(?P<file>[^:()]+)(?::(?P<line>\d+))?\)"
)
_STATE: Final = re.compile(r"^\s+java\.lang\.Thread\.State: (?P<state>\w+)(?P<of> \(sleeping\))?")
_CARRIES: Final = "Carrying virtual thread"  # in place of a state: it runs what follows
_MOUNTED: Final = "Mounted virtual thread"
_INITIALISES, _WAITS = "waiting on the Class initialization monitor", "in Object.wait()"
_NATIVE: Final = "Native Method"
_AT_REST: Final = ("BLOCKED", "WAITING", "TIMED_WAITING")
_SOURCES: Final = ("src/main/java", "src/main/kotlin", "src", ".")
_ATTACH: Final = b"1\0threaddump\0\0\0\0"  # version of the protocol, command, three arguments


class JvmReader:
    """Reads the threads of one JVM."""

    is_asked: ClassVar = True

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._own = own_package(_command(pid), Path(f"/proc/{pid}/cwd"))

    def read(self) -> Threads:
        """Return the frames of every thread; raise NotRead if they cannot be read."""
        try:
            text = _dump(self._pid)
        except PermissionError:
            raise NotRead(NOT_PERMITTED) from None
        except OSError as fault:
            raise NotRead(f"the JVM does not answer: {fault.strerror or fault}") from None
        return parse(text, self._own)

    def sources(self, frame: Frame) -> Iterator[Path]:
        """Yield where the source of a frame may be, as this machine sees it."""
        for folder in _SOURCES:
            yield Path(f"/proc/{self._pid}/cwd") / folder / frame.file

    def close(self) -> None:
        """Nothing stays open."""


def reader_of(pid: int) -> JvmReader | None:
    """Return a reader if a process is a JVM."""
    try:
        is_jvm = Path(os.readlink(f"/proc/{pid}/exe")).name == "java"
    except OSError:
        return None
    return JvmReader(pid) if is_jvm else None


def parse(text: str, own: str | None) -> Threads:
    """Return the threads of a dump.

    Args:
        text: As `jcmd PID Thread.print` prints it.
        own: Package of the service, whose classes and subpackages are its own code; none: not known.
    """
    stacks: dict[int, Stack] = {}
    names: dict[int, str] = {}
    waits: dict[int, Wait] = {}
    running: dict[int, bool] = {}
    lines = text.splitlines()
    heads = [(place, head) for place, line in enumerate(lines) if (head := _HEAD.match(line)) is not None]
    ends = [place for place, _ in heads[1:]] + [len(lines)]
    for (place, head), end in zip(heads, ends, strict=False):
        tid = int(head.group("bracketed") or head.group("tid"), 0)
        own_lines = list(itertools.takewhile(str.strip, lines[place:end]))
        names[tid] = head.group("name")
        if stack := _stack(own_lines, own):
            stacks[tid] = stack
        is_running, wait = _state(own_lines, stack)
        if is_running is not None:
            running[tid] = is_running
        if wait is not None:
            waits[tid] = wait
    return Threads(stacks, names, waits, running=running)


def _stack(lines: Sequence[str], own: str | None) -> Stack:
    """Return the frames of a thread, outermost first; of a carrier those of the virtual thread on it."""
    mounted = max((place for place, line in enumerate(lines) if _MOUNTED in line), default=0)
    frames = [_frame(frame, own) for line in lines[mounted:] if (frame := _FRAME.match(line)) is not None]
    return tuple(reversed(frames))


def _state(lines: Sequence[str], stack: Stack) -> tuple[bool | None, Wait | None]:
    """Return whether a thread runs, and what it waits for; none: the kernel knows better.

    The dump itself stops every thread, which the kernel sees as a lock; and it may have let a thread that
    waits run since.
    """
    titled = next((match for line in lines if (match := _STATE.match(line)) is not None), None)
    state = "" if titled is None else titled.group("state")
    if titled is not None and titled.group("of"):
        return False, "timer"
    if state in _AT_REST:
        return False, "lock" if state == "BLOCKED" else None
    is_carrier = any(_CARRIES in line for line in lines)
    if not stack or stack[-1].file.endswith(_NATIVE) or not (is_carrier or state == "RUNNABLE"):
        return None, None
    if _WAITS in lines[0] or any(_INITIALISES in line for line in lines):
        return None, "lock"  # for another thread that initialises a class
    return True, None


def _frame(match: re.Match[str], own: str | None) -> Frame:
    """Return a frame; classes that are made while it runs have no line, and are no code of the service."""
    line = int(match.group("line") or 0)
    package = match.group("class").rpartition(".")[0].replace(".", "/")
    is_own = own is not None and match.group("jdk") is None and line > 0
    if is_own:
        is_own = match.group("class").startswith(own) if own else not package
    name = match.group("file")
    file = f"{package}/{name}" if package else name
    return Frame(match.group("method"), match.group("class"), file, line, is_own)


def own_package(command: tuple[str, ...], folder: Path) -> str | None:
    """Return the package of the main class with a dot behind it, empty for none; none: not known.

    A jar says its main class in its manifest, that of Spring Boot as its start class.
    """
    start, is_file = jvm_start(command)
    main = start.rpartition("/")[2] or None
    if is_file:  # the source of one class is of no package, as a rule
        main = Path(start).stem if start.endswith(".java") else _main_class(folder / start)
    if main is None:
        return None
    package = main.rpartition(".")[0]
    return f"{package}." if package else ""


def _main_class(jar: Path) -> str | None:
    try:
        with zipfile.ZipFile(jar) as archive:
            text = archive.read("META-INF/MANIFEST.MF").decode(errors="replace")
    except (OSError, KeyError, zipfile.BadZipFile):
        return None
    lines = text.replace("\r\n", "\n").replace("\n ", "").splitlines()
    entries = dict(line.split(": ", 1) for line in lines if ": " in line)
    return next((entries[name] for name in ("Start-Class", "Main-Class") if name in entries), None)


# --- the socket ------------------------------------------------------------------------------------------


def _dump(pid: int) -> str:
    """Return a thread dump of a JVM; raise OSError if it does not answer."""
    own_pid = _pid_within(pid)
    path = f"/proc/{pid}/root/tmp/.java_pid{own_pid}"
    if not os.path.exists(path):
        _ask_to_listen(pid, own_pid, path)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(WITHIN_S)
        connection.connect(path)
        connection.sendall(_ATTACH)
        answer = bytearray()
        while piece := connection.recv(1 << 16):
            answer += piece
    status, _, text = answer.decode(errors="replace").partition("\n")
    if status != "0":
        raise OSError(f"it refuses a dump: {text.strip()[:100] or status}")
    return text


def _ask_to_listen(pid: int, own_pid: int, path: str) -> None:
    if not _catches_quit(pid):
        raise OSError("it does not take SIGQUIT (-Xrs?), which would end it")
    request = Path(f"/proc/{pid}/cwd/.attach_pid{own_pid}")
    try:
        request.touch()
    except PermissionError:
        request = Path(f"/proc/{pid}/root/tmp/.attach_pid{own_pid}")
        request.touch()
    try:
        os.kill(pid, signal.SIGQUIT)
        until = time.monotonic() + WITHIN_S
        while not os.path.exists(path):
            if time.monotonic() > until:
                raise TimeoutError("it does not listen for jcmd (-XX:+DisableAttachMechanism?)")
            time.sleep(0.01)
    finally:
        with contextlib.suppress(OSError):
            request.unlink()


def _pid_within(pid: int) -> int:
    """Return the pid of a process in its own namespace."""
    return int(_status(pid, "NSpid").split()[-1])


def _catches_quit(pid: int) -> bool:
    return bool(int(_status(pid, "SigCgt"), 16) >> (signal.SIGQUIT - 1) & 1)


def _status(pid: int, name: str) -> str:
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
        return next(line.partition(":")[2].strip() for line in status if line.startswith(f"{name}:"))


def _command(pid: int) -> tuple[str, ...]:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(raw.decode(errors="replace").rstrip("\0").split("\0"))
