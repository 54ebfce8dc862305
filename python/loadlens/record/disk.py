"""How the record touches the disk: whole files by rename, lines by append, locks, digests.

Every write of the control plane goes through here, so that one test can make each of them fail in turn.
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


def _nothing(_what: str, _path: Path) -> None:
    """Called before each operation on a file; a test puts its faults here."""


before: Operation = _nothing


@contextmanager
def touching(what: str, path: Path) -> Iterator[None]:
    """Run one operation on a file; what the system refuses becomes a RecordError that names it."""
    try:
        before(what, path)
        yield
    except OSError as fault:
        raise RecordError(
            f"cannot {what}: {os.strerror(fault.errno) if fault.errno else fault}",
            where=str(path),
            hint="free space or mend permissions, then go on with --resume",
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
        sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Wait until the file's bytes are on the disk."""
    with touching("sync", path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    sync_file(path)


def remove_tree(path: Path) -> None:
    """Remove a folder with all that is in it; nothing happens when it is not there."""
    with touching("remove", path):
        shutil.rmtree(path, ignore_errors=False) if path.exists() else None


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
    """All bytes of a file that must be there."""
    if not path.is_file():
        raise RecordError("the file is missing", where=str(path))
    with touching("read", path):
        return path.read_bytes()


def parse_json(raw: bytes) -> Any:
    """What JSON bytes say; ValueError also for halves of characters, which cannot be written again."""
    content = json.loads(raw)
    if b"\\ud" in raw or b"\\uD" in raw:
        json.dumps(content, ensure_ascii=False).encode()
    return content


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; RecordError with the place when it is damaged."""
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
    """Whole lines of a JSON-lines file, and what could not be read."""

    rows: tuple[dict[str, Any], ...]
    damage: tuple[str, ...]


def iterate_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """(line number, object) of each whole line; none for a damaged line; a torn last line is left out."""
    with touching("read", path), path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.endswith(b"\n"):
                return  # the writer was stopped within this line
            try:
                row = parse_json(raw)
            except (ValueError, RecursionError):
                row = None
            yield number, row if isinstance(row, dict) else None


def read_lines(path: Path) -> Lines:
    """All whole lines; damaged ones are named, not silently left out."""
    rows: list[dict[str, Any]] = []
    damage: list[str] = []
    for number, row in iterate_lines(path):
        if row is None:
            damage.append(f"line {number} is damaged")
        else:
            rows.append(row)
    return Lines(tuple(rows), tuple(damage))


def append_checked_line(path: Path, row: Mapping[str, Any]) -> None:
    """Append one object as a line that carries the CRC-32 of its own text as last key, `crc`."""
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


def read_checked_lines(path: Path) -> Lines:
    """Lines of `append_checked_line`; a line whose CRC differs is damage."""
    rows: list[dict[str, Any]] = []
    damage: list[str] = []
    for number, row in iterate_lines(path):
        if row is None or row.pop("crc", None) != _crc_of(row):
            damage.append(f"line {number} is damaged")
        else:
            rows.append(row)
    return Lines(tuple(rows), tuple(damage))


def _crc_of(row: Mapping[str, Any]) -> str | None:
    """The CRC that a line of this content carries; none: it holds what none of ours does."""
    try:
        return f"{zlib.crc32(as_json(row).encode()):08x}"
    except ValueError:
        return None


def drop_torn_line(path: Path) -> None:
    """Cut what stands after the last line end, so that new lines begin on a line of their own."""
    with touching("mend", path), path.open("rb+") as file:
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)


# --- locks -------------------------------------------------------------------------------------------


class FolderLock:
    """The right to write in a folder, held by this process until it is released or ends in any way.

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
                hint="wait for it, or give another folder with --out",
            ) from fault

    def release(self) -> None:
        """Give the right back; more than once is fine."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
