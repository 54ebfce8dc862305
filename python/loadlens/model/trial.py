"""One trial as the record keeps it, and its rows of requests and connections (docs/reference/record.md)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final

CHUNK_HEAD: Final = struct.Struct("<4sIII")  # magic, rows, CRC-32 of the payload, zero
MAX_CHUNK_ROWS: Final = 1 << 24  # 1 GiB of samples: more is not a chunk that the engine writes
FIRST_OF_KIND: Final = 3  # failed requests of a kind of failure, status and step that pages of a load show
MOST_KINDS: Final = 200  # of kind, status and step
# numpy type -> code of `struct`, name in Polars
TYPES: Final = {
    "<u8": ("Q", "UInt64"),
    "<i8": ("q", "Int64"),
    "<u4": ("I", "UInt32"),
    "<u2": ("H", "UInt16"),
    "<u1": ("B", "UInt8"),
}


class TrialStatus(StrEnum):
    """Status of a trial."""

    COMPLETE = "complete"
    ABORTED = "aborted"  # ended early, by a person or by a crash
    EXPLORATORY = "exploratory"  # its load was changed while it ran
    INVALID = "invalid"  # ran, but a gate says that its figures must not be used


class Outcome(IntEnum):
    """Outcome of one request; the same codes as the engine's, which classes every failure."""

    OK = 0
    UNEXPECTED_STATUS = 1
    CHECK_FAILED = 2
    RESOLVE = 10
    REFUSED = 11
    CONNECT_TIMEOUT = 12
    CONNECT_FAILED = 13
    RESET = 14
    CLOSED_BEFORE_RESPONSE = 15
    CLOSED_ON_REUSE = 16
    TRUNCATED = 17
    MALFORMED = 18
    TIMEOUT = 19
    LIMIT = 20
    TLS = 21
    OWN_DESCRIPTORS = 22
    OWN_PORTS = 23
    OWN_MEMORY = 24
    TLS_TIMEOUT = 25
    UNCLASSED = 29  # a failure that another program, which made the load, names by words of its own
    IN_FLIGHT = 30
    WAITING = 31
    DROPPED = 32


@dataclass(frozen=True, slots=True)
class RowFormat:
    """One kind of fixed-width row: its magic and its fields in order, without gaps."""

    magic: bytes
    fields: tuple[tuple[str, str], ...]  # (name, numpy type), little-endian
    number: str  # the field whose hash decides which rows a thinned log keeps
    sizes: Mapping[int, int] = field(default_factory=dict)  # of earlier versions: the number of fields
    added: tuple[tuple[str, int], ...] = ()  # columns that earlier versions lack, with their value there

    @property
    def version(self) -> int:
        """The digit in the magic."""
        return int(self.magic[3:])

    def of_version(self, version: int) -> tuple[tuple[str, str], ...]:
        """Return the fields of a row of this version."""
        return self.fields[: self.sizes.get(version)]

    def packed(self, version: int) -> struct.Struct:
        """Return the layout of a row of this version."""
        return struct.Struct("<" + "".join(TYPES[kind][0] for _, kind in self.of_version(version)))


SAMPLE = RowFormat(
    magic=b"LLS1",
    number="seq",
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
    magic=b"LLC3",
    number="connection",
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
        ("thinned", "<u8"),
    ),
    sizes={1: 11, 2: 12},
    added=(("resumed", 0), ("tls_ns", -1), ("thinned", 0)),
)
