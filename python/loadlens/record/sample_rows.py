"""Samples and connections: the engine's rows in chunks with a CRC, and the Parquet files made of them."""

from __future__ import annotations

import mmap
import os
import resource
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadlens.errors import RecordError, reason_of
from loadlens.model.trial import CHUNK_HEAD, MAX_CHUNK_ROWS, TYPES, RowFormat
from loadlens.record import disk, layout, parquet_sizes

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

ROWS_A_CHUNK = 1 << 14
ROWS_A_PART = 1 << 18  # about two row groups, as polars writes them
NODE = "node"  # a column that rows get when they are read: the machine that sent them
MOST_STREAMS = 256  # a row's stream is a byte


def can_write_parquet() -> bool:
    """Return True if Polars, a part of the extra `lab`, is installed and may have its address space."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return (limit == resource.RLIM_INFINITY or limit >= addresses_of_tables()) and (
        find_spec("polars") is not None
    )


def addresses_of_tables() -> int:
    """Return the address space for Polars, in bytes, twice of what was seen: each thread has its arena."""
    return (2 << 30) + (256 << 20) * len(os.sched_getaffinity(0))


def schema(form: RowFormat) -> dict[str, Any]:
    """Return the Polars types of the columns."""
    import polars as pl

    return {name: getattr(pl, TYPES[kind][1]) for name, kind in form.fields}


def chunks(path: Path, form: RowFormat) -> Iterator[np.ndarray[Any, Any]]:
    """Yield structured arrays of the file's whole chunks, in order, up to the first short or damaged one.

    A missing file holds no rows: the engine creates it with the first chunk.
    """
    import numpy as np

    for version, payload in _payloads(path, form):
        yield np.frombuffer(payload, dtype=np.dtype(list(form.of_version(version))))


def thinning(paths: Iterable[Path], form: RowFormat) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return how far live files of one table are thinned: the largest `thinned` of each stream."""
    import numpy as np

    zeros = np.zeros(MOST_STREAMS, dtype=np.uint64)  # by stream
    for path in paths:
        for rows in chunks(path, form):
            if "thinned" in (rows.dtype.names or ()) and rows["thinned"].any():
                np.maximum.at(zeros, rows["stream"], rows["thinned"].astype(np.uint64))
    return zeros


def thinned_alike(
    path: Path, form: RowFormat, zeros: np.ndarray[Any, np.dtype[np.uint64]]
) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the rows of a live file, chunk by chunk, so that those of a stream stand for as many each.

    Engine threads thin their rows ever more and leave what they wrote before. Of each stream those rows are
    kept whose hash ends in as many zero bits as `thinned` says at most.

    Args:
        path: The file.
        form: Of its rows.
        zeros: As `thinning` returns them for all files of the table.
    """
    import numpy as np

    for rows in chunks(path, form):
        if zeros.any():
            own = zeros[rows["stream"]]
            is_kept = hashed(rows[form.number]) & ((np.uint64(1) << own) - np.uint64(1)) == 0
            rows = rows[is_kept]
            rows["thinned"] = own[is_kept]
        yield rows


def hashed(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the hash by which the engine thins rows (`hashed` of crates/record/src/rows.rs)."""
    import numpy as np

    value = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return value ^ (value >> np.uint64(27))


def tuples(path: Path, form: RowFormat) -> Iterator[tuple[int, ...]]:
    """Yield the rows of a file's whole chunks, without numpy; of the newest version only."""
    row = form.packed(form.version)
    for version, payload in _payloads(path, form):
        if version != form.version:
            raise RecordError(f"rows of version {version} are read through polars only", where=str(path))
        yield from row.iter_unpack(payload)


def _payloads(path: Path, form: RowFormat) -> Iterator[tuple[int, bytes]]:
    """Yield version and bytes of the file's whole chunks."""
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
    """Yield the rows in lists of at most `most`."""
    rows = iter(content)
    while part := list(islice(rows, most)):
        yield part


