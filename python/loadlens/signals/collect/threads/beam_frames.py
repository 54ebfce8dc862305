"""Processes of a BEAM node (Erlang, Elixir), which another node reads over distribution.

A process is what a thread is elsewhere. The reading node calls functions of the language in the service's
node, where no code is loaded. A process that waits for another one's answer has a monitor on it meanwhile, so
the frames of the other one say what is waited for.
"""

from __future__ import annotations

import itertools
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from loadlens.machine import listening_sockets
from loadlens.model.stacks import Frame, Stack, Wait
from loadlens.signals.collect.threads import NotRead, Threads

NOT_NAMED: Final = "its BEAM node has no name"
NOT_INSTALLED: Final = "erl is not installed"
WITHIN_S: Final = 5.0
PROGRAM: Final = "beam.smp"
_EPMD: Final = ("127.0.0.1", 4369)
_NAMES: Final = b"\x00\x01n"  # length, and the request for the names of all nodes
_SOURCE: Final = Path(__file__).with_name("beam_stacks.erl")
_SERVE: Final = (
    '{ok, M, B} = compile:file(os:getenv("LOADLENS_SOURCE"), [binary]), code:load_binary(M, "", B), '
    "[N] = init:get_plain_arguments(), M:serve(list_to_atom(N))."
)
_SIZE: Final = struct.Struct(">I")
_NAMED: Final = re.compile(r"^name (?P<name>\S+) at port (?P<port>\d+)$", re.MULTILINE)
_ANONYMOUS: Final = re.compile(r"^-(?P<function>.+?)/\d+-")  # function that a function without a name is in
_DEPENDENCY: Final = re.compile(r"/(?:deps|_build/[^/]+/lib|_checkouts)/")  # in the path of its source
_OF_ELIXIR: Final = re.compile(r"/(?:elixir|eex|ex_unit|iex|logger|mix)(?:-[\d.]+)?/ebin/")  # of its code
_RUNNING: Final = ("running", "runnable", "garbage_collecting", "exiting")
_INNER: Final = "gen"  # what gen_server.call and gen_statem.call wait in
_LINKS: Final = (
    "ssl",
    "tls_",
    "gen_tcp",
    "inet",
    "prim_inet",
    "socket",
    "httpc",
)  # modules, by how they begin
_FUNCTIONS: Final[Mapping[tuple[str, str], Wait]] = {
    ("timer", "sleep"): "timer",
    ("Process", "sleep"): "timer",
    ("prim_inet", "accept0"): "connections",
    ("prim_inet", "async_accept"): "connections",
}


@dataclass(frozen=True, slots=True)
class _Node:
    """Address of a node."""

    name: str  # with its host
    option: str  # -sname or -name
    cookie: str  # empty: in the file that Erlang reads
    home: str
    erl: str


@dataclass(slots=True)
class _Process:
    """A process as the reading node writes it."""

    name: str
    status: str
    queue: int  # messages
    asked: Sequence[str]  # number or name of the processes that it monitors
    frames: list[Frame] = field(default_factory=list)  # innermost first


class BeamReader:
    """Reads the processes of one node."""

    is_asked: ClassVar = True

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._reading: subprocess.Popen[bytes] | None = None

    def read(self) -> Threads:
        """Return the frames of every process; raise NotRead if they cannot be read."""
        if self._reading is None:
            self._reading = _start(_node(self._pid))
        try:
            return parse(_asked(self._reading))
        except OSError as fault:
            self.close()
            raise NotRead(f"its BEAM node is not reached: {fault}") from None

    def sources(self, frame: Frame) -> Iterator[Path]:
        """Yield where the source of a frame may be, as this machine sees it."""
        process = Path(f"/proc/{self._pid}")
        inside = "root" if frame.file.startswith("/") else "cwd"
        yield process / inside / frame.file.lstrip("/")

    def close(self) -> None:
        """End the reading node."""
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.kill()
            reading.communicate()


def reader_of(pid: int) -> BeamReader | None:
    """Return a reader if a process is an emulator of the BEAM."""
    try:
        is_beam = Path(os.readlink(f"/proc/{pid}/exe")).name == PROGRAM
    except OSError:
        return None
    return BeamReader(pid) if is_beam else None


def parse(text: str) -> Threads:
    """Return the processes of a dump."""
    seen: dict[str, _Process] = {}
    for line in text.splitlines():
        kind, *fields = line.split("\t")
        if kind == "E":
            raise NotRead(f"its BEAM node cannot be read: {fields[0]}")
        if kind == "P":
            number, name, status, queue, *asked = fields
            last = seen[number] = _Process(_plain(name), status, int(queue), asked)
        else:
            last.frames.append(_frame(fields))
    by_name = {each.name: each for each in seen.values()}
    stacks: dict[int, Stack] = {}
    names: dict[int, str] = {}
    waits: dict[int, Wait] = {}
    for number, each in seen.items():
        tid = _tid(number)
        stacks[tid] = tuple(frame for frame in reversed(each.frames) if frame.module != _INNER)
        names[tid] = each.name
        waits[tid] = _wait(each, [*_present(each.asked, seen), *_present(each.asked, by_name)])
    return Threads(stacks, names, waits, {tid: wait == "" for tid, wait in waits.items()}, is_all=True)


