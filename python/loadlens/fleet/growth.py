"""New bytes of the live files of an engine on a node, sent with answers to beats for pages that follow it.

The controller's copy of a file is at any time the beginning of the node's: `Member.fetch` copies the rest.
Of the requests only some failed ones are sent, into a file that the node does not have.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from loadlens.growing_file import GrowingFile
from loadlens.model.trial import CHUNK_HEAD, FIRST_OF_KIND, MOST_KINDS, SAMPLE

COUNTERS: Final = "counters.jsonl"
FOLLOWED: Final = (COUNTERS, "intervals.hlog")
MOST_BYTES: Final = 32 << 10  # with one beat: 0.1 s at 2.6 Mbit/s
MOST_READ: Final = 1 << 20  # of the counters at a time
SAMPLES: Final = "samples.bin"
FAILURES: Final = "failures.bin"  # chunks like those of the samples
MOST_SEARCHED: Final = 4 << 20  # bytes of the samples with one beat
MOST_FAILED: Final = 500  # rows of a chunk whose kind is looked at
_ROW: Final = SAMPLE.packed(SAMPLE.version).size
_FAILED: Final = re.compile(rb"[^\0]")  # a code of outcome


def _places(*names: str) -> slice:
    """Return where fields that follow each other are in a row of samples."""
    ends, at = {}, 0
    for name, kind in SAMPLE.fields:
        ends[name] = (at, at := at + int(kind[-1]))
    return slice(ends[names[0]][0], ends[names[-1]][1])


_OUTCOME: Final = _places("outcome")
_KIND: Final = _places("step", "status", "outcome", "stream")


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a file."""

    name: str
    at: int
    content: bytes

    def to_json(self) -> dict[str, Any]:
        """Return it as a part of a message."""
        return {"name": self.name, "at": self.at, "content": self.content.decode("latin-1")}


class Growth:
    """The new bytes of both files, piece by piece.

    An engine writes the histograms of an interval before its counters, and a reader of the copies relies on
    that. So the counters are read first, and sent after all histograms that were written by then.
    """

    def __init__(self, folder: Path) -> None:
        self._files = {name: GrowingFile(folder / name) for name in FOLLOWED}
        self._failures = Failures(folder / SAMPLES)
        self._waiting: deque[Piece] = deque()

    def next(self, *, has_failures: bool = False) -> list[Piece]:
        """Return what comes next, at most `MOST_BYTES`.

        Args:
            has_failures: Requests have failed: without any, the samples are not searched.
        """
        if not self._waiting:
            read = [self._failures.next(is_wanted=has_failures), *(self._read(name) for name in FOLLOWED)]
            self._waiting.extend(piece for piece in reversed(read) if piece.content)
        pieces, left = [], MOST_BYTES
        while self._waiting and left > 0:
            whole = self._waiting.popleft()
            piece = Piece(whole.name, whole.at, whole.content[:left])
            pieces.append(piece)
            left -= len(piece.content)
            if rest := whole.content[len(piece.content) :]:
                self._waiting.appendleft(Piece(whole.name, whole.at + len(piece.content), rest))
        return pieces

    def _read(self, name: str) -> Piece:
        file = self._files[name]
        piece = Piece(name, file.offset, file.read(MOST_READ if name == COUNTERS else -1))
        file.offset += len(piece.content)
        return piece


class Failures:
    """The first failed requests of each kind of failure, status and step, as chunks of a file."""

    def __init__(self, samples: Path) -> None:
        self._samples = GrowingFile(samples)
        self._sent_bytes = 0
        self._kinds: Counter[bytes] = Counter()

    def next(self, *, is_wanted: bool) -> Piece:
        """Return a chunk of those that are new; empty: there are none. False passes over all requests."""
        chunks = self._samples.chunks(SAMPLE, is_wanted=is_wanted, most=MOST_SEARCHED)
        rows = b"".join(row for payload in chunks for row in self._first(payload))
        head = CHUNK_HEAD.pack(SAMPLE.magic, len(rows) // _ROW, zlib.crc32(rows), 0)
        piece = Piece(FAILURES, self._sent_bytes, head + rows if rows else b"")
        self._sent_bytes += len(piece.content)
        return piece

    def _first(self, payload: bytes) -> Iterator[bytes]:
        for match in islice(_FAILED.finditer(payload[_OUTCOME.start :: _ROW]), MOST_FAILED):
            at = match.start() * _ROW
            row = payload[at : at + _ROW]
            kind = row[_KIND]
            is_taken = kind in self._kinds or len(self._kinds) < MOST_KINDS
            if is_taken and self._kinds[kind] < FIRST_OF_KIND:
                self._kinds[kind] += 1
                yield row


def add(folder: Path, grown: Any) -> None:
    """Append a piece of a message to the copy of its file; leave it out if it does not continue the copy."""
    name = str(grown["name"])
    if name not in (*FOLLOWED, FAILURES):
        return
    with open(folder / name, "ab") as file:
        if file.tell() == grown["at"]:
            file.write(grown["content"].encode("latin-1"))
