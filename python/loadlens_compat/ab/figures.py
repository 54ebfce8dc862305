"""ab's figures by ab's definitions (support/ab.c, 2.4), each from requests that the engine counted.

Times are whole microseconds, as ab's clock has them. Where ab counts one request twice (a reset, and the
length that it then lacks) or asks again in silence (a kept connection that the server had closed), a request
here has one class.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadlens.model.trial import Outcome
from loadlens_compat.logged import Request

RECEIVE = frozenset({Outcome.RESET, Outcome.CLOSED_ON_REUSE})
CUT_SHORT = frozenset({Outcome.CLOSED_BEFORE_RESPONSE, Outcome.TRUNCATED})
CONNECT = frozenset(
    {
        Outcome.RESOLVE,
        Outcome.REFUSED,
        Outcome.CONNECT_TIMEOUT,
        Outcome.CONNECT_FAILED,
        Outcome.TLS,
        Outcome.TLS_TIMEOUT,
        Outcome.OWN_DESCRIPTORS,
        Outcome.OWN_PORTS,
        Outcome.OWN_MEMORY,
    }
)


@dataclass(frozen=True, slots=True)
class Spread:
    """Distribution of one kind of time, in microseconds."""

    least: int
    mean: int
    deviation: float
    median: int
    most: int


@dataclass(frozen=True, slots=True)
class AbFigures:
    """All figures that ab reports of a load."""

    seconds: float
    document_length: int  # of the first answer's body, decoded
    complete: int  # answered, or ended by the server after the connection stood
    connect_failed: int
    receive_failed: int
    length_failed: int
    exceptions: int
    expected_but_other_length: int  # of length_failed: answered with an expected status
    not_2xx: int
    kept: int  # answers that left their connection open
    received: int  # bytes, heads included
    sent: int  # bytes, heads included
    body: int  # bytes of decoded bodies
    connect: Spread | None  # none: no request is complete
    processing: Spread | None
    waiting: Spread | None
    total: Spread | None
    connect_sum_us: int
    total_sum_us: int
    totals_us: Sequence[int]  # of the complete ones, rising

    @property
    def failed(self) -> int:
        """Requests that failed in ab's sense: non-2xx answers are none of them."""
        return self.connect_failed + self.receive_failed + self.length_failed + self.exceptions


def is_complete(request: Request) -> bool:
    """True if ab would count the request: answered, or ended by the server after connecting."""
    return request.is_answered or request.outcome in RECEIVE or request.outcome in CUT_SHORT


def microseconds(request: Request) -> tuple[int, int, int]:
    """(total, connect, waiting) of a request."""
    return request.time_ns // 1000, request.connect_ns // 1000, request.wait_ns // 1000


def figures_of(
    requests: Iterable[Request], result: Mapping[str, Any], *, closed_by_server: int, any_length: bool
) -> AbFigures:
    """Count and measure as ab does.

    Args:
        requests: Those that ended, in the order of their ends.
        result: The engine's.
        closed_by_server: Connections that the server closed after an answer.
        any_length: Whether bodies may differ in length (-l).
    """
    stream = result["streams"][0]
    length: int | None = None
    counts = dict.fromkeys(("complete", "answered", "connect", "receive", "length", "except", "odd"), 0)
    totals, connects, processings, waits = [], [], [], []
    for request in requests:
        if request.is_answered:
            counts["answered"] += 1
            length = request.body_bytes if length is None else length
            if not any_length and request.body_bytes != length:
                counts["length"] += 1
                counts["odd"] += request.outcome is Outcome.OK
        else:
            counts[_class_of(request.outcome)] += 1
        if is_complete(request):
            counts["complete"] += 1
            total, connect, wait = microseconds(request)
            totals.append(total)
            connects.append(connect)
            processings.append(max(0, total - connect))
            waits.append(wait)
    connect_sum, total_sum = sum(connects), sum(totals)
    totals.sort()
    return AbFigures(
        seconds=result["measured_s"],
        document_length=length or 0,
        complete=counts["complete"],
        connect_failed=counts["connect"],
        receive_failed=counts["receive"],
        length_failed=counts["length"],
        exceptions=counts["except"],
        expected_but_other_length=counts["odd"],
        not_2xx=sum(n for code, n in stream["status"].items() if not 200 <= int(code) < 300),
        kept=max(0, counts["answered"] - closed_by_server),
        received=stream["bytes"]["in_wire"],
        sent=stream["bytes"]["out"],
        body=stream["bytes"]["in_body"],
        connect=spread(connects),
        processing=spread(processings),
        waiting=spread(waits),
        total=spread(totals),
        connect_sum_us=connect_sum,
        total_sum_us=total_sum,
        totals_us=totals,
    )


def _class_of(outcome: Outcome) -> str:
    if outcome in CONNECT:
        return "connect"
    if outcome in RECEIVE:
        return "receive"
    return "length" if outcome in CUT_SHORT else "except"


def spread(times: list[int]) -> Spread | None:
    """Least, mean, deviation, median and most as ab computes them; sorts the list. None of an empty one.

    The mean is cut to whole microseconds before deviations are taken from it. The median of an odd number is
    the mean of the middle value and the one above it, that of an even number the upper middle value.
    """
    if not times:
        return None
    times.sort()
    count = len(times)
    mean = sum(times) // count
    squares = sum((time - mean) ** 2 for time in times)
    middle = times[count // 2]
    if count > 1 and count % 2:
        middle = (middle + times[count // 2 + 1]) // 2
    deviation = math.sqrt(squares / (count - 1)) if count > 1 else 0.0
    return Spread(times[0], mean, deviation, middle, times[-1])


def milliseconds(us: int) -> int:
    """Microseconds as ab rounds them."""
    return (us + 500) // 1000