def frame(rows: np.ndarray[Any, Any], form: RowFormat) -> pl.DataFrame:
    """Return structured rows as columns."""
    import numpy as np
    import polars as pl

    there = rows.dtype.names or ()
    columns = {name: np.ascontiguousarray(rows[name]) for name, _ in form.fields if name in there}
    columns |= {name: np.full(len(rows), value) for name, value in form.added if name not in there}
    return pl.DataFrame(columns, schema=schema(form))


def live_parts(paths: Mapping[str, Path], form: RowFormat) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the rows of live files of one table up to their last whole chunks, each with the file's key."""
    zeros = thinning(paths.values(), form)
    for key, path in paths.items():
        for rows in thinned_alike(path, form, zeros):
            yield key, frame(rows, form)


def seal(paths: Iterable[tuple[Path, Path]], form: RowFormat) -> None:
    """Write live files of one table as Parquet, thinned alike, with a few chunks in memory at a time.

    Args:
        paths: The live file and the sealed one of each machine.
        form: Of their rows.
    """
    pairs = list(paths)
    zeros = thinning([live for live, _ in pairs], form)
    for live, sealed in pairs:
        write_parquet(sealed, (frame(rows, form) for rows in thinned_alike(live, form, zeros)), schema(form))


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
            with path.open(
                "ab"
            ) as file:  # Polars may keep to itself why it could not write: the system says it
                file.write(bytes(mmap.PAGESIZE))
            raise RecordError(f"cannot write: {reason_of(fault)}", where=str(path)) from fault


def parquet_parts(path: Path, columns: dict[str, Any], only: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield some columns of a sealed table, in frames of at most `ROWS_A_PART` rows."""
    import polars as pl

    _refuse_missing(columns, _names(path), path)
    with _undamaged(path):
        size = pl.scan_parquet(path, glob=False).select(pl.len()).collect().item()
    for begin in range(0, size, ROWS_A_PART):
        with _undamaged(path):
            part = pl.scan_parquet(path, glob=False).select(only).slice(begin, ROWS_A_PART).collect()
        yield part


def read_parquet(
    path: Path,
    columns: dict[str, Any],
    added: tuple[tuple[str, int], ...] = (),
    only: Sequence[str] = (),
) -> pl.DataFrame:
    """Return a sealed table; raise RecordError if it is damaged or newer than this Loadlens reads.

    Args:
        path: The file.
        columns: Names and types of its columns.
        added: Columns that older records lack, with their value there.
        only: Columns to read; all by default.
    """
    import polars as pl

    there = _names(path)
    wanted = [name for name in only or columns if name in there]
    with _undamaged(path):
        table = pl.read_parquet(path, columns=wanted, memory_map=False, glob=False)
    lacking = [pl.lit(value, columns[name]).alias(name) for name, value in added if name not in there]
    _refuse_missing(columns, [*there, *(name for name, _ in added)], path)
    return table.with_columns(lacking).select(list(only or columns))


def _names(path: Path) -> list[str]:
    """Return the names of the columns of a sealed table, after a check of its sizes and its version."""
    import polars as pl

    if not path.is_file():
        raise RecordError("the file is missing", where=str(path))
    with _undamaged(path):
        parquet_sizes.check(path)
        version = pl.read_parquet_metadata(path).get(layout.PARQUET_VERSION_KEY, "")
        layout.refuse_newer(int(version) if version.isdecimal() else version, path)
        return list(pl.read_parquet_schema(path))


def _refuse_missing(columns: Iterable[str], there: Iterable[str], path: Path) -> None:
    if missing := [name for name in columns if name not in there]:
        raise RecordError(f"damaged: columns {', '.join(missing)} are missing", where=str(path))


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    """Raise RecordError with the file's name if the block reads something else than Parquet."""
    import polars as pl

    with disk.touching("read", path):
        try:
            yield
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as fault:
            raise RecordError(f"damaged: not Parquet ({fault})", where=str(path)) from fault
