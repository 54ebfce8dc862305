"""The end of a file that grows: whole lines as they come."""

from __future__ import annotations

import os
from collections.abc import Iterator

MOST_BYTES_A_TICK = 16 << 20  # of each file; the rest comes with the next tick, at the end all of it
_LONGEST_LINE = 64 << 10


class Tail:
    """One file, read from its beginning; it need not be there yet."""

    def __init__(self, path: str) -> None:
        self.faulty = 0  # lines that could not be read; the reader adds its own
        self._path = path
        self._descriptor = -1
        self._begun = b""  # a line whose end is not written yet

    def lines(self, *, last: bool) -> Iterator[bytes]:
        """Whole lines that came since the last call; all of them when it is the last."""
        most = (1 << 62) if last else MOST_BYTES_A_TICK
        if self._descriptor < 0:
            try:
                self._descriptor = os.open(self._path, os.O_RDONLY)
            except FileNotFoundError:
                return  # nothing was written yet
        while most > 0 and (piece := os.read(self._descriptor, 1 << 20)):
            most -= len(piece)
            *whole, self._begun = (self._begun + piece).split(b"\n")
            if len(self._begun) > _LONGEST_LINE:
                self._begun = b""
                self.faulty += 1
            yield from whole

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
