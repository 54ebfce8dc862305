"""Response times as the services wrote them down: one JSON object a line, read as the files grow."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from loadlens.monitors.reading import Row, labels
from loadlens.monitors.scene import Scene

_MOST_BYTES_A_TICK = 16 << 20  # of each file; the rest comes with the next tick, at the end all of it
_LONGEST_LINE = 64 << 10


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
    """What the server_times monitor is asked for."""

    monitor: ClassVar[str] = "server_times"
    files: tuple[TimesFile, ...]


def wanted(scene: Scene) -> Files | None:
    """Every file of the services that write down their own response times."""
    files = []
    for path, name in scene.times_files.items():
        keys = scene.service(name).server_times
        if keys is not None:
            files.append(TimesFile(name, path, keys.path, keys.status, keys.seconds))
    return Files(tuple(files)) if files else None


class _Tail:
    """The end of one file that grows."""

    def __init__(self, keys: TimesFile) -> None:
        self.keys = keys
        self.faulty = 0  # lines that could not be read
        self.labels: dict[tuple[str, str], str] = {}
        self._descriptor = -1
        self._begun = b""  # a line whose end is not written yet

    def lines(self, most: int) -> Iterator[bytes]:
        """Whole lines that came since the last call."""
        if self._descriptor < 0:
            try:
                self._descriptor = os.open(self.keys.file, os.O_RDONLY)
            except FileNotFoundError:
                return  # the service has not answered anything yet
        while most > 0 and (piece := os.read(self._descriptor, 1 << 20)):
            most -= len(piece)
            *whole, self._begun = (self._begun + piece).split(b"\n")
            if len(self._begun) > _LONGEST_LINE:
                self._begun = b""
                self.faulty += 1
            yield from whole

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class ServerTimesMonitor:
    """The monitor."""

    name = "server_times"

    def __init__(self) -> None:
        self._tails: tuple[_Tail, ...] = ()

    def open(self, spec: Mapping[str, Any]) -> None:
        """Begin at the beginning of each file: what was served before the first tick belongs to the trial."""
        self._tails = tuple(_Tail(TimesFile(**file)) for file in spec["files"])

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """One row a request; one row that counts the lines that could not be read, if there were any."""
        for tail in self._tails:
            most = (1 << 62) if last else _MOST_BYTES_A_TICK
            for text in tail.lines(most):
                if (row := _row(tail, text)) is not None:
                    yield row
            if tail.faulty:
                yield Row("faulty_lines", labels(service=tail.keys.service), "", tail.faulty)

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
    return Row("response_time", encoded, "s", seconds)
