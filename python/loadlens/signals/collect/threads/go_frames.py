"""Goroutines of a Go process that shows them on one of its ports, as net/http/pprof does.

A goroutine is what a thread is elsewhere: it has frames, and the runtime says what it waits for. Threads of
the system only carry goroutines, so they are not sampled. A dump stops all of them for a moment.
"""

from __future__ import annotations

import contextlib
import http.client
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import unquote

from loadlens.machine import listening_sockets
from loadlens.model.stacks import Frame, Stack, Wait
from loadlens.signals.collect.threads import NotRead, Threads, elf

HOST: Final = "127.0.0.1"
WITHIN_S: Final = 3.0
COMMAND: Final = "/debug/pprof/cmdline"
DUMP: Final = "/debug/pprof/goroutine?debug=2"
_SECTION: Final = ".gopclntab"
_HEAD: Final = re.compile(r"^goroutine (?P<id>\d+) [^\[]*\[(?P<state>[^\],(]+)")
_PLACE: Final = re.compile(r"^\t(?P<file>.+):(?P<line>\d+)(?: \+0x[0-9a-f]+)?$")
_CREATED: Final = re.compile(r"^created by (?P<name>.+?)(?: in goroutine \d+)?$")
_STANDARD: Final = re.compile(r"^\t(?P<root>.*)net/http/pprof/pprof\.go:", re.MULTILINE)
_MAIN_FILE: Final = re.compile(r"^main\.main\(.*\n\t(?P<file>.+):\d+", re.MULTILINE)
_OF_PROFILER: Final = ("runtime/pprof", "net/http/pprof")
_WAITS: Final[Mapping[str, Wait]] = {
    "running": "",
    "runnable": "",
    "preempted": "",
    "copystack": "",
    "IO wait": "socket",
    "sleep": "timer",
    "semacquire": "lock",
    "chan send": "lock",
    "chan receive": "lock",
    "select": "lock",
    "sync.Mutex.Lock": "lock",
    "sync.RWMutex.Lock": "lock",
    "sync.RWMutex.RLock": "lock",
    "sync.Cond.Wait": "lock",
    "sync.WaitGroup.Wait": "lock",
}
# Functions that hand a request to goroutines of their own, which exchange it over a connection.
_EXCHANGES: Final = (
    ("net/http", "roundTrip"),
    ("net/http", "RoundTrip"),
    ("golang.org/x/net/http2", "RoundTrip"),
    ("golang.org/x/net/http2", "roundTrip"),
    ("golang.org/x/net/http2", "internalRoundTrip"),
    ("google.golang.org/grpc/internal/transport", "waitOnHeader"),
    ("google.golang.org/grpc/internal/transport", "readClient"),
    ("google.golang.org/grpc/internal/transport", "readMessageHeaderClient"),
)
_WITHOUT_FRAME: Final = ("chan send", "chan receive", "select")  # of the language: no function waits


class GoReader:
    """Reads the goroutines of one Go process."""

    is_asked: ClassVar = True

    def __init__(self, pid: int, port: int) -> None:
        self._pid = pid
        self._port = port
        self._link = http.client.HTTPConnection(
            HOST, port, timeout=WITHIN_S
        )  # a new one each time costs more

    def read(self) -> Threads:
        """Return the frames of every goroutine; raise NotRead if they cannot be read."""
        try:
            return parse(_get(self._link, DUMP))
        except (OSError, http.client.HTTPException) as fault:
            self._link.close()  # it opens again by itself
            raise NotRead(f"{DUMP} on port {self._port} does not answer: {fault}") from None

    def sources(self, frame: Frame) -> Iterator[Path]:
        """Yield where the source of a frame may be, as this machine sees it."""
        return source_paths(self._pid, frame)

    def close(self) -> None:
        """Close the connection."""
        self._link.close()


def reader_of(pid: int) -> GoReader | None:
    """Return a reader if a process is a Go program that shows its goroutines."""
    if not elf.has_section(pid, _SECTION):
        return None
    port = _port_of(pid, elf.identity(pid))
    return None if port is None else GoReader(pid, port)


