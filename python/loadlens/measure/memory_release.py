"""Memory that was freed and is still the process's.

Arrays of millions of requests come and go while small ones stay, and glibc keeps the holes between: of a
record of 66 trials 150 MiB of 530. It gives them back when asked, in about a millisecond.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


def give_back() -> None:
    """Return freed memory to the system; does nothing with a C library other than glibc."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim
