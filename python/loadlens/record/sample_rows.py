"""Samples and connections: the engine's rows in chunks with a CRC, and the Parquet made of them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadlens.errors import RecordError
from loadlens.record import disk, layout

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

CHUNK_HEAD = struct.Struct("<4sIII")  # magic, rows, CRC-32 of the payload, zero
ROWS_A_CHUNK = 1 << 14
ROWS_A_PART = 1 << 18  # about two row groups, as polars writes them
MAX_CHUNK_ROWS = 1 << 24  # 1 GiB of samples: more is not a chunk that the engine writes
_CODES = {"<u8": "Q", "<i8": "q", "<u4": "I", "<u2": "H", "<u1": "B"}


@dataclass(frozen=True, slots=True)
class RowFormat:
    """One kind of fixed-width row: its magic and its fields in order, without gaps."""

    magic: bytes
    fields: tuple[tuple[str, str], ...]  # (name, numpy type), little-endian
    fields_of_1: int | None = None  # how many of the fields a row of version 1 has; none: all
    added: tuple[
        tuple[str, int], ...
    ] = ()  # columns that records of version 1 lack, and what they mean there

    @property
    def version(self) -> int:
        """The digit of the magic."""
        return int(self.magic[3:])

    def of_version(self, version: int) -> tuple[tuple[str, str], ...]:
        """The fields of a row of this version."""
        return self.fields if version == self.version else self.fields[: self.fields_of_1]

    def packed(self, version: int) -> struct.Struct:
        """A row of this version as `struct` reads it."""
        return struct.Struct("<" + "".join(_CODES[kind] for _, kind in self.of_version(version)))


SAMPLE = RowFormat(
    magic=b"LLS1",
    fields=(
        ("seq", "<u8"),
        ("due_ns", "<i8"),
        ("sent_ns", "<i8"),
        ("first_ns", "<i8"),
        ("done_ns", "<i8"),
        ("user", "<u4"),
        ("connection", "<u4"),
        ("wire_bytes", "<u4"),
        ("body_bytes", "<u4"),
        ("step", "<u2"),
        ("status", "<u2"),
        ("outcome", "<u1"),
        ("stream", "<u1"),
        ("thinned", "<u1"),
        ("flags", "<u1"),
    ),
)

CONNECTION = RowFormat(
    magic=b"LLC2",
    fields=(
        ("connection", "<u4"),
        ("user", "<u4"),
        ("opened_ns", "<i8"),
        ("established_ns", "<i8"),
        ("closed_ns", "<i8"),
        ("requests", "<u4"),
        ("closed_by", "<u1"),
        ("stream", "<u1"),
        ("outcome", "<u1"),
        ("resumed", "<u1"),
        ("bytes_in", "<u8"),
        ("tls_ns", "<i8"),
    ),
    fields_of_1=11,
    added=(("resumed", 0), ("tls_ns", -1)),
)


def schema(form: RowFormat) -> dict[str, Any]:
    """Polars types of the columns."""
    import polars as pl

    kinds = {
        "<u8": pl.UInt64,
        "<i8": pl.Int64,
        "<u4": pl.UInt32,
        "<u2": pl.UInt16,
        "<u1": pl.UInt8,
    }
    return {name: kinds[kind] for name, kind in form.fields}


def chunks(path: Path, form: RowFormat) -> Iterator[np.ndarray[Any, Any]]:
    """Structured arrays of the file's whole chunks, in order; ends at the first short or damaged one.

    A file that is not there holds nothing: the engine makes it with the first chunk.
    """
    import numpy as np

    for version, payload in _payloads(path, form):
        yield np.frombuffer(payload, dtype=np.dtype(list(form.of_version(version))))


def tuples(path: Path, form: RowFormat) -> Iterator[tuple[int, ...]]:
    """The rows of a file's whole chunks one by one, without numpy; of the newest version only."""
    row = form.packed(form.version)
    for version, payload in _payloads(path, form):
        if version != form.version:
            raise RecordError(f"rows of version {version} are read through polars only", where=str(path))
        yield from row.iter_unpack(payload)


def _payloads(path: Path, form: RowFormat) -> Iterator[tuple[int, bytes]]:
    """(version, bytes) of the file's whole chunks."""
    if not path.is_file():
        return
    with disk.touching("read", path), path.open("rb") as file:
        while len(head := file.read(CHUNK_HEAD.size)) == CHUNK_HEAD.size:
            magic, rows, crc, _zero = CHUNK_HEAD.unpack(head)
            if magic[:3] != form.magic[:3] or not magic[3:].isdigit() or rows > MAX_CHUNK_ROWS:
                return
            version = int(magic[3:])
            layout.refuse_newer(version, path, newest=form.version)
            length = rows * form.packed(version).size
            payload = file.read(length)
            if len(payload) != length or zlib.crc32(payload) != crc:
                return
            yield version, payload