def seen_in(state: str, frames: Sequence[Frame]) -> tuple[Stack, Wait]:
    """Return the stack of a goroutine and what it waits for.

    Args:
        state: As the runtime names it.
        frames: The innermost first.
    """
    wait, stack = _WAITS.get(state, "other"), tuple(reversed(frames))
    if state not in _WITHOUT_FRAME:
        return stack, wait
    innermost = (frames[0].module, frames[0].function.rpartition(".")[2]) if frames else ("", "")
    return (stack, "socket") if innermost in _EXCHANGES else ((*stack, Frame(state, "", "", 0)), wait)


def source_paths(pid: int, frame: Frame) -> Iterator[Path]:
    """Yield where the source of a frame may be, as this machine sees it."""
    if frame.file.startswith("/"):
        yield Path(f"/proc/{pid}/root") / frame.file.lstrip("/")
    else:  # built with -trimpath: the module's name and a path in it
        yield Path(f"/proc/{pid}/cwd") / frame.file.partition("/")[2]


def parse(text: str) -> Threads:
    """Return the goroutines of a dump, without the one that wrote it."""
    stacks: dict[int, Stack] = {}
    names: dict[int, str] = {}
    waits: dict[int, Wait] = {}
    standard, main = _STANDARD.search(text), _MAIN_FILE.search(text)
    root = "" if standard is None else standard.group("root")
    own = "" if main is None or root else module_of(main.group("file"))
    for part in text.split("\n\n"):
        head, *lines = part.split("\n")
        titled = _HEAD.match(head)
        if titled is None:
            continue
        number, state = int(titled.group("id")), titled.group("state").strip()
        frames, name = _frames(lines, root, own)
        if any(frame.module in _OF_PROFILER for frame in frames):
            continue
        stacks[number], waits[number] = seen_in(state, frames)
        names[number] = name
    running = {number: wait == "" for number, wait in waits.items()}
    return Threads(stacks, names, waits, running, is_all=True)


def _frames(lines: list[str], root: str, own: str) -> tuple[list[Frame], str]:
    """Return the frames of a goroutine, the innermost first, and the function that created it."""
    frames: list[Frame] = []
    name = "main"
    called = ""
    for line in lines:
        created = _CREATED.match(line)
        place = _PLACE.match(line)
        if created is not None:
            name, called = created.group("name"), ""
        elif place is None:
            called = line.rpartition("(")[0]
        elif called:
            module, function = split(called)
            file = place.group("file")
            is_own = not is_library(file, root, own)
            frames.append(Frame(function, module, file, int(place.group("line")), is_own))
    return frames, name


def split(name: str) -> tuple[str, str]:
    """Return package and function: `net/http` and `(*conn).serve`."""
    folder, slash, last = name.rpartition("/")
    package, _, function = last.partition(".")
    return unquote(folder + slash + package), function


def is_library(file: str, root: str, own: str) -> bool:
    """True for a module that was fetched, and for the standard library, which is below a root."""
    if "/pkg/mod/" in file or "/vendor/" in file or "@v" in file or not file.endswith(".go"):
        return True
    return file.startswith(root) if root else not file.startswith(own)


def module_of(file: str) -> str:
    """Return the module of a file that was built with -trimpath: `shop/`, `github.com/acme/shop/`."""
    parts = file.split("/")[:-1]
    return "/".join(parts[: 3 if "." in parts[0] else 1]) + "/"


@lru_cache(maxsize=64)
def _port_of(pid: int, _identity: object) -> int | None:
    """Return the port on which a process shows its goroutines: it says its own command there."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode(errors="replace")
    except OSError:
        return None
    for port in listening_sockets.ports_of(pid):
        link = http.client.HTTPConnection(HOST, port, timeout=WITHIN_S)
        with contextlib.closing(link), contextlib.suppress(OSError, http.client.HTTPException):
            if _get(link, COMMAND) == command:
                return port
    return None


def _get(link: http.client.HTTPConnection, path: str) -> str:
    link.request("GET", path)
    answer = link.getresponse()
    body = answer.read()
    if answer.status != http.client.OK:
        raise http.client.HTTPException(f"status {answer.status}")
    return body.decode(errors="replace")
