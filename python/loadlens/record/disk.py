"""Access to the disk: whole files by rename, lines by append, locks, digests.

Every write of the record goes through here, so that one test can make each of them fail in turn.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadlens.errors import RecordError

Operation = Callable[[str, Path], None]
FREE_SPACE = "free space or fix permissions, then run it again; a study goes on with loadlens run --resume"


def _nothing(_what: str, _path: Path) -> None:
    """Called before each operation on a file; a test puts its faults here."""


before: Operation = _nothing


@contextmanager
def touching(what: str, path: Path) -> Iterator[None]:
    """Run one operation on a file; turn a refusal of the system into a RecordError that names the file."""
    try:
        before(what, path)
        yield
    except OSError as fault:
        raise RecordError(
            f"cannot {what}: {os.strerror(fault.errno) if fault.errno else fault}",
            where=str(path),
            hint=FREE_SPACE,
        ) from fault


def make_folder(path: Path) -> None:
    """Make a folder that must not exist yet, and its parents."""
    with touching("make the folder", path):
        path.mkdir(parents=True)


def write_whole(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Put a whole file in place at once: a reader sees all of it or none.

    Args:
        path: The file; it may exist.
        content: All of it.
        durable: Also wait until it and its name are on the disk (the seal).
    """
    fresh = path.with_name(f".{path.name}.new")
    with touching("write", path), fresh.open("wb") as file:
        file.write(content)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    with touching("rename", path):
        fresh.replace(path)
    if durable:
        sync(path.parent)


def sync(path: Path) -> None:
    """Wait until the bytes of a file, or the names in a folder, are on the disk."""
    with touching("sync", path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_tree(path: Path) -> None:
    """Remove a folder and its content, if it exists."""
    with touching("remove", path):
        if path.exists():
            shutil.rmtree(path)


def as_json(content: Mapping[str, Any]) -> str:
    """Canonical JSON: sorted keys, no spaces, non-ASCII as it is; NaN and infinities are refused."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_of_bytes(content: bytes) -> str:
    """SHA-256, hex."""
    return hashlib.sha256(content).hexdigest()


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file's bytes, hex; memory is bounded."""
    with touching("read", path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_bytes(path: Path) -> bytes:
    """Return all bytes of a file that must exist."""
    if not path.is_file():
        raise RecordError("the file is missing", where=str(path))
    with touching("read", path):
        return path.read_bytes()


def parse_json(raw: bytes) -> Any:
    """Parse JSON; raise ValueError also for lone surrogates, which cannot be written again."""
    content = json.loads(raw)
    if b"\\ud" in raw or b"\\uD" in raw:
        json.dumps(content, ensure_ascii=False).encode()
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; raise a RecordError that names a damaged file."""
    raw = read_bytes(path)
    try:
        content = parse_json(raw)
    except (ValueError, RecursionError) as fault:
        raise RecordError(f"damaged: not JSON ({fault})", where=str(path)) from fault
    if not isinstance(content, dict):
        raise RecordError(f"damaged: not a JSON object but {type(content).__name__}", where=str(path))
    return content


# --- JSON lines --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines of a JSON-lines file, and the damage."""

    rows: tuple[dict[str, Any], ...]
    damage: tuple[str, ...]


def iterate_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield line number and object of each whole line, None for a damaged one; leave out a torn last line."""
    with touching("read", path), path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.endswith(b"\n"):
                return  # the writer was stopped within this line
            try:
                row = parse_json(raw)
            except (ValueError, RecursionError):
                row = None
            yield number, row if isinstance(row, dict) else None


def read_lines(path: Path, *, checked: bool = False) -> Lines:
    """Return all whole lines, and name the damaged ones.

    Args:
        path: The file.
        checked: The lines are those of `append_checked_line`; a line with another CRC is damaged.
    """
    rows: list[dict[str, Any]] = []
    damage: list[str] = []
    for number, row in iterate_lines(path):
        if row is None or (checked and row.pop("crc", None) != _crc_of(row)):
            damage.append(f"line {number} is damaged")
        else:
            rows.append(row)
    return Lines(tuple(rows), tuple(damage))


def checked_row(line: bytes) -> dict[str, Any] | None:
    """Return the object in a line of `append_checked_line`; None if it is damaged."""
    try:
        row = parse_json(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and row.pop("crc", None) == _crc_of(row) else None


def append_checked_line(path: Path, row: Mapping[str, Any]) -> None:
    """Append one object as a line whose last key, `crc`, is the CRC-32 of the object's text."""
    text = as_json(row)
    line = f'{text[:-1]},"crc":"{zlib.crc32(text.encode()):08x}"}}\n'.encode()
    with touching("append", path):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            written = 0
            while written < len(line):
                written += os.write(descriptor, line[written:])
        finally:
            os.close(descriptor)


def _crc_of(row: Mapping[str, Any]) -> str | None:
    """Return the CRC of a line with this content; None if `append_checked_line` would refuse the content."""
    try:
        return f"{zlib.crc32(as_json(row).encode()):08x}"
    except ValueError:
        return None


def drop_torn_line(path: Path) -> None:
    """Cut an incomplete last line, so that new lines begin on a line of their own."""
    with touching("repair", path), path.open("rb+") as file:
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)


# --- locks -------------------------------------------------------------------------------------------


class FolderLock:
    """Exclusive right to write in a folder, until it is released or the process ends in any way.

    The lock is on the folder itself (flock), so it leaves no file behind that could go stale.
    """

    def __init__(self, path: Path) -> None:
        with touching("open the folder", path):
            self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            os.close(self._descriptor)
            raise RecordError(
                "another run is writing in this record",
                where=str(path),
                hint="wait for that run, or choose another folder with --out",
            ) from fault

    def release(self) -> None:
        """Release the lock; safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
