"""Sections of the program that a process runs, which say what it was made from."""

from __future__ import annotations

import os
import struct
from functools import lru_cache
from pathlib import Path
from typing import Final

_HEADER: Final = struct.Struct("<40xQ10xHHH")  # of 64 bits: offset of sections; their size, number, names
_OFFSET_AND_SIZE: Final = struct.Struct("<24xQQ")
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


def has_section(pid: int, name: str) -> bool:
    """True if the program of a process has a section: `.symtab` is the table of its functions."""
    return name.encode() in _sections(pid, identity(pid))


@lru_cache(maxsize=64)
def _sections(pid: int, _identity: object) -> frozenset[bytes]:
    try:
        with open(f"/proc/{pid}/exe", "rb") as program:
            head = program.read(64)
            if not head.startswith(b"\x7fELF\x02\x01"):
                return frozenset()
            begin, size, _, names = _HEADER.unpack(head)
            program.seek(begin + names * size)
            offset, length = _OFFSET_AND_SIZE.unpack(program.read(_OFFSET_AND_SIZE.size))
            program.seek(offset)
            return frozenset(program.read(length).split(b"\0"))
    except (OSError, struct.error):
        return frozenset()


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
