"""Sizes that a Parquet file states, compared with the file before Polars reads it.

Polars allocates what the head of a page asks for, and ends the process where that fails. A file that is
damaged by chance fails its digest; one that was made to pass it has to be refused, too.

Source: parquet.thrift of Apache Parquet, and the compact protocol of Apache Thrift.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

TAIL_BYTES: Final = 8  # length of the footer, then the magic
MOST_HEAD_BYTES: Final = 1 << 16  # of a page, with its statistics
MOST_DEPTH: Final = 16
TRUE, FALSE, BYTE, FLOAT, BINARY, LIST, STRUCT = 1, 2, 3, 7, 8, 9, 12  # kinds of values of Thrift
INTEGERS: Final = (4, 5, 6)  # of 16, 32 and 64 bits
DATA, DICTIONARY, DATA_2 = 5, 7, 8  # kinds of pages: fields of PageHeader
PAGES: Final = frozenset({DATA, DICTIONARY, DATA_2})


def check(path: Path) -> None:
    """Raise ValueError if the footer or the head of a page states what a file of this length cannot hold."""
    with path.open("rb") as file:
        begin = file.seek(0, os.SEEK_END) - TAIL_BYTES
        file.seek(max(0, begin))
        tail = file.read()
        begin -= int.from_bytes(tail[:4], "little")  # of the footer
        if tail[4:] != b"PAR1" or begin < 0:
            raise ValueError("its end is not that of a Parquet file")
        file.seek(begin)
        try:
            for group in _Compact(file.read()).struct()[4]:
                for column in group[1]:
                    _check_pages(file, column[3], most=group[3], end=begin)
        except (IndexError, KeyError, TypeError) as fault:
            raise ValueError("its footer or the head of a page is damaged") from fault


def _check_pages(file: BinaryIO, column: dict[int, Any], *, most: int, end: int) -> None:
    """Compare the pages of a column, `ColumnMetaData` in parquet.thrift, with its own numbers."""
    at = min(column[9], column.get(11, column[9]))  # of the first data page, of the dictionary
    column_end = at + column[7]
    if not (0 <= at <= column_end <= end and column[5] == most):
        raise ValueError("a column has other rows than its group, or lies outside the file")
    left = most
    while at < column_end:
        file.seek(at)
        reader = _Compact(file.read(min(MOST_HEAD_BYTES, column_end - at)))
        page = reader.struct()  # PageHeader
        kind = next(iter(PAGES & page.keys()), DATA)
        head = page[kind]
        counts = [head[n] for n in ((1, 2, 3) if kind == DATA_2 else (1,))]  # values, without value, rows
        sizes = [page[2], page[3], *(head[n] for n in (5, 6) if kind == DATA_2)]  # then those of the levels
        if min(sizes) < 0 or not 0 <= min(counts) <= max(counts) <= most:
            raise ValueError(f"a page of {head[1]} values, of a column of {most}")
        left -= head[1] if kind != DICTIONARY else 0
        at += reader.at + page[3]
    if left or at != column_end:
        raise ValueError("the pages of a column are not those that it states")


@dataclass(slots=True)
class _Compact:
    """A reader of Thrift's compact protocol; it raises IndexError at the end of the bytes."""

    content: bytes
    at: int = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return numbers, structs and lists of a struct by the IDs of their fields; others are None."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = None if head & 15 in (TRUE, FALSE) else self._value(head & 15, depth + 1)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > MOST_DEPTH:
            raise ValueError("its footer is nested too deep")
        if kind in INTEGERS:
            return self._integer()
        if kind == STRUCT:
            return self.struct(depth)
        if kind == LIST:
            head = self._byte()
            size = self._varint() if head >> 4 == 15 else head >> 4
            return [self._value(head & 15, depth + 1) for _ in range(size)]
        if kind not in (TRUE, FALSE, BYTE, FLOAT, BINARY):
            raise ValueError(f"its footer holds a value of kind {kind}")
        length = self._varint() if kind == BINARY else 8 if kind == FLOAT else 1
        self.at += length
        return None

    def _byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 64, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("its footer holds a number of more than 64 bits")

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
