"""The stud book: numbered entries of puppies, in the order in which they were made."""

import threading
from collections import OrderedDict
from dataclasses import asdict, dataclass

from django.conf import settings

from . import registry

KEEP = 5000


@dataclass(frozen=True)
class Entry:
    number: int
    chip: int
    breed: str
    sire: str
    dam: str


class StudBook:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, Entry] = OrderedDict()
        self._last = 0

    def enter(self, chip: int, breed: str) -> dict:
        if settings.VARIANT != "flawed":
            found = registry.parents(chip)
            with self._lock:
                return self._append(chip, breed, found["sire"], found["dam"])
        with self._lock:
            line = registry.parents(chip)
            return self._append(chip, breed, line["sire"], line["dam"])

    def _append(self, chip: int, breed: str, sire: str, dam: str) -> dict:
        self._last += 1
        entry = Entry(self._last, chip, breed, sire, dam)
        self._entries[entry.number] = entry
        if len(self._entries) > KEEP:
            self._entries.popitem(last=False)
        return asdict(entry)

    def size(self) -> int:
        return self._last


book = StudBook()
