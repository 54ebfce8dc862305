"""Reading a file while another process appends to it: each look returns what was added since the last one.

Nothing is locked and nothing is changed. A torn last line or chunk is left for the next look.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadlens.model.trial import CHUNK_HEAD, MAX_CHUNK_ROWS, RowFormat

MOST_BYTES: Final = 8 << 20  # of one file in one look


@dataclass(slots=True)
class GrowingFile:
    """A file that is only appended to; one that cannot be read has nothing new."""

    path: Path
    offset: int = 0

    def lines(self) -> bytes:
        """Return the whole lines that are new, at most `MOST_BYTES` of them."""
        content = self.read(MOST_BYTES)
        whole = content[: content.rfind(b"\n") + 1]
        self.offset += len(whole)
        return whole

    def chunks(self, form: RowFormat, *, is_wanted: bool, most: int = MOST_BYTES) -> Iterator[bytes]:
        """Yield the rows of whole new chunks, of the newest version.

        Args:
            form: What rows they are.
            is_wanted: False skips the new chunks.
            most: Bytes after which the next look goes on.
        """
        row = form.packed(form.version).size
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                while most > 0 and self.offset + CHUNK_HEAD.size <= size:
                    file.seek(self.offset)
                    magic, rows, crc, _zero = CHUNK_HEAD.unpack(file.read(CHUNK_HEAD.size))
                    end = self.offset + CHUNK_HEAD.size + rows * row
                    if magic != form.magic or rows > MAX_CHUNK_ROWS or end > size:
                        return
                    if is_wanted:
                        payload = file.read(rows * row)
                        if zlib.crc32(payload) != crc:
                            return
                        most -= len(payload)
                        yield payload
                    self.offset = end
        except (OSError, struct.error):  # there is none, it is gone, or the disk is at fault
            return

    def read(self, most: int) -> bytes:
        """Return what is new, at most so many bytes, which stay new."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                return file.read(most)
        except OSError:
            return b""