def write_live(path: Path, content: Iterable[Sequence[int]], form: RowFormat) -> None:
    """Write rows of the newest version as a live file, in chunks as the engine does."""
    row = form.packed(form.version)
    with disk.touching("write", path), path.open("wb") as file:
        for part in batched(content, ROWS_A_CHUNK):
            payload = b"".join(row.pack(*values) for values in part)
            file.write(CHUNK_HEAD.pack(form.magic, len(part), zlib.crc32(payload), 0))
            file.write(payload)


def batched(content: Iterable[Sequence[int]], most: int) -> Iterator[list[Sequence[int]]]:
    """The rows in lists of at most so many."""
    rows = iter(content)
    while part := list(islice(rows, most)):
        yield part


def frame(rows: np.ndarray[Any, Any], form: RowFormat) -> pl.DataFrame:
    """The columns of structured rows."""
    import numpy as np
    import polars as pl

    there = rows.dtype.names or ()
    columns = {name: np.ascontiguousarray(rows[name]) for name, _ in form.fields if name in there}
    columns |= {name: np.full(len(rows), value) for name, value in form.added if name not in there}
    return pl.DataFrame(columns, schema=schema(form))


def read_live(path: Path, form: RowFormat) -> pl.DataFrame:
    """Everything in a live file up to its last whole chunk."""
    import polars as pl

    parts = [frame(rows, form) for rows in chunks(path, form)]
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema(form))


def seal(live: Path, sealed: Path, form: RowFormat) -> None:
    """Write the live file's whole chunks as Parquet; memory is bounded by a few chunks."""
    write_parquet(sealed, (frame(rows, form) for rows in chunks(live, form)), schema(form))


def write_parquet(path: Path, parts: Iterator[pl.DataFrame], columns: dict[str, Any]) -> None:
    """Stream frames of one schema into a Parquet file that carries the schema version in its metadata."""
    import polars as pl
    from polars.io.plugins import register_io_source

    def source(
        with_columns: list[str] | None, _predicate: object, _n_rows: int | None, _batch: int | None
    ) -> Iterator[pl.DataFrame]:
        for part in parts:
            yield part if with_columns is None else part.select(with_columns)

    with disk.touching("write", path):
        try:
            register_io_source(source, schema=columns).sink_parquet(
                path,
                compression="zstd",
                maintain_order=True,
                metadata={layout.PARQUET_VERSION_KEY: str(layout.SCHEMA_VERSION)},
            )
        except pl.exceptions.PolarsError as fault:
            raise RecordError(f"cannot write: {fault}", where=str(path)) from fault


def parquet_parts(path: Path, columns: dict[str, Any], only: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Some columns of a sealed table, in frames of at most so many rows that memory is bounded."""
    import polars as pl

    _refuse_missing(columns, _names(path), path)
    with _undamaged(path):
        size = pl.scan_parquet(path).select(pl.len()).collect().item()
    for begin in range(0, size, ROWS_A_PART):
        with _undamaged(path):
            part = pl.scan_parquet(path).select(only).slice(begin, ROWS_A_PART).collect()
        yield part


def read_parquet(
    path: Path,
    columns: dict[str, Any],
    added: tuple[tuple[str, int], ...] = (),
    only: Sequence[str] = (),
) -> pl.DataFrame:
    """A sealed table, its version checked; RecordError with the file's name when it is damaged.

    Args:
        path: The file.
        columns: Names and types of its columns.
        added: Columns that older records lack, and what they mean there.
        only: Columns to read; none named: all.
    """
    import polars as pl

    there = _names(path)
    wanted = [name for name in only or columns if name in there]
    with _undamaged(path):
        found = pl.read_parquet(path, columns=wanted, memory_map=False)
    lacking = [pl.lit(value, columns[name]).alias(name) for name, value in added if name not in there]
    _refuse_missing(columns, [*there, *(name for name, _ in added)], path)
    return found.with_columns(lacking).select(list(only or columns))


def _names(path: Path) -> list[str]:
    """Names of the columns of a sealed table, its version checked."""
    import polars as pl

    if not path.is_file():
        raise RecordError("the file is missing", where=str(path))
    with _undamaged(path):
        said = pl.read_parquet_metadata(path).get(layout.PARQUET_VERSION_KEY, "")
        layout.refuse_newer(int(said) if said.isdecimal() else said, path)
        return list(pl.read_parquet_schema(path))


def _refuse_missing(columns: Iterable[str], there: Iterable[str], path: Path) -> None:
    if missing := [name for name in columns if name not in there]:
        raise RecordError(f"damaged: columns {', '.join(missing)} are missing", where=str(path))


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    """RecordError with the file's name where what is read is no Parquet."""
    import polars as pl

    with disk.touching("read", path):
        try:
            yield
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as fault:
            raise RecordError(f"damaged: not Parquet ({fault})", where=str(path)) from fault
