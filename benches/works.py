"""The pieces of work that are compared: what is sent, over how many connections, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Literal

Kind = Literal["get", "post", "flow"]


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of load. A POST has a body with two random numbers; a flow five steps and an extraction."""

    name: str
    connections: int
    kind: Kind = "get"
    is_fresh: bool = False  # a new connection for each request
    is_tls: bool = False
    rate: float | None = None  # requests per second whatever the server does; none: closed loop
    peer: str = "wrk"  # the generator whose cost is 1

    @property
    def is_latency_bound(self) -> bool:
        """With one connection neither side can be busy: each waits for the other."""
        return self.connections == 1


COUNTS = (1, 12, 100, 1000)
GET = [Work(f"get-{count}", count) for count in COUNTS]
POST = [Work(f"post-{count}", count, "post") for count in COUNTS]
TLS = [Work(f"tls-{count}", count, is_tls=True) for count in COUNTS]
FRESH = [Work(f"fresh-{count}", count, is_fresh=True) for count in COUNTS]
FLOW = [Work("flow-100", 100, "flow", peer="k6")]
WORKS = [*GET, *POST, *TLS, *FRESH, *FLOW]

# What the bars are about; the rest of the grid says how it goes on at other connection counts.
MAIN = ("get-*", "post-100", "tls-100", "fresh-100")
QUICK = ("get-12", "get-100", "post-100", "fresh-100")


def chosen(patterns: Iterable[str], works: Sequence[Work] = WORKS) -> list[Work]:
    """Works whose names match a pattern such as `get-*`, each once, in the order of the table.

    Raises:
        ValueError: A pattern that matches none.
    """
    patterns = list(patterns)
    idle = [pattern for pattern in patterns if not any(fnmatch(work.name, pattern) for work in works)]
    if idle:
        names = ", ".join(work.name for work in works)
        raise ValueError(f"no such case: {', '.join(idle)}; there are {names}")
    return [work for work in works if any(fnmatch(work.name, pattern) for pattern in patterns)]


def title(work: Work, *, is_counted: bool = True) -> str:
    """A piece of work in words, with the number of its connections or without."""
    count = "1 connection" if work.connections == 1 else f"{work.connections:,} connections"
    if work.is_fresh:
        what, count = "A new connection for each request", f"{work.connections:,} at once"
    elif work.kind == "flow":
        what = "Flow of five steps"
    elif work.kind == "post":
        what = "POST with two random numbers"
    else:
        what = "GET over TLS" if work.is_tls else "GET"
    return f"{what}, {count}" if is_counted else what
