"""New bytes of the live files of an engine on a node, sent with answers to beats for pages that follow it.

The controller's copy of a file is at any time the beginning of the node's: `Member.fetch` copies the rest.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

COUNTERS: Final = "counters.jsonl"
FOLLOWED: Final = (COUNTERS, "intervals.hlog")
MOST_BYTES: Final = 32 << 10  # with one beat: 0.1 s at 2.6 Mbit/s
MOST_READ: Final = 1 << 20  # of the counters at a time


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
        self._folder = folder
        self._offsets = dict.fromkeys(FOLLOWED, 0)
        self._waiting: deque[Piece] = deque()

    def next(self) -> list[Piece]:
        """Return what comes next, at most `MOST_BYTES`."""
        if not self._waiting:
            read = [self._read(name) for name in FOLLOWED]
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
        at = self._offsets[name]
        try:
            with open(self._folder / name, "rb") as file:
                file.seek(at)
                content = file.read(MOST_READ if name == COUNTERS else -1)
        except OSError:  # not begun, or the disk is at fault: the engine says so itself
            content = b""
        self._offsets[name] = at + len(content)
        return Piece(name, at, content)


def add(folder: Path, grown: Any) -> None:
    """Append a piece of a message to the copy of its file; leave it out if it does not continue the copy."""
    name = str(grown["name"])
    if name not in FOLLOWED:
        return
    with open(folder / name, "ab") as file:
        if file.tell() == grown["at"]:
            file.write(grown["content"].encode("latin-1"))
