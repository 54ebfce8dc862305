"""Counts that a service tells, once they stand: an answer may reach its client before it is counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Told = TypeVar("Told")


def standing(read: Callable[[], Told], is_reached: Callable[[Told], bool] = lambda _: True) -> Told:
    """What is told, when it is reached and did not change for a tenth of a second; the last after 10 s."""
    until, last = time.monotonic() + 10, read()
    while time.monotonic() < until:
        time.sleep(0.1)
        now = read()
        if now == last and is_reached(now):
            break
        last = now
    return last
