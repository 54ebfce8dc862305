import asyncio
import time
from collections import deque


class Unavailable(Exception):
    """A service does not answer, or answers with an error."""


async def retrying(call, times, pause=0.0):
    """Return what the call returns, after up to so many times."""
    for left in reversed(range(times)):
        try:
            return await call()
        except Unavailable:
            if not left:
                raise
            if pause:
                await asyncio.sleep(pause)


class Breaker:
    """Opens for a while when half of the latest calls failed."""

    def __init__(self, window=20, open_seconds=30.0):
        self._failed = deque(maxlen=window)
        self._open_seconds = open_seconds
        self._open_until = 0.0

    async def call(self, call):
        if time.monotonic() < self._open_until:
            raise Unavailable("circuit is open")
        try:
            result = await call()
        except Unavailable:
            self._note(True)
            raise
        self._note(False)
        return result

    def _note(self, failed):
        self._failed.append(failed)
        if len(self._failed) == self._failed.maxlen and 2 * sum(self._failed) >= len(self._failed):
            self._open_until = time.monotonic() + self._open_seconds
            self._failed.clear()
