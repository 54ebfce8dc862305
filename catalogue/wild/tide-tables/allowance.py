"""How many calls a key may make."""

import threading
import time
from collections import deque


class Allowance:
    """Counts the calls of each key in a sliding window."""

    def __init__(self, limits: dict[str, int], window_s: float) -> None:
        self._limits = limits
        self._window_s = window_s
        self._calls: dict[str, deque[float]] = {key: deque() for key in limits}
        self._lock = threading.Lock()

    def knows(self, key: str) -> bool:
        return key in self._limits

    def take(self, key: str) -> float:
        """Return 0 if the call may go on, else the seconds until the next may."""
        now = time.monotonic()
        with self._lock:
            calls = self._calls[key]
            while calls and calls[0] <= now - self._window_s:
                calls.popleft()
            if len(calls) >= self._limits[key]:
                return calls[0] + self._window_s - now
            calls.append(now)
            return 0.0
