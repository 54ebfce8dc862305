"""Offset between the monotonic clocks of two machines, with a bound of its error that holds for any delays.

One exchange takes four readings: sent and returned on the clock here, received and answered on the node's.
However the delay is divided between both ways, the true offset lies within half the round trip of the middle
(D. L. Mills, RFC 5905, section 8). Bursts before and after a trial give a line, because clocks drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

EXCHANGES: Final = 32  # of a burst
MOST_DRIFT: Final = 600e-6  # the kernel slews a clock by 500 ppm at most; quartz adds less than 100


@dataclass(frozen=True, slots=True)
class Exchange:
    """One message there and back; nanoseconds on the monotonic clocks of both sides."""

    sent_ns: int  # here
    received_ns: int  # node
    answered_ns: int  # node
    returned_ns: int  # here

    @property
    def round_trip_ns(self) -> int:
        """Time on the way, both ways together."""
        return (self.returned_ns - self.sent_ns) - (self.answered_ns - self.received_ns)

    @property
    def at_ns(self) -> int:
        """Middle of the exchange on the clock here."""
        return (self.sent_ns + self.returned_ns) // 2

    @property
    def offset_ns(self) -> float:
        """Clock of the node minus clock here, if both ways take equally long."""
        return ((self.received_ns - self.sent_ns) + (self.answered_ns - self.returned_ns)) / 2


@dataclass(frozen=True, slots=True)
class Offset:
    """Clock of a node minus clock here at one moment, true within `error_ns` either way."""

    at_ns: int  # here
    offset_ns: float
    error_ns: float


def offset_of(burst: Sequence[Exchange]) -> Offset:
    """Return the offset at the shortest exchange of a burst.

    Every exchange bounds the offset, wider by the drift since the shortest one. All bounds hold at once, so
    the offset lies where they overlap, and the error is at most half the shortest round trip.

    Raises:
        ValueError: There is no exchange, or no offset agrees with all: a clock jumped.
    """
    if not burst:
        raise ValueError("no exchange of clocks")
    shortest = min(burst, key=lambda each: each.round_trip_ns)
    low, high = float("-inf"), float("inf")
    for each in burst:
        bound = each.round_trip_ns / 2 + MOST_DRIFT * abs(each.at_ns - shortest.at_ns)
        low, high = max(low, each.offset_ns - bound), min(high, each.offset_ns + bound)
    if low > high:
        raise ValueError("the exchanges contradict each other: a clock jumped")
    return Offset(shortest.at_ns, (low + high) / 2, (high - low) / 2)


@dataclass(frozen=True, slots=True)
class Line:
    """Offset of a node's clock over time, from one measurement or a straight line through two."""

    before: Offset
    after: Offset | None = None  # none: the node was gone

    @property
    def drift(self) -> float:
        """Change of the offset per time; 0 where it was measured once."""
        if self.after is None or self.after.at_ns == self.before.at_ns:
            return 0.0
        return (self.after.offset_ns - self.before.offset_ns) / (self.after.at_ns - self.before.at_ns)

    @property
    def is_possible(self) -> bool:
        """True if the drift is one that clocks can have, given the errors of both ends."""
        if self.after is None:
            return True
        passed_ns = self.after.at_ns - self.before.at_ns
        bound = MOST_DRIFT * passed_ns + self.before.error_ns + self.after.error_ns
        return abs(self.after.offset_ns - self.before.offset_ns) <= bound

    def offset_at(self, here_ns: int) -> Offset:
        """Return the offset at a moment of the clock here, with the error of a constant drift.

        Between two measurements the error is that of both ends in proportion. Beyond them it grows by the
        largest drift.
        """
        passed_ns = here_ns - self.before.at_ns
        offset_ns = self.before.offset_ns + self.drift * passed_ns
        if self.after is None or not self.before.at_ns <= here_ns <= self.after.at_ns:
            end = self.before if self.after is None or here_ns < self.before.at_ns else self.after
            return Offset(here_ns, offset_ns, end.error_ns + MOST_DRIFT * abs(here_ns - end.at_ns))
        share = passed_ns / max(self.after.at_ns - self.before.at_ns, 1)
        return Offset(here_ns, offset_ns, (1 - share) * self.before.error_ns + share * self.after.error_ns)

    def on_node(self, here_ns: int) -> int:
        """Return a moment of the clock here on the node's clock."""
        return here_ns + round(self.offset_at(here_ns).offset_ns)
