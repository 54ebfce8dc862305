"""Docks of the yard and the pallets on them."""

import os
import sqlite3
import threading
from collections import deque

JOURNAL = os.path.join(os.environ["TMPDIR"], "journal.db")
_local = threading.local()


def _journal() -> sqlite3.Connection:
    if not hasattr(_local, "journal"):
        _local.journal = sqlite3.connect(JOURNAL, isolation_level=None)
    return _local.journal


class Dock:
    """One dock, where pallets stand in a row."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.Lock()
        self.pallets = deque(f"{name}-{n:03d}" for n in range(40))

    def free_slots(self) -> int:
        row = _journal().execute("SELECT slots FROM dock WHERE name = ?", (self.name,)).fetchone()
        return row[0] - len(self.pallets)


class Yard:
    """All docks, by name."""

    def __init__(self) -> None:
        self.docks = {name: Dock(name) for name in (f"D{n:02d}" for n in range(1, 33))}
        with sqlite3.connect(JOURNAL) as journal:
            journal.execute("PRAGMA journal_mode = WAL")
            journal.execute("CREATE TABLE dock (name TEXT PRIMARY KEY, slots INTEGER)")
            journal.executemany("INSERT INTO dock VALUES (?, 48)", [(name,) for name in self.docks])
        journal.close()

    def swap(self, one: str, other: str) -> dict:
        first, second = self.docks[one], self.docks[other]
        with first.lock, second.lock:
            return self._exchange(first, second)

    def swap_in_order(self, one: str, other: str) -> dict:
        first, second = self.docks[one], self.docks[other]
        low, high = sorted((first, second), key=lambda dock: dock.name)
        with low.lock, high.lock:
            return self._exchange(first, second)

    @staticmethod
    def _exchange(first: Dock, second: Dock) -> dict:
        free = [first.free_slots(), second.free_slots()]
        out, back = first.pallets.popleft(), second.pallets.popleft()
        first.pallets.append(back)
        second.pallets.append(out)
        return {"from": first.name, "to": second.name, "free": free, "swapped": 2}
