"""Frames of the threads of a native program while they are on a CPU, sampled by perf.

Lines and inlined functions come from the program's debug information, which addr2line reads; without it no
line can be named, and nothing is sampled. Of a thread that waits only the kernel's view is known.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Final

from loadlens.model.stacks import Frame, Stack
from loadlens.signals.collect.threads import NotRead, Profile, elf

PER_S: Final = 99
TURN_NS: Final = 1_000_000_000  # until a thread that is ready to run has its next turn
AT_MOST_S: Final = 120  # then perf ends by itself
WITHIN_S: Final = 10.0
NOT_INSTALLED: Final = "perf is not installed"
NOT_PERMITTED: Final = "perf is not permitted"
_LINES: Final = ".debug_line"
_HEAD: Final = re.compile(r"^\s*(?P<tid>\d+)\s+(?P<second>\d+)\.(?P<ns>\d{9}):")
_FRAME: Final = re.compile(r"^\s+(?P<address>[0-9a-f]+) (?P<function>.+) \((?P<file>.+)\)$")
_PLACE: Final = re.compile(r"^(?P<file>.*):(?P<line>\d+|\?)")
_HASH: Final = re.compile(r"::h[0-9a-f]{16}$")  # of Rust
_LIBRARIES: Final = re.compile(r"^/(usr|build|rustc)/|/\.cargo/(registry|git)/|/pkg/mod/|/vendor/|/_deps/")

_PR_SET_PDEATHSIG: Final = 1


class NativeProfiler:
    """Samples the threads of one native process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._perf: subprocess.Popen[bytes] | None = None
        self._sampled: IO[bytes] | None = None

    def begin(self) -> None:
        """Begin to sample; raise NotRead if that cannot be."""
        program = shutil.which("perf")
        if program is None:
            raise NotRead(NOT_INSTALLED)
        self._sampled = tempfile.TemporaryFile()  # noqa: SIM115  # closed at the end
        command = [program, "record", "-q", "-e", "cpu-clock", "-F", str(PER_S), "-g", "-k", "mono"]
        prctl = ctypes.CDLL(None).prctl  # found before the fork
        self._perf = subprocess.Popen(
            [*command, "-p", str(self._pid), "-o", "-", "--", "sleep", str(AT_MOST_S)],
            stdin=subprocess.DEVNULL,
            stdout=self._sampled,
            stderr=subprocess.PIPE,
            # if the monitors' process is killed, perf ends too, and ends what it has started
            preexec_fn=lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0),
        )
        until = time.monotonic() + WITHIN_S
        while self._perf.poll() is None and time.monotonic() < until:
            if os.fstat(self._sampled.fileno()).st_size > 0:
                return  # it writes what it samples
            time.sleep(0.005)
        self._perf.kill()
        _, complaint = self._perf.communicate()
        self._sampled.close()
        raise NotRead(_reason(complaint.decode(errors="replace")))

    def end(self) -> Profile:
        """End, and return what was sampled; raise NotRead if it cannot be read."""
        assert self._perf is not None
        assert self._sampled is not None
        self._perf.send_signal(signal.SIGINT)
        try:
            self._perf.communicate(timeout=WITHIN_S)
        except subprocess.TimeoutExpired:
            self._perf.kill()
            self._perf.communicate()
        with self._sampled as sampled:
            sampled.seek(0)
            fields = ("-F", "tid,time,ip,sym,dso", "--ns", "--no-inline")
            text = _run(["perf", "script", "-i", "-", *fields], stdin=sampled)
        return parse(text, Path(f"/proc/{self._pid}/exe"))

    def sources(self, frame: Frame) -> Iterator[Path]:
        """Yield where the source of a frame may be, as this machine sees it."""
        yield Path(f"/proc/{self._pid}/root") / frame.file.lstrip("/")


