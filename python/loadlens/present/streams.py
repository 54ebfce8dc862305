"""The standard streams: a measurement goes on when its output cannot be written, and says so at the end.

A stream that is closed is opened on nothing, so that no file of a record gets its number. The first fault of
a write is kept; everything after it is discarded.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_CLOSED: Final = OSError(errno.EBADF, os.strerror(errno.EBADF))


class Tolerant(io.RawIOBase):
    """A descriptor to write to; `fault` is why text was lost."""

    def __init__(self, descriptor: int, fault: OSError | None) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._closed_with = fault
        self.fault: OSError | None = None

    def write(self, content: ReadableBuffer, /) -> int:
        """Write a part and return its length; after a fault, take everything and write nothing."""
        self.fault = self.fault or self._closed_with
        while self.fault is None:
            try:
                return os.write(self._descriptor, content)
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError as fault:
                self.fault = fault
        return memoryview(content).nbytes

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return True for a terminal."""
        return os.isatty(self._descriptor)


class Streams:
    """Standard output and error of a program that must not end by them."""

    def __init__(self) -> None:
        closed = [number for number in range(3) if not _is_open(number)]
        for _ in closed:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if 0 in closed:
            sys.stdin = os.fdopen(0, closefd=False)
        self._out = Tolerant(1, _CLOSED if 1 in closed else None)
        sys.stdout = _text(self._out, sys.stdout)
        sys.stderr = _text(Tolerant(2, _CLOSED if 2 in closed else None), sys.stderr)

    def end(self, code: int, if_lost: int) -> int:
        """Write what is buffered and return the exit code, which says so if output was lost.

        A reader that left (`| head`) lost nothing that it wanted. A verb that failed keeps its own code.
        """
        sys.stdout.flush()
        fault = self._out.fault
        if fault is None or fault.errno == errno.EPIPE:
            return code
        sys.stderr.write(f"loadlens: the output could not be written: {(fault.strerror or '').lower()}\n")
        return code or if_lost


def is_lost(stream: TextIO) -> bool:
    """Return whether something that was written to a stream did not arrive; flush it first."""
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return isinstance(raw, Tolerant) and raw.fault is not None


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _text(raw: Tolerant, before: TextIO | None) -> TextIO:
    """Return a text stream with the encoding of the one before; what it lacks is written as an escape."""
    encoding = "utf-8" if before is None else before.encoding
    is_line = raw.isatty() or raw.fileno() == 2
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=is_line
    )
