"""Samples that processes of a service write about their own runtime: JSON lines, a file per process.

The testbed starts the runtimes so that they do (`testbed/runtimes`). Each sample carries its time; those of
an earlier trial, when the service is kept over several, are left out.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from loadlens.model.plain import read
from loadlens.model.readings import MonitorMetrics
from loadlens.model.topology import Runtime
from loadlens.signals.collect.monitor import Monitor, Row, labels, reading
from loadlens.signals.collect.scene import Scene
from loadlens.signals.collect.tail import Tail

_SINCE_NS = 1_500_000_000  # before the first tick: one sample of the idle service
_SILENT_NS = 5_000_000_000  # after this the service is said to be silent


@dataclass(frozen=True, slots=True)
class Folder:
    """Folder in which the processes of one replica write."""

    service: str
    replica: int
    folder: str


@dataclass(frozen=True, slots=True)
class _Moment:
    t: int | None


@dataclass(slots=True)
class Sample:
    """One line of one process."""

    folder: Folder
    name: str  # of the file, without its end
    content: object  # plain data; each runtime has its own
    time_ns: int | None  # CLOCK_MONOTONIC; none: the process has another clock


def folders(scene: Scene, runtime: Runtime) -> tuple[Folder, ...]:
    """The folders of all replicas that run on it."""
    return tuple(
        Folder(p.service, p.replica, p.samples)
        for p in scene.replicas
        if p.samples and p.defined is not None and p.defined.runtime == runtime
    )


@dataclass(slots=True)
class _Replica:
    folder: Folder
    tails: dict[str, Tail] = field(default_factory=dict)
    is_heard: bool = False


class Folders(Protocol):
    """Settings of a monitor of samples."""

    @property
    def folders(self) -> tuple[Folder, ...]: ...


class SampledMonitor(Monitor):
    """A monitor of what processes write down about themselves; each runtime's own reads a sample."""

    silent_because: ClassVar[str]  # why no sample may have come

    def __init__(self) -> None:
        self._replicas: tuple[_Replica, ...] = ()
        self._since_ns = self._silent_after_ns = 0

    def rows(self, sample: Sample) -> Iterator[Row]:
        """All metrics of one sample."""
        raise NotImplementedError

    def open(self, spec: Folders) -> None:
        """Take the folders of the spec."""
        self._replicas = tuple(_Replica(folder) for folder in spec.folders)
        self._since_ns = time.monotonic_ns() - _SINCE_NS
        self._silent_after_ns = time.monotonic_ns() + _SILENT_NS

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Yield the samples since the last tick, each at its own time.

        One row says that a replica is silent, and one at the end how many lines could not be read.
        """
        for replica in self._replicas:
            for name, tail in _tails(replica):
                for line in tail.lines(last=last):
                    sample = _sample(replica.folder, name, line)
                    if sample is None:
                        tail.faulty += 1
                    elif sample.time_ns is None or sample.time_ns >= self._since_ns:
                        replica.is_heard = True
                        try:
                            yield from list(self.rows(sample))
                        except ValueError:
                            tail.faulty += 1
            faulty = sum(tail.faulty for tail in replica.tails.values())
            if last and faulty:
                yield _missed(replica.folder, f"lines of samples that could not be read: {faulty}")
            if not replica.is_heard and (last or now_ns >= self._silent_after_ns):
                replica.is_heard = True  # said once
                yield _missed(replica.folder, f"no sample came: {self.silent_because}")

    def close(self) -> None:
        """Close the files."""
        for replica in self._replicas:
            for tail in replica.tails.values():
                tail.close()


def _tails(replica: _Replica) -> Iterator[tuple[str, Tail]]:
    """A file for each process and thread; they come as the service starts them."""
    try:
        names = os.listdir(replica.folder.folder)
    except FileNotFoundError:
        names = []
    for name in sorted(names):
        if name.endswith(".jsonl") and name not in replica.tails:
            replica.tails[name] = Tail(str(Path(replica.folder.folder, name)))
    for name, tail in replica.tails.items():
        yield name.removesuffix(".jsonl"), tail


def _sample(folder: Folder, name: str, line: bytes) -> Sample | None:
    try:
        content = json.loads(line)
        return Sample(folder, name, content, read(_Moment, content).t)
    except ValueError:
        return None


def _missed(folder: Folder, why: str) -> Row:
    return reading(
        MonitorMetrics.missed, labels(service=folder.service, replica=folder.replica, why=why), None
    )
