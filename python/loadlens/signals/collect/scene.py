"""Processes, ports and files to watch in a trial, as plain data; each monitor takes its part.

A monitor's module has `wanted(scene)`, which returns what it is to be asked for, or none where there is
nothing for it. So a new monitor is registered in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from loadlens.model.topology import Service

GENERATOR = "(generator)"
KEEPER = "(keeper)"
DRIVER = "(driver)"  # a program of others that makes the load in the generator's place
NODE = "(node)"  # engines of a fleet on this machine


@dataclass(frozen=True, slots=True)
class Running:
    """A process: a replica of a service, one that ran already, or a part of the lab itself."""

    service: str  # its name; parts of the lab stand in brackets
    replica: int
    pid: int | None  # none: not known, what can be seen without it is watched
    mark: str = ""  # an environment entry that everything of this replica carries
    host: str = ""
    ports: Mapping[str, int] | None = None  # by name
    groups: tuple[str, ...] = ()  # folders of the control groups that limit it
    samples: str = ""  # folder with samples of its runtime
    defined: Service | None = None  # as the study says; none: a part of the lab
    is_here: bool = True  # on this machine
    is_called: bool = False  # by a service, and none of the services
    has_code: bool = True  # of a service

    @property
    def is_tree(self) -> bool:
        """True if all that it starts belongs to it."""
        return self.defined is not None or self.service in (DRIVER, NODE)


@dataclass(frozen=True, slots=True)
class Root:
    """A process that is watched with all that it started, and the replica that it belongs to."""

    service: str
    replica: int
    pid: int


@dataclass(frozen=True, slots=True)
class Scene:
    """One trial's testbed."""

    processes: tuple[Running, ...]
    times_files: Mapping[str, str]  # path of a file with server times -> the service that writes it
    balancer_logs: tuple[tuple[str, str, Mapping[str, str]], ...] = ()  # service, path, address -> replica
    databases: Mapping[str, str] = field(
        default_factory=dict
    )  # service -> postgresql://user@host:port/database
    otlp: tuple[str, int] | None = None  # address and port that services send their spans to
    hide: tuple[str, ...] = ()  # names whose values are kept nowhere
    samples_stacks: bool = False  # the trial is there for the stacks of its threads, and for no figure

    @property
    def replicas(self) -> tuple[Running, ...]:
        """The services' processes, without the lab's own."""
        return tuple(process for process in self.processes if process.defined is not None)

    def service(self, name: str) -> Service:
        """A service as the study defines it."""
        return next(p.defined for p in self.processes if p.service == name and p.defined is not None)
