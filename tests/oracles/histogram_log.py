"""A second reading of interval histograms: an HDR histogram log, version 1.3, without any library of its own.

The format is HdrHistogram's V2 encoding (Gil Tene, HdrHistogram `AbstractHistogram.java`): base64 of a
cookie, a length and a zlib stream; in it a head of 40 bytes and the counts as ZigZag LEB128, where a negative
number stands for a run of so many zeros. The product reads it by the HdrHistogram crate.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

COMPRESSED_COOKIE = 0x1C849304
ENCODED_COOKIE = 0x1C849303
COOKIE_MASK = 0xFFFFFF0F  # the word size in the cookie is a leftover of V0
HEAD = struct.Struct(">iiiiqqd")  # cookie, bytes of counts, index offset, digits, lowest, highest, ratio
MAX_ENCODED_BYTES = 1 << 24  # a histogram of 3 digits over 64 bits needs at most 0.6 MB


def read(path: Path) -> Iterator[tuple[float, float, str, list[int], list[int]]]:
    """Yield start, length, tag, values and counts of each whole line."""
    for line in path.read_text().rpartition("\n")[0].splitlines():
        if line and not line.startswith(("#", '"')):
            tag, start, length, _, encoded = line.removeprefix("Tag=").split(",")
            values, counts = decode(base64.b64decode(encoded, validate=True))
            yield float(start), float(length), tag, values.tolist(), counts.tolist()


def decode(
    compressed: bytes,
) -> tuple[np.ndarray[Any, np.dtype[np.uint64]], np.ndarray[Any, np.dtype[np.uint64]]]:
    """Bucket upper ends and counts of one V2 deflate histogram; ValueError when it is not one."""
    cookie, length = struct.unpack_from(">ii", compressed)
    if cookie & COOKIE_MASK != COMPRESSED_COOKIE:
        raise ValueError(f"cookie of a V2 deflate histogram is expected, got {cookie:#x}")
    inflate = zlib.decompressobj()
    encoded = inflate.decompress(compressed[8 : 8 + length], MAX_ENCODED_BYTES)
    if inflate.unconsumed_tail:
        raise ValueError(f"histogram is over {MAX_ENCODED_BYTES} bytes")
    cookie, size, offset, digits, lowest, _highest, _ratio = HEAD.unpack_from(encoded)
    if cookie & COOKIE_MASK != ENCODED_COOKIE or offset != 0 or not 0 <= digits <= 5 or lowest < 1:
        raise ValueError("head of the histogram is not one of version 2")
    body = np.frombuffer(encoded, dtype=np.uint8, count=size, offset=HEAD.size)
    numbers = _zigzag_leb128(body)
    steps = np.where(numbers < 0, -numbers, 1)
    index = np.cumsum(steps) - steps
    held = numbers > 0
    return _upper_ends(index[held], digits, lowest), numbers[held].astype(np.uint64)


def _zigzag_leb128(body: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Signed numbers from ZigZag LEB128 bytes; a ninth byte, if any, carries eight bits."""
    if body.size == 0:
        return np.zeros(0, dtype=np.int64)
    ends = np.flatnonzero(body < 0x80)
    starts = np.concatenate(([0], ends[:-1] + 1))
    if ends.size == 0 or ends[-1] != body.size - 1:
        raise ValueError("counts end within a number")
    lengths = ends - starts + 1
    if lengths.max() > 8:
        # Counts of 2^55 and more: no trial holds so many requests.
        raise ValueError("a count is over 2^55")
    place = np.arange(body.size) - np.repeat(starts, lengths)
    shifted = (body & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
    unsigned: np.ndarray[Any, Any] = np.add.reduceat(shifted, starts).astype(np.int64)
    return (unsigned >> 1) ^ -(unsigned & 1)


def _upper_ends(index: np.ndarray[Any, Any], digits: int, lowest: int) -> np.ndarray[Any, Any]:
    """Highest value that falls into the bucket of each index of the counts array."""
    unit = lowest.bit_length() - 1
    half_magnitude = (2 * 10**digits - 1).bit_length() - 1  # log2 of half the linear sub-buckets
    half = 1 << half_magnitude
    bucket = (index >> half_magnitude) - 1
    sub = (index & (half - 1)) + half
    first = bucket < 0
    sub = np.where(first, sub - half, sub).astype(np.uint64)
    shift = (np.where(first, 0, bucket) + unit).astype(np.uint64)
    one_step = np.uint64(1)
    upper: np.ndarray[Any, Any] = (sub << shift) + ((one_step << shift) - one_step)
    return upper
