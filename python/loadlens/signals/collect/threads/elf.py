"""Sections of the program that a process runs, which say what it was made from."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

_HEADER: Final = struct.Struct("<40xQ10xHHH")  # of 64 bits: offset of sections; their size, number, names
_SECTION: Final = struct.Struct("<I12xQQQ")  # name; address, offset and size
_SYMBOL: Final = struct.Struct("<I4xQ8x")  # name and address
_SEGMENTS: Final = struct.Struct("<32xQ14xHH")  # of 64 bits: offset of segments; their size, number
_SEGMENT: Final = struct.Struct("<I4xQQ8xQ")  # kind, offset and address; size in the file
_LOADED: Final = 1


def identity(pid: int) -> tuple[int, int, int] | None:
    """Return what distinguishes the program of a process from others; none if it may not be seen."""
    return _identity(of_process(pid))


def _identity(program: Path) -> tuple[int, int, int] | None:
    try:
        seen = program.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_mtime_ns


def of_process(pid: int) -> Path:
    """Return where the program of a process can be read."""
    return Path(f"/proc/{pid}/exe")


@dataclass(frozen=True, slots=True)
class Section:
    """Part of a program: its address when it is not moved, its place in the file, and its size in bytes."""

    address: int
    offset: int
    size: int


def has_section(pid: int, name: str) -> bool:
    """True if the program of a process has a section: `.symtab` is the table of its functions."""
    return name in sections(of_process(pid))


def sections(program: Path) -> Mapping[str, Section]:
    """Return the sections of a program by name; empty if it may not be seen."""
    return _sections(program, _identity(program))


@lru_cache(maxsize=64)
def _sections(program: Path, _identity: object) -> Mapping[str, Section]:
    try:
        with program.open("rb") as file:
            head = file.read(64)
            if not head.startswith(b"\x7fELF\x02\x01"):
                return {}
            begin, size, count, names = _HEADER.unpack(head)
            file.seek(begin)
            rows = [_SECTION.unpack_from(file.read(size)) for _ in range(count)]
            file.seek(rows[names][2])
            texts = file.read(rows[names][3])
    except (OSError, struct.error, IndexError):
        return {}
    return {text_at(texts, name): Section(*place) for name, *place in rows}


def read(program: Path, name: str) -> bytes:
    """Return a section of a program; nothing if there is none."""
    section = sections(program).get(name)
    if section is None:
        return b""
    try:
        with program.open("rb") as file:
            file.seek(section.offset)
            return file.read(section.size)
    except OSError:
        return b""


def exported(program: Path, names: Collection[str]) -> Mapping[str, int]:
    """Return the addresses of what a program or a library offers to others, by name, as far as it does."""
    texts, wanted = read(program, ".dynstr"), {name.encode(): name for name in names}
    at = {}
    for name, address in _SYMBOL.iter_unpack(read(program, ".dynsym")):
        text = texts[name : texts.find(b"\0", name)]
        if text in wanted and address:
            at[wanted[text]] = address
    return at


def loaded_by(pid: int, word: str = "") -> Iterator[tuple[Path, int]]:
    """Yield the program of a process and libraries with a word in their names, with how far each was moved.

    A program is moved if it is not at the addresses that its file names.
    """
    try:
        inode = of_process(pid).stat().st_ino
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        addresses, _, offset, _, of_file, *name = line.split(maxsplit=5)
        is_named = bool(word and name and word in Path(name[0]).name)
        if offset != "00000000" or not (is_named or of_file == str(inode)):
            continue
        library = Path(f"/proc/{pid}/root{name[0]}") if of_file != str(inode) else of_process(pid)
        at, address, _ = min(_loaded(library, _identity(library)), default=(0, 0, 0))
        yield library, int(addresses.partition("-")[0], 16) - (address - at)


def text_at(table: bytes, at: int) -> str:
    """Return the text that begins at a place of a table and ends with a zero."""
    return table[at : table.find(b"\0", at)].decode(errors="replace")


def address_of(program: Path, offset: int) -> int | None:
    """Return the address that a place in the file of a program has for its debug information."""
    loaded = _loaded(program, _identity(program))
    return next((address + offset - at for at, address, size in loaded if at <= offset < at + size), None)


@lru_cache(maxsize=64)
def _loaded(program: Path, _identity: object) -> tuple[tuple[int, int, int], ...]:
    try:
        with open(program, "rb") as file:
            begin, size, count = _SEGMENTS.unpack(file.read(_SEGMENTS.size))
            file.seek(begin)
            segments = [_SEGMENT.unpack_from(file.read(size)) for _ in range(count)]
    except (OSError, struct.error):
        return ()
    return tuple((at, address, length) for kind, at, address, length in segments if kind == _LOADED)
