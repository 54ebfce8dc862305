"""The end of a file that grows: whole lines as they come."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

MOST_BYTES_A_TICK = 16 << 20  # of each file; the rest comes with the next tick, at the end all of it
_LONGEST_LINE = 64 << 10
# nginx writes its log every 0.2 s, and a service out of its CPU quota stands still for up to 0.1 s
_QUIET_S = 0.4
LONGEST_WAIT_S = 3.0


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

    def size(self) -> int:
        """Return the size of the file in bytes; 0 while there is none."""
        try:
            return os.stat(self._path).st_size
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def wait_for_writers(tails: Sequence[Tail]) -> None:
    """Wait until no file has grown for 0.4 s, at most 3 s: an answer is sent before it is written down."""
    end = time.monotonic() + LONGEST_WAIT_S
    sizes = None
    while sizes != (sizes := [tail.size() for tail in tails]) and time.monotonic() < end:
        time.sleep(_QUIET_S)
