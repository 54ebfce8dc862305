"""Requests and times per backend of a balancer, counted from its log as it grows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from loadlens.model.plain import read
from loadlens.model.readings import BalancerMetrics
from loadlens.signals.collect.monitor import Monitor, Row, labels, reading
from loadlens.signals.collect.scene import Scene
from loadlens.signals.collect.tail import LONGEST_WAIT_S, Tail, wait_for_writers


@dataclass(frozen=True, slots=True)
class BalancerLog:
    """A balancer's log: one JSON object a request."""

    service: str
    file: str
    backends: Mapping[str, str]  # address -> replica


@dataclass(frozen=True, slots=True)
class Logs:
    """Settings of the balancer monitor."""

    monitor: ClassVar[str] = "balancer"
    logs: tuple[BalancerLog, ...]

    @property
    def waits_s(self) -> float:
        """For writers of the logs."""
        return LONGEST_WAIT_S


def wanted(scene: Scene) -> Logs | None:
    """Every log of a balancer."""
    logs = tuple(BalancerLog(*log) for log in scene.balancer_logs)
    return Logs(logs) if logs else None


@dataclass(frozen=True, slots=True)
class _Line:
    """One request, as the balancer wrote it down."""

    backend: str
    status: int
    seconds: float
    backend_s: str | float
    connect_s: str | float


@dataclass(slots=True)
class _Sums:
    """All requests so far that one backend answered with one status."""

    requests: int = 0
    seconds: float = 0.0
    backend_seconds: float = 0.0
    connect_seconds: float = 0.0


@dataclass(slots=True)
class _Log:
    """One log and what was read of it."""

    service: str
    backends: Mapping[str, str]
    tail: Tail
    sums: dict[tuple[str, str], _Sums] = field(default_factory=dict)


class BalancerMonitor(Monitor):
    """The monitor; its rows are cumulative."""

    name = "balancer"
    settings = Logs

    def __init__(self) -> None:
        self._logs: tuple[_Log, ...] = ()

    def open(self, spec: Logs) -> None:
        """Begin at the beginning of each log."""
        self._logs = tuple(_Log(log.service, log.backends, Tail(log.file)) for log in spec.logs)

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Counts and times of each backend, by status; the last ones are complete."""
        if last:
            wait_for_writers([log.tail for log in self._logs])
        for log in self._logs:
            for text in log.tail.lines(last=last):
                _add(log, text)
            yield from _rows(log)

    def close(self) -> None:
        """Close the logs."""
        for log in self._logs:
            log.tail.close()


def _add(log: _Log, text: bytes) -> None:
    if not text.strip():
        return
    try:
        line = read(_Line, json.loads(text))
        own, connect = _seconds(line.backend_s), _seconds(line.connect_s)
    except ValueError:
        log.tail.faulty += 1
        return
    key = (log.backends.get(line.backend, line.backend or "none"), str(line.status))
    sums = log.sums.setdefault(key, _Sums())
    sums.requests += 1
    sums.seconds += line.seconds
    sums.backend_seconds += own
    sums.connect_seconds += connect


def _seconds(text: str | float) -> float:
    """A time as nginx writes it: a dash where there was none, several after tries at several backends."""
    parts = [part.strip() for part in str(text).replace(":", ",").split(",")]
    return sum(float(part) for part in parts if part not in ("", "-"))


def _rows(log: _Log) -> Iterator[Row]:
    for (backend, status), sums in sorted(log.sums.items()):
        text = labels(service=log.service, backend=backend, status=status)
        yield reading(BalancerMetrics.requests, text, sums.requests)
        yield reading(BalancerMetrics.request_seconds, text, round(sums.seconds, 6))
        yield reading(BalancerMetrics.backend_seconds, text, round(sums.backend_seconds, 6))
        yield reading(BalancerMetrics.connect_seconds, text, round(sums.connect_seconds, 6))
    if log.tail.faulty:
        yield reading(BalancerMetrics.faulty_lines, labels(service=log.service), log.tail.faulty)