def _present(asked: Sequence[str], seen: Mapping[str, _Process]) -> list[_Process]:
    return [seen[other] for other in map(_plain, asked) if other in seen]


def _tid(number: str) -> int:
    """Return a process's number, of which the emulator prints the low 28 bits first."""
    low, _, high = number.partition(".")
    return int(low) + (int(high) << 28)


def _plain(name: str) -> str:
    """Return a module as Elixir writes it."""
    return name.removeprefix("Elixir.")


def _frame(fields: Sequence[str]) -> Frame:
    module, function, file, line, source, beam, is_standard = fields
    inner = _ANONYMOUS.match(function)
    path = source if source.endswith(file.removeprefix("./")) else file
    is_library = is_standard == "true" or _DEPENDENCY.search(source) or _OF_ELIXIR.search(beam)
    is_own = bool(path) and not is_library
    return Frame(inner.group("function") if inner else function, _plain(module), path, int(line), is_own)


def _wait(process: _Process, asked: Sequence[_Process]) -> Wait:
    """Return what a process waits for; empty if it runs, or is ready to."""
    places = [(frame.module, frame.function) for frame in process.frames]
    if process.status in _RUNNING:
        return "storage" if places and places[0][0] == "prim_file" else ""
    for place in places[:2]:
        if place in _FUNCTIONS:
            return _FUNCTIONS[place]
    if places and places[0][0] == _INNER:
        is_behind_code = any(other.queue or any(frame.is_own for frame in other.frames) for other in asked)
        if is_behind_code:
            return "lock"
        return "socket" if any(module.startswith(_LINKS) for module, _ in places) else "process"
    within = [place for place, frame in zip(places, process.frames, strict=True) if not frame.is_own]
    if places and within[:1] == places[:1] and places[0][0].startswith(_LINKS):
        return "socket"
    return "lock"  # in a receive


def _node(pid: int) -> _Node:
    """Return where the node of a process is reached; raise NotRead if it has no name."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        settings = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError as fault:
        raise NotRead(f"its BEAM node is not reached: {fault.strerror}") from None
    ports = set(listening_sockets.ports_of(pid))
    name = next((name for name, port in _names() if port in ports), None)
    if name is None:
        raise NotRead(NOT_NAMED)
    is_long = "-name" in words
    host = _option(words, "-name").partition("@")[2] if is_long else socket.gethostname().partition(".")[0]
    home = next((line.partition("=")[2] for line in settings if line.startswith("HOME=")), "/root")
    beside = Path(_option(words, "-bindir"), "erl")
    erl = shutil.which("erl") or (str(beside) if os.access(beside, os.X_OK) else None)
    if erl is None:
        raise NotRead(NOT_INSTALLED)
    return _Node(
        f"{name}@{host or socket.getfqdn()}",
        "-name" if is_long else "-sname",
        _option(words, "-setcookie"),
        home,
        erl,
    )


def _option(words: Sequence[str], name: str) -> str:
    """Return the word behind an option of the command; empty: it is not there."""
    return next((value for word, value in itertools.pairwise(words) if word == name), "")


def _names() -> list[tuple[str, int]]:
    """Return the nodes of this machine with their ports, as the port mapper knows them."""
    try:
        with socket.create_connection(_EPMD, timeout=WITHIN_S) as link:
            link.sendall(_NAMES)
            with link.makefile("rb") as answer:
                text = answer.read()[_SIZE.size :].decode(errors="replace")
    except OSError:
        return []
    return [(named.group("name"), int(named.group("port"))) for named in _NAMED.finditer(text)]


def _start(node: _Node) -> subprocess.Popen[bytes]:
    """Start a node that is hidden from the others and has no name of its own."""
    cookie = ("-setcookie", node.cookie) if node.cookie else ()
    alone = ("-noinput", "-hidden", node.option, "undefined", *cookie, "-start_epmd", "false")
    few = ("+S", "1:1", "+sbwt", "none")  # schedulers, none of which waits actively
    settings = {
        **{key: text for key, text in os.environ.items() if not key.startswith(("ERL_", "ELIXIR_ERL_"))},
        "HOME": node.home,
        "LOADLENS_SOURCE": str(_SOURCE),
        "ERL_CRASH_DUMP_SECONDS": "0",
    }
    return subprocess.Popen(
        [node.erl, *few, *alone, "-eval", _SERVE, "-extra", node.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=settings,
    )


def _asked(reading: subprocess.Popen[bytes]) -> str:
    """Ask for a dump and return it; raise OSError if none comes in time."""
    assert reading.stdin is not None
    reading.stdin.write(_SIZE.pack(1) + b"?")
    reading.stdin.flush()
    until_s = time.monotonic() + WITHIN_S
    (size,) = _SIZE.unpack(_received(reading, _SIZE.size, until_s))
    return _received(reading, size, until_s).decode(errors="replace")


def _received(reading: subprocess.Popen[bytes], size: int, until_s: float) -> bytes:
    assert reading.stdout is not None
    descriptor, content = reading.stdout.fileno(), b""
    while len(content) < size:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, until_s - time.monotonic()))
        part = os.read(descriptor, size - len(content)) if ready else b""
        if not part:
            raise OSError("it refuses the cookie, or does not answer")
        content += part
    return content
