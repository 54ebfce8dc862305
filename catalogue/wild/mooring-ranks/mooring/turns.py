"""Turns at the plan, by rank of the vessel and how long it has waited."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

RANK_WORTH_S = 0.02  # a rank counts as much as this wait
LENGTH_WORTH_S = 0.00005  # and so does a metre of the vessel
LOWEST_RANK = 3
LONGEST_M = 400.0


@dataclass(eq=False)
class Ticket:
    rank: int
    length: float
    number: int
    since: float = field(default_factory=time.monotonic)

    @property
    def waited_s(self) -> float:
        return time.monotonic() - self.since

    @property
    def claim_s(self) -> float:
        standing = max(0, LOWEST_RANK - self.rank) * RANK_WORTH_S
        size = min(self.length, LONGEST_M) * LENGTH_WORTH_S
        return standing + size + self.waited_s

    def order(self) -> tuple[float, int]:
        return (-self.claim_s, self.number)


class Turns:
    """One at a time; of those that wait, the one with the best claim."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[Ticket] = []
        self._taken = False
        self._numbers = itertools.count(1)

    def _next(self) -> Ticket:
        return sorted(self._waiting, key=Ticket.order)[0]

    @contextmanager
    def turn(self, rank: int, length: float) -> Iterator[None]:
        with self._changed:
            ticket = Ticket(rank, length, next(self._numbers))
            self._waiting.append(ticket)
            while self._next() is not ticket or self._taken:
                self._changed.wait()
            self._waiting.remove(ticket)
            self._taken = True
        try:
            yield
        finally:
            with self._changed:
                self._taken = False
                self._changed.notify_all()