def profiler_of(pid: int) -> NativeProfiler | None:
    """Return a profiler if a process runs a program with debug information."""
    return NativeProfiler(pid) if elf.has_section(pid, _LINES) else None


def parse(text: str, program: Path) -> Profile:
    """Return the samples that `perf script` printed; addresses within the program are looked up."""
    try:
        own = str(program.resolve())
    except OSError:
        own = ""
    sampled: list[tuple[int, int, list[re.Match[str]]]] = []
    for part in text.split("\n\n"):
        head, *lines = part.strip("\n").split("\n")
        titled = _HEAD.match(head)
        if titled is not None:
            time_ns = int(titled.group("second")) * 10**9 + int(titled.group("ns"))
            sampled.append((int(titled.group("tid")), time_ns, [m for m in map(_FRAME.match, lines) if m]))
    addresses = {
        _called_from(int(frame.group("address"), 16), place)
        for _, _, frames in sampled
        for place, frame in enumerate(frames)
        if frame.group("file") == own
    }
    functions = _looked_up(program, addresses)
    stacks: dict[int, list[tuple[int, Stack]]] = {}
    for tid, time_ns, frames in sampled:
        inner = [
            each
            for place, frame in enumerate(frames)
            for each in functions.get(_called_from(int(frame.group("address"), 16), place), _foreign(frame))
        ]
        stacks.setdefault(tid, []).append((time_ns, tuple(reversed(inner))))
    return Profile(stacks, only_running=True, near_ns=TURN_NS)


def _called_from(address: int, place: int) -> int:
    """Return the address of an instruction; of a caller, that before the one to return to."""
    return address - (place > 0)


def _foreign(frame: re.Match[str]) -> tuple[Frame, ...]:
    name = frame.group("function")
    return () if name == "[unknown]" else (Frame(name, Path(frame.group("file")).name, "", 0),)


def _looked_up(program: Path, offsets: Iterable[int]) -> Mapping[int, tuple[Frame, ...]]:
    """Return the functions at places in a program's file, inlined ones first; none where it says none."""
    at = {address: offset for offset in offsets if (address := elf.address_of(program, offset)) is not None}
    if not at or shutil.which("addr2line") is None:
        return {}
    asked = "\n".join(f"{address:#x}" for address in at)
    text = _run(["addr2line", "-a", "-f", "-C", "-i", "-e", str(program)], text=asked)
    functions: dict[int, tuple[Frame, ...]] = {}
    for part in re.split(r"^(?=0x[0-9a-f]+$)", text, flags=re.MULTILINE):
        head, *lines = part.splitlines() or [""]
        frames = tuple(_frame(name, place) for name, place in zip(lines[::2], lines[1::2], strict=False))
        if head and frames and frames[0].file:
            functions[at[int(head, 16)]] = frames
    return functions


def _frame(name: str, place: str) -> Frame:
    module, _, function = _HASH.sub("", name).rpartition("::")
    match = _PLACE.match(place)
    file = "" if match is None or match.group("file") == "??" else match.group("file")
    line = int(match.group("line")) if match is not None and match.group("line").isdecimal() else 0
    is_own = file.startswith("/") and line > 0 and _LIBRARIES.search(file) is None
    return Frame(function, module, file, line, is_own)


def _run(command: list[str], *, stdin: IO[bytes] | None = None, text: str = "") -> str:
    try:
        if stdin is None:
            done = subprocess.run(
                command, input=text.encode(), capture_output=True, timeout=WITHIN_S, check=False
            )
        else:
            done = subprocess.run(command, stdin=stdin, capture_output=True, timeout=WITHIN_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise NotRead(f"{command[0]}: {fault}") from None
    return done.stdout.decode(errors="replace")


def _reason(complaint: str) -> str:
    if "perf_event_paranoid" in complaint or "ermission" in complaint or "not permitted" in complaint:
        return NOT_PERMITTED
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    return f"perf: {lines[-1]}" if lines else "perf ended without a word"
