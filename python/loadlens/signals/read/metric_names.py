"""Meaning of a gauge from its name: held, waiting, present or allowed places of a lock, pool or threads.

Libraries agree on these words: one list reads Micrometer, HikariCP, Tomcat, Jetty, Puma, go-sql,
OpenTelemetry, generic-pool and deadpool. Two short tables hold the exceptions. Only names are read here;
rules check whether a gauge behaves as its name says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final, Literal

Role = Literal["held", "waiting", "bound", "present", "free"]
Kind = Literal["lock", "pool", "threads", "requests", "unknown"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """Meaning of a name."""

    role: Role
    kind: Kind | None  # None: no word says what is held
    stem: tuple[str, ...]  # remaining words: the name of the resource
    is_growth: bool = False  # a counter of seconds: its growth per second is the mean number waiting (Little)


_KINDS: Final[Mapping[Kind, frozenset[str]]] = {  # the first with a word of the name wins
    "lock": frozenset({"lock", "locks", "mutex", "mutexes", "rwlock", "latch"}),
    "threads": frozenset({"thread", "threads", "threadpool", "worker", "workers", "processes"}),
    "pool": frozenset({"pool", "pools", "connection", "connections", "conn", "conns"}),
    "requests": frozenset({"request", "requests", "inflight"}),
    "unknown": frozenset({"task", "tasks", "job", "jobs", "permit", "permits", "semaphore", "slot", "slots"}),
}
_HELD: Final = frozenset(
    {"active", "busy", "used", "held", "holder", "holders", "borrowed", "acquired", "leased", "running"}
    | {"inuse", "inflight", "executing", "occupied", "checkedout"}
)
_HELD_PAIRS: Final = (("in", "use"), ("in", "flight"), ("in", "progress"), ("checked", "out"))
_WAITING: Final = frozenset(
    {"pending", "waiting", "waiters", "waiter", "queued", "queue", "backlog", "blocked", "awaiting"}
)
_BOUND: Final = frozenset({"max", "maximum", "limit", "bound", "capacity"})
_FREE: Final = frozenset({"idle", "available", "free"})
_PRESENT: Final = frozenset({"size", "current", "open", "live", "total"})
_FILLERS: Final = frozenset(
    {"count", "config", "configured", "usage", "num", "number", "length", "depth", "in"}
)
# Words for anything but places: sizes, times, rates, past events.
_OTHER: Final = frozenset(
    {"bytes", "seconds", "second", "milliseconds", "ms", "ns", "time", "duration", "latency", "age", "ratio"}
    | {"percent", "utilization", "utilisation", "rate", "bucket", "sum", "created", "info", "memory", "heap"}
    | {"buffer", "buffers", "cpu", "fds", "files", "peak", "min", "minimum", "core", "remaining", "timeout"}
    | {"daemon", "sessions", "errors", "failed", "lifetime"}
)
# Gauges of the process, or of clients' idle connections, whose words mean places elsewhere.
_NOT_PLACES: Final = (
    *("jvm_", "process_", "go_threads", "go_goroutines", "go_gc", "go_sched", "nodejs_", "python_"),
    *("nginx_connections_", "promhttp_", "logback_", "kestrel_", "scrape_"),
)
_HITS: Final = frozenset({"hit", "hits"})
_MISSES: Final = frozenset({"miss", "misses", "missed"})
_OF_TIME: Final = {"seconds": 1.0, "second": 1.0, "milliseconds": 1e-3, "millis": 1e-3, "ms": 1e-3}
_SUFFIXES: Final = ("_total", "_bucket", "_sum", "_created")
_STATES: Final = frozenset({"state", "status"})  # labels whose value is part of the name
_KNOWN: Final[Mapping[str, Meaning]] = {
    "http_server_requests_active_seconds_active_count": Meaning("held", "requests", ("http", "server")),
    "http_server_requests_active_seconds_count": Meaning("held", "requests", ("http", "server")),
    "jetty_threads_jobs": Meaning("waiting", "threads", ("jetty",)),
    "puma_backlog": Meaning("waiting", "threads", ("puma",)),
    "go_sql_wait_duration_seconds_total": Meaning("waiting", "pool", ("go", "sql"), is_growth=True),
    "go_sql_stats_connections_blocked_seconds_total": Meaning(
        "waiting", "pool", ("go", "sql", "stats"), is_growth=True
    ),
}


def meaning_of(metric: str, labels: Mapping[str, str]) -> Meaning | None:
    """Return what a series counts; None if its name says nothing about places.

    Args:
        metric: As it is exported.
        labels: Its labels; the value of one that is called a state counts as a part of the name.
    """
    return _meaning(metric, " ".join(labels[name] for name in sorted(_STATES & labels.keys())))


def other_labels(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the labels in which pools differ."""
    return tuple(sorted((name, value) for name, value in labels.items() if name not in _STATES))


