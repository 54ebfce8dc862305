"""Goroutines of a Go process, read from its memory: it need not show them, and is not asked.

The runtime has a list of all goroutines, and for its own stack traces tables of all functions. They are in
every program, stripped or not, and are the places that a dump of net/http/pprof names. Only a thread that
computes is stopped, for the time that its stack is read. The layout is that of Go 1.21 to 1.26 on x86-64.
"""

from __future__ import annotations

import contextlib
import platform
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final

from loadlens.model.stacks import Frame, Wait
from loadlens.signals.collect.threads import NotRead, Threads, elf, waits
from loadlens.signals.collect.threads.go_frames import (
    is_library,
    module_of,
    seen_in,
    source_paths,
    split,
)
from loadlens.signals.collect.threads.memory import UNCLEAR, Memory, read_by, stopped, thread_of

OLDEST, NEWEST = (1, 21), (1, 26)
MOST: Final = 500  # goroutines at one moment
MOST_LISTED: Final = 1 << 16  # those that ended are listed, too
MOST_STACK: Final = 32_768  # bytes that are read, from the innermost frame on
MOST_FRAMES: Final = 100
_TABLES: Final = "gopclntab"  # end of the section's name
_BUILT: Final = ".go.buildinfo"
_BUILT_BYTES: Final = 256  # of it, with the version
_VERSION: Final = re.compile(rb"go(\d+)\.(\d+)")
_MAGIC: Final = 0xFFFFFFF1  # of the tables, since 1.20
_MODULE_WORDS: Final = 41  # of the runtime's `moduledata`, up to `gofunc`
_MODULE_SECTIONS: Final = (".go.module", ".noptrdata", ".data", ".data.rel.ro")
_PART_BYTES: Final = 1 << 20  # that are searched at once
_REASONS: Final = re.compile(rb"\0{16}(.{8})\x11\0{7}.{8}\x07\0{7}", re.DOTALL)  # a table that begins with
_FIRST_REASONS: Final = ("", "GC assist marking", "IO wait")
_LONGEST_REASON: Final = 64
_FUNCTION: Final = struct.Struct("<IiiIIIIIIiBBxB")  # of the runtime's `_func`
_KIND_AT: Final = 40  # byte of it
_INLINED: Final = struct.Struct("<B3xiii")  # of its `inlinedCall`
_INLINED_AT, _INLINED_TREE = 2, 3  # of a function's tables
_NONE: Final = 0xFFFFFFFF
_TOP: Final = 1  # flag of a function at the begin of a stack
_NEXT_IS_EXACT: Final = ("runtime.asyncPreempt", "runtime.sigpanic")  # no call leads to them
_SWITCHED: Final = "runtime.systemstack_switch"
_TYPES: Final = re.compile(r"\[.*\]")

_RUNNABLE, _RUNNING, _SYSCALL, _WAITING, _PREEMPTED = 1, 2, 3, 4, 9
_PARKED: Final = "runtime.gopark"  # function that a goroutine waits in
_STATES: Final = {_RUNNABLE: "runnable", _RUNNING: "running", _SYSCALL: "syscall", _PREEMPTED: "preempted"}
_SCAN: Final = 0x1000
_LOW, _HIGH, _M, _SP, _PC, _SELF = 0, 1, 6, 7, 8, 9  # words of a goroutine


@dataclass(frozen=True, slots=True)
class _Place:
    """An address as the tables describe it."""

    frames: tuple[tuple[str, str, int], ...]  # function, file and line, the innermost inlined one first
    name: str  # of the function that is there
    size: int  # of its frame, without the address to return to
    is_top: bool


@dataclass(frozen=True, slots=True)
class _Goroutine:
    number: int
    low: int
    high: int
    thread: int  # its address, where it has one
    sp: int
    pc: int
    status: int
    reason: int
    syscall: tuple[int, int]  # stack and instruction pointers of one that is under way


class _Tables:
    """The runtime's tables of functions."""

    def __init__(self, memory: Memory, module: int) -> None:
        words = memory.words(module, _MODULE_WORDS)

        def table(word: int, each: int = 1) -> bytes:
            return memory.read(words[word], words[word + 1] * each)

        self._names, self._files, self._values, self._functions = table(1), table(7), table(10), table(13)
        self._units = memoryview(table(4, 4)).cast("I")
        self._index = memoryview(table(16, 8)).cast("I")
        self._text, self._end = words[22], words[23]
        self._data_of_functions = words[40]
        self._memory = memory
        self.data, self.bss = words[26:28], words[28:30]
        self._places: dict[tuple[int, bool], _Place | None] = {}
        *rows, _ = self._index[1::2]  # the last only ends the one before
        self._wrapper = max(self._functions[row + _KIND_AT] for row in rows)  # the last kind that there is

    def at(self, pc: int, *, is_exact: bool = False) -> _Place | None:
        """Return what is at an address; none outside of Go's code.

        Args:
            pc: Where a function goes on after a call, or where it is.
            is_exact: It is there, and not in a call before.
        """
        key = (pc, is_exact)
        if key not in self._places:
            self._places[key] = self._looked_up(pc, is_exact) if self._text <= pc < self._end else None
        return self._places[key]

    def file_of(self, name: str) -> str:
        """Return the file of a function; raise NotRead if the program does not have it."""
        at = self._names.find(b"\0" + name.encode() + b"\0") + 1
        for row in self._index[1:-1:2] if at else ():
            begin, of, *_ = _FUNCTION.unpack_from(self._functions, row)
            if of == at:
                return self._looked_up(self._text + begin + 1, is_exact=False).frames[-1][1]
        raise NotRead(f"no function {name}")

    def _looked_up(self, pc: int, is_exact: bool) -> _Place:
        row = (
            bisect_right(range(len(self._index) // 2), pc - self._text, key=lambda i: self._index[2 * i]) - 1
        )
        at = self._index[2 * row + 1]
        fields = _FUNCTION.unpack_from(self._functions, at)
        begin, name, _, _, sizes, files, lines, count, unit, _, kind, flags, more = fields
        entry = self._text + begin
        tables = struct.unpack_from(f"<{count + more}I", self._functions, at + _FUNCTION.size)

        def value(table: int, target: int) -> int:
            return self._value(table, entry, target)

        def place(of: int, target: int) -> tuple[str, str, int]:
            file = value(files, target)
            where = self._units[unit + file] if file >= 0 else _NONE
            text = "" if where == _NONE else elf.text_at(self._files, where)
            return _TYPES.sub("[...]", elf.text_at(self._names, of)), text, value(lines, target)

        target = pc if is_exact else pc - 1
        frames: list[tuple[str, str, int]] = []
        tree = tables[count + _INLINED_TREE] if more > _INLINED_TREE else _NONE
        inlined = tables[_INLINED_AT] if count > _INLINED_AT and tree != _NONE else 0
        while inlined and (call := value(inlined, target)) >= 0 and len(frames) < MOST_FRAMES:
            address = self._data_of_functions + tree + call * _INLINED.size
            of_kind, of, parent, _ = _INLINED.unpack(self._memory.read(address, _INLINED.size))
            frames += [place(of, target)] * (of_kind != self._wrapper)
            target = entry + parent
        frames += [place(name, target)] * (kind != self._wrapper)
        size = max(0, value(sizes, pc))
        return _Place(tuple(frames), elf.text_at(self._names, name), size, bool(flags & _TOP))

    def _value(self, table: int, pc: int, target: int) -> int:
        """Return what a table of a function has for an address: pairs of differences, each of some bytes."""
        value, at, entry = -1, table, pc
        while table:
            change, at = _number(self._values, at)
            if change == 0 and pc != entry:
                break
            value += -(change >> 1) - 1 if change & 1 else change >> 1
            step, at = _number(self._values, at)
            pc += step
            if target < pc:
                return value
        return -1


class GoMemoryReader:
    """Reads the goroutines of one Go process."""

    is_asked: ClassVar = False

    def __init__(self, pid: int, memory: Memory, version: tuple[int, int]) -> None:
        self._pid = pid
        self._memory = memory
        self._tables = _Tables(memory, _module(pid, memory))
        saved = 56 if version < (1, 25) else 48  # bytes of a saved place
        self._syscall = (56 + saved) // 8
        self._status = self._syscall + (4 if version < (1, 23) else 5)
        self._words = self._status + 5
        self._procid = (8 + saved + 8) // 8  # word of a thread
        self._reasons = _reasons(memory, self._tables.data)
        self._list = self._list_of_goroutines()
        self._root = self._tables.file_of("runtime.main").removesuffix("runtime/proc.go")
        self._own = module_of(self._tables.file_of("main.main"))

    def read(self) -> Threads:
        """Return the frames of every goroutine; raise NotRead if they cannot be read."""
        stacks, names, of_wait, running = {}, {}, {}, {}
        for at in self._pointers():
            with contextlib.suppress(*UNCLEAR):
                seen = self._goroutine(at)
                state = self._state(seen)
                if state is None:
                    continue
                places = self._places_of(at, seen)
                if seen.status != _RUNNING and self._goroutine(at) != seen:
                    continue  # it went on meanwhile
                if not places or (places[-1][0].startswith("runtime.") and seen.number != 1):
                    continue  # of the runtime itself
                frames = [self._frame(*place) for place in places if _is_shown(place[0])]
                stacks[seen.number], wait = seen_in(state, frames)
                names[seen.number] = places[-1][0]
                of_wait[seen.number] = self._wait_in_call(seen) if seen.status == _SYSCALL else wait
                if seen.status == _RUNNABLE and places[0][0] == _PARKED:
                    of_wait[seen.number] = "other"  # woken, and waits for a processor
                running[seen.number] = of_wait[seen.number] == ""
            if len(stacks) == MOST:
                break
        return Threads(stacks, names, of_wait, running, is_all=True)

    def sources(self, frame: Frame) -> Iterator[Path]:
        """Yield where the source of a frame may be, as this machine sees it."""
        return source_paths(self._pid, frame)

    def close(self) -> None:
        """Close the memory."""
        self._memory.close()

    def _list_of_goroutines(self) -> int:
        """Return where the list of all goroutines is: the first is number 1, and refers to itself."""
        begin, end = self._tables.bss
        for part in range(begin, end - 16, _PART_BYTES):
            words = self._memory.words(part, min(_PART_BYTES + 16, end - part) // 8)
            for place in range(len(words) - 2):
                first, length, room = words[place : place + 3]
                if first % 8 == 0 < first and 0 < length <= room <= 1 << 24 and self._is_first(first):
                    return part + 8 * place
        raise NotRead("the goroutines of this version of Go are not known")

    def _is_first(self, pointer: int) -> bool:
        with contextlib.suppress(NotRead):
            (at,) = self._memory.words(pointer, 1)
            words = self._memory.words(at, self._words) if at % 8 == 0 < at else ()
            return bool(words) and words[_SELF] == at and words[self._status + 1] == 1
        return False

    def _pointers(self) -> Sequence[int]:
        first, length = self._memory.words(self._list, 2)
        return self._memory.words(first, min(length, MOST_LISTED))

    def _goroutine(self, at: int) -> _Goroutine:
        words = self._memory.words(at, self._words)
        return _Goroutine(
            number=words[self._status + 1],
            low=words[_LOW],
            high=words[_HIGH],
            thread=words[_M],
            sp=words[_SP],
            pc=words[_PC],
            status=words[self._status] & 0xFFFFFFFF & ~_SCAN,
            reason=words[self._status + 4] & 0xFF,
            syscall=words[self._syscall : self._syscall + 2],  # type: ignore[arg-type]
        )

    def _state(self, seen: _Goroutine) -> str | None:
        """Return the state as the runtime names it; none for one that does not exist any more."""
        if seen.status == _WAITING:
            return self._reasons[seen.reason] if seen.reason < len(self._reasons) else "waiting"
        return _STATES.get(seen.status)

    def _wait_in_call(self, seen: _Goroutine) -> Wait:
        """Return what a goroutine in a call of the system waits for: the kernel says it of the thread."""
        kernel = waits.state_of(self._pid, self._thread(seen))
        return "other" if kernel is None or kernel.is_running else kernel.wait

    def _thread(self, seen: _Goroutine) -> int:
        """Return the number that the thread of a goroutine has for us; raise NotRead if it has none."""
        own = self._memory.words(seen.thread, self._procid + 1)[self._procid] if seen.thread else 0
        return thread_of(self._pid, own)

    def _places_of(self, at: int, seen: _Goroutine) -> list[tuple[str, str, int]]:
        """Return function, file and line of all frames, the innermost first."""
        if seen.status == _SYSCALL:
            return self._walked(seen, *seen.syscall)
        if seen.status != _RUNNING:
            return self._walked(seen, seen.sp, seen.pc)
        with stopped(self._thread(seen)) as (pc, sp):
            now = self._goroutine(at)
            if (now.status, now.thread, now.number) != (_RUNNING, seen.thread, seen.number):
                raise NotRead("it went on meanwhile")
            if now.low < sp <= now.high:
                return self._walked(now, sp, pc, is_exact=True)
            switched = self._tables.at(now.pc)  # the runtime works for it, on another stack
            if switched is None or switched.name != _SWITCHED:
                raise NotRead("it is on another stack")
            return self._walked(now, now.sp, now.pc)

    def _walked(
        self, seen: _Goroutine, sp: int, pc: int, *, is_exact: bool = False
    ) -> list[tuple[str, str, int]]:
        if not seen.low < sp <= seen.high:
            raise NotRead("the stack has moved")
        size = min(seen.high - sp, MOST_STACK) // 8
        stack = self._memory.words(sp, size)
        places: list[tuple[str, str, int]] = []
        at = 0
        while (place := self._tables.at(pc, is_exact=is_exact)) is not None and len(places) < MOST_FRAMES:
            if place.is_top:
                break
            places += place.frames
            at += place.size // 8
            if at >= size:
                break
            pc = stack[at]
            at += 1
            is_exact = place.name in _NEXT_IS_EXACT
        return places

    def _frame(self, name: str, file: str, line: int) -> Frame:
        module, function = split(name)
        return Frame(function, module, file, line, not is_library(file, self._root, self._own))


def reader_of(pid: int) -> GoMemoryReader | None:
    """Return a reader if a process is a Go program whose memory is understood.

    Raise NotRead if its memory may not be read.
    """
    version = _version(pid, elf.identity(pid))
    if version is None or not OLDEST <= version <= NEWEST or platform.machine() != "x86_64":
        return None
    return read_by(lambda memory: GoMemoryReader(pid, memory, version), pid)


@lru_cache(maxsize=64)
def _version(pid: int, _identity: object) -> tuple[int, int] | None:
    """Return the version of Go that a program was built with; none: with another language."""
    match = _VERSION.search(elf.read(elf.of_process(pid), _BUILT)[:_BUILT_BYTES])
    return None if match is None else (int(match.group(1)), int(match.group(2)))


def _module(pid: int, memory: Memory) -> int:
    """Return where the runtime's description of the program is: it begins with the address of the tables."""
    sections = elf.sections(elf.of_process(pid))
    moved = next((moved for _, moved in elf.loaded_by(pid)), 0)
    tables = next((s.address + moved for name, s in sections.items() if name.endswith(_TABLES)), None)
    if tables is None:
        raise NotRead("no tables of functions")
    head = memory.words(tables, 5)
    if head[0] & 0xFFFFFFFF != _MAGIC:
        raise NotRead("tables of functions that are not known")
    begin = struct.pack("<QQ", tables, tables + head[4])
    for name in _MODULE_SECTIONS:
        if name in sections:
            at = sections[name].address + moved
            place = memory.read(at, sections[name].size).find(begin)
            if place >= 0:
                return at + place
    raise NotRead("no description of the program")


def _reasons(memory: Memory, data: Sequence[int]) -> tuple[str, ...]:
    """Return the names of what a goroutine may wait for, in the order of their numbers."""
    begin, end = data
    written = memory.read(begin, end - begin)
    for match in _REASONS.finditer(written):
        reasons: list[str] = []
        at = match.start()
        while at + 16 <= len(written):
            address, length = struct.unpack_from("<QQ", written, at)
            if length > _LONGEST_REASON or (length and not reasons):
                break
            try:
                text = memory.read(address, length).decode("ascii") if length else ""
            except (NotRead, UnicodeDecodeError):
                break
            reasons.append(text)
            at += 16
        if tuple(reasons[:3]) == _FIRST_REASONS:
            return tuple(reasons)
    raise NotRead("reasons to wait that are not known")


def _is_shown(name: str) -> bool:
    """False for the inside of the runtime, which a dump leaves out, too."""
    return not name.startswith("runtime.") or name[8:9].isupper()


def _number(table: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits per byte, the lowest first, and where the next begins."""
    value = shift = 0
    while True:
        byte = table[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
