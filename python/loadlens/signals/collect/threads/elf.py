"""Sections of the program that a process runs, which say what it was made from."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

_HEADER: Final = struct.Struct("<40xQ10xHHH")  # of 64 bits: offset of sections; their size, number, names
_SECTION: Final = struct.Struct("<I12xQQQ")  # name; address, offset and size
_SEGMENTS: Final = struct.Struct("<32xQ14xHH")  # of 64 bits: offset of segments; their size, number
_SEGMENT: Final = struct.Struct("<I4xQQ8xQ")  # kind, offset and address; size in the file
_LOADED: Final = 1


def identity(pid: int) -> tuple[int, int, int] | None:
    """Return what distinguishes the program of a process from others; none if it may not be seen."""
    try:
        seen = os.stat(f"/proc/{pid}/exe")
    except OSError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_mtime_ns


@dataclass(frozen=True, slots=True)
class Section:
    """Part of a program: its address when it is not moved, its place in the file, and its size in bytes."""

    address: int
    offset: int
    size: int


def has_section(pid: int, name: str) -> bool:
    """True if the program of a process has a section: `.symtab` is the table of its functions."""
    return name in sections(pid)


def sections(pid: int) -> Mapping[str, Section]:
    """Return the sections of the program of a process by name; empty if it may not be seen."""
    return _sections(pid, identity(pid))


@lru_cache(maxsize=64)
def _sections(pid: int, _identity: object) -> Mapping[str, Section]:
    try:
        with open(f"/proc/{pid}/exe", "rb") as program:
            head = program.read(64)
            if not head.startswith(b"\x7fELF\x02\x01"):
                return {}
            begin, size, count, names = _HEADER.unpack(head)
            program.seek(begin)
            rows = [_SECTION.unpack_from(program.read(size)) for _ in range(count)]
            program.seek(rows[names][2])
            texts = program.read(rows[names][3])
    except (OSError, struct.error, IndexError):
        return {}
    return {
        texts[name : texts.find(b"\0", name)].decode(errors="replace"): Section(*place)
        for name, *place in rows
    }


def section_bytes(pid: int, name: str, most: int) -> bytes:
    """Return the begin of a section, from the file; nothing if there is none."""
    section = sections(pid).get(name)
    if section is None:
        return b""
    try:
        with open(f"/proc/{pid}/exe", "rb") as program:
            program.seek(section.offset)
            return program.read(min(most, section.size))
    except OSError:
        return b""


def moved_by(pid: int) -> int:
    """Return how far from its own addresses the program of a process was loaded; 0 if that cannot be seen."""
    program = Path(f"/proc/{pid}/exe")
    try:
        seen = program.stat()
        maps = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except OSError:
        return 0
    for line in maps:
        fields = line.split(maxsplit=5)
        if fields[2] == "00000000" and fields[4] == str(seen.st_ino):
            at, address, _ = min(_loaded(program), default=(0, 0, 0))
            return int(fields[0].partition("-")[0], 16) - (address - at)
    return 0


def address_of(program: Path, offset: int) -> int | None:
    """Return the address that a place in the file of a program has for its debug information."""
    loaded = _loaded(program)
    return next((address + offset - at for at, address, size in loaded if at <= offset < at + size), None)


@lru_cache(maxsize=8)
def _loaded(program: Path) -> tuple[tuple[int, int, int], ...]:
    try:
        with open(program, "rb") as file:
            begin, size, count = _SEGMENTS.unpack(file.read(_SEGMENTS.size))
            file.seek(begin)
            segments = [_SEGMENT.unpack_from(file.read(size)) for _ in range(count)]
    except (OSError, struct.error):
        return ()
    return tuple((at, address, length) for kind, at, address, length in segments if kind == _LOADED)
