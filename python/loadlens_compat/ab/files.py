"""The files of ab's -e (percentiles) and -g (a row for each request, for gnuplot)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from loadlens_compat.ab.figures import is_complete, microseconds, milliseconds
from loadlens_compat.logged import Request


def percentile_file(times_us: Sequence[int]) -> Iterator[str]:
    """The lines of -e: the time within which each whole percentage was served.

    Args:
        times_us: Rising, not empty. Of very few, ab reads behind the last one; here the last one stands.
    """
    yield "Percentage served,Time in ms"
    last = len(times_us) - 1
    for percent in range(101):
        rank = (
            last if percent == 100 else min(last, int(0.5 + len(times_us) * percent / 100)) if percent else 0
        )
        yield f"{percent},{times_us[rank] / 1000:.3f}"


def request_file(requests: Iterable[Request], began_unix_ns: int) -> Iterator[str]:
    """The lines of -g: each complete request, the quickest first."""
    yield "starttime\tseconds\tctime\tdtime\tttime\twait"
    listed = sorted(filter(is_complete, requests), key=lambda request: microseconds(request)[0])
    for request in listed:
        began_s = (began_unix_ns + request.sent_ns) // 1_000_000_000
        total, connect, wait = microseconds(request)
        when = time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(began_s))
        times = (milliseconds(us) for us in (connect, max(0, total - connect), total, wait))
        yield "\t".join([when, str(began_s), *map(str, times)])
