"""Threads that this process may still start.

Several limits may be in the way (`ulimit -u`, control groups, the system's own), so it is tried.
"""

from __future__ import annotations

import errno
import os
import threading
from typing import Final

OF_TABLES: Final = 8  # that polars starts to read or write a table, besides those of each core
OF_A_CORE: Final = 4


def can_start(wanted: int) -> int:
    """Return how many threads can be started, up to `wanted`."""
    end, started = threading.Event(), []
    try:
        for _ in range(wanted):
            thread = threading.Thread(target=end.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError:
        pass
    end.set()
    for thread in started:
        thread.join()
    return len(started)


def demand() -> None:
    """Check that tables can be read and written now: polars panics without a thread, or waits for ever.

    Raises:
        BlockingIOError: A limit was met (`errors.limit_met`).
    """
    wanted = OF_TABLES + OF_A_CORE * len(os.sched_getaffinity(0))
    if can_start(wanted) < wanted:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
