"""Response times as the services wrote them down: one JSON object a line, read as the files grow."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from loadlens.model.readings import ServerTimesMetrics
from loadlens.signals.collect.monitor import Monitor, Row, labels, reading
from loadlens.signals.collect.scene import Scene
from loadlens.signals.collect.tail import LONGEST_WAIT_S, Tail, wait_for_writers


@dataclass(frozen=True, slots=True)
class TimesFile:
    """A file, and the keys under which each line holds its values."""

    service: str
    file: str
    path: str  # key of the request path
    status: str  # key of the status
    seconds: str  # key of the response time in seconds


@dataclass(frozen=True, slots=True)
class Files:
    """Settings of the server_times monitor."""

    monitor: ClassVar[str] = "server_times"
    files: tuple[TimesFile, ...]

    @property
    def waits_s(self) -> float:
        """For writers of the files."""
        return LONGEST_WAIT_S


def wanted(scene: Scene) -> Files | None:
    """Every file of the services that write down their own response times."""
    files = []
    for path, name in scene.times_files.items():
        keys = scene.service(name).server_times
        if keys is not None:
            files.append(TimesFile(name, path, keys.path, keys.status, keys.seconds))
    return Files(tuple(files)) if files else None


class _Tail(Tail):
    """One service's file."""

    def __init__(self, keys: TimesFile) -> None:
        super().__init__(keys.file)
        self.keys = keys
        self.labels: dict[tuple[str, str], str] = {}


class ServerTimesMonitor(Monitor):
    """The monitor."""

    name = "server_times"
    settings = Files

    def __init__(self) -> None:
        self._tails: tuple[_Tail, ...] = ()

    def open(self, spec: Files) -> None:
        """Begin at the beginning of each file: what was served before the first tick belongs to the trial."""
        self._tails = tuple(_Tail(file) for file in spec.files)

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """One row a request; one row that counts the lines that could not be read, if there were any."""
        if last:
            wait_for_writers(self._tails)
        for tail in self._tails:
            for text in tail.lines(last=last):
                if (row := _row(tail, text)) is not None:
                    yield row
            if tail.faulty:
                yield reading(ServerTimesMetrics.faulty_lines, labels(service=tail.keys.service), tail.faulty)

    def close(self) -> None:
        """Close the files."""
        for tail in self._tails:
            tail.close()


def _row(tail: _Tail, text: bytes) -> Row | None:
    keys = tail.keys
    if not text.strip():
        return None
    try:
        content = json.loads(text)
        key = (str(content[keys.path]), str(content[keys.status]))
        seconds = float(content[keys.seconds])
    except (ValueError, KeyError, TypeError):
        tail.faulty += 1
        return None
    encoded = tail.labels.get(key)
    if encoded is None:
        encoded = labels(service=keys.service, path=key[0], status=key[1])
        if len(tail.labels) < 10_000:  # paths may hold ids
            tail.labels[key] = encoded
    return reading(ServerTimesMetrics.response_time, encoded, seconds)