def is_accumulated(metric: str) -> bool:
    """Return true for the name of a counter, a part of a histogram, a size or a time: of no places."""
    return metric.endswith((*_SUFFIXES, "_count")) or bool(_OTHER & set(words_of(metric)))


def look_up_of(name: str) -> Literal["hit", "miss"] | None:
    """Return what a counter, or a value of its label, says of look-ups in a cache; none: nothing."""
    words = {*words_of(name)}
    if words & _HITS and not words & _MISSES:
        return "hit"
    return "miss" if words & _MISSES and not words & _HITS else None


def paired(metric: str) -> str | None:
    """Return the name of the counter of misses that goes with one of hits; none: it counts no hits."""
    misses = {"hit": "miss", "hits": "misses"}
    changed = re.sub(r"(?<![A-Za-z])(hits?)(?![A-Za-z])", lambda hit: misses[hit[0]], metric)
    return changed if changed != metric else None


def counts_events(metric: str) -> bool:
    """Return true unless a word of a counter's name is for a size, a time or a share."""
    return not {*words_of(metric)} & (_OF_TIME.keys() | {"bytes", "size", "ratio", "time", "duration"})


def seconds_per_unit(metric: str) -> float | None:
    """Return the seconds in the unit of a metric of times, by a word of its name; none for others."""
    words = set(words_of(metric))
    return next((factor for word, factor in _OF_TIME.items() if word in words), None)


@cache
def _meaning(metric: str, state: str) -> Meaning | None:
    if metric in _KNOWN:
        return _KNOWN[metric]
    if metric.startswith(_NOT_PLACES) or metric.endswith(_SUFFIXES):
        return None
    words = words_of(f"{metric} {state}")
    if _OTHER & set(words):
        return None
    role = _role(words)
    if role is None:
        return None
    kind = next((kind for kind, nouns in _KINDS.items() if nouns & set(words)), None)
    return Meaning(role, kind, _stem(words))


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a metric's name, in lower case."""
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return tuple(word for word in re.split(r"[^a-z0-9]+", parted.lower()) if word)


def _role(words: tuple[str, ...]) -> Role | None:
    """Return the role; waiting comes first, as a queue has a length, a bound and a size as well."""
    present, pairs = set(words), set(pairwise(words))
    if present & _WAITING:
        return None if present & (_BOUND | _FREE) else "waiting"
    if present & _BOUND:
        return "bound"
    if present & _HELD or pairs & set(_HELD_PAIRS):
        return "held"
    if present & _FREE:
        return "free"
    if any(present & nouns for nouns in _KINDS.values()):
        return "present"
    return None


def _stem(words: tuple[str, ...]) -> tuple[str, ...]:
    nouns = frozenset[str]().union(*_KINDS.values())
    pairs = {word for pair in _HELD_PAIRS for word in pair}
    spent = _HELD | _WAITING | _BOUND | _FREE | _PRESENT | _FILLERS | nouns | pairs
    return tuple(word for word in words if word not in spent)
