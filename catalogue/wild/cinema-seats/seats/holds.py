"""Seats that are held for some minutes, until they are paid."""
import functools
import os
import threading
import time
import uuid

from . import remote

HOLD_SECONDS = 20.0


def synchronized(method):
    @functools.wraps(method)
    def locked(self, *args, **kwargs):
        with self._lock:
            return method(self, *args, **kwargs)

    return locked


class Holds:
    """All holds of this theatre, oldest first."""

    def __init__(self):
        self._lock = threading.RLock()
        self._holds = {}

    @synchronized
    def hold(self, screening, party, account):
        self._expire()
        block = remote.claim(screening, party)
        return self._add(screening, block, account)

    def __len__(self):
        return len(self._holds)

    def _add(self, screening, block, account):
        key = uuid.uuid4().hex
        self._holds[key] = (time.monotonic() + HOLD_SECONDS, screening, account, block)
        return {"hold": key, "screening": screening, "seconds": HOLD_SECONDS, **block}

    def _expire(self):
        now = time.monotonic()
        while self._holds:
            oldest = next(iter(self._holds))
            if self._holds[oldest][0] > now:
                break
            del self._holds[oldest]


class ShortHolds(Holds):
    def hold(self, screening, party, account):
        block = remote.claim(screening, party)
        with self._lock:
            self._expire()
            return self._add(screening, block, account)


def make_holds():
    return Holds() if os.environ.get("VARIANT", "flawed") == "flawed" else ShortHolds()
