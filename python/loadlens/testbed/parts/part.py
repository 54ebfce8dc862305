"""Interface of a kind of part: its folder, its files, and the commands that run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from loadlens.errors import TestbedError
from loadlens.model.topology import Service
from loadlens.testbed.programs import Program
from loadlens.testbed.readiness import Question
from loadlens.testbed.replica_names import Names


@dataclass(frozen=True, slots=True)
class Site:
    """Folder of one replica, and its view of the testbed."""

    service: Service
    number: int  # from 1
    home: Path  # working folder of the service
    folder: Path  # of this replica alone, below the scratch; exists before the replica starts
    ports: Mapping[str, int]
    names: Names
    environment: Mapping[str, str]
    others: Mapping[str, tuple[Mapping[str, int], ...]]  # ports of every service's replicas
    services: Mapping[str, Service] = field(default_factory=dict)  # every service as the study has it

    @property
    def port(self) -> int:
        """The first port."""
        return next(iter(self.ports.values()))

    @property
    def where(self) -> str:
        """The service's key path, for messages."""
        return f"services.{self.service.name}"


def backends(site: Site) -> tuple[int, ...]:
    """Return the backends of a part: the first port of every replica of the services in `over`.

    Raises:
        TestbedError: A service does not exist or has no port.
    """
    first_ports: list[int] = []
    for name in site.service.over:
        replicas = site.others.get(name)
        if not replicas or not replicas[0]:
            raise TestbedError(f"there is no service {name} with a port", where=f"{site.where}.over")
        first_ports += [next(iter(ports.values())) for ports in replicas]
    return tuple(first_ports)


@dataclass(frozen=True, slots=True)
class Layout:
    """Processes, files and commands of one replica."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=dict)  # in addition to the site's
    files: Mapping[Path, str] = field(default_factory=dict)  # written before the replica starts
    copies: Mapping[Path, Path] = field(default_factory=dict)  # folders: to -> from
    first: tuple[tuple[str, ...], ...] = ()  # commands that run to their end before it starts
    ready: Question | None = None  # readiness check unless the study names one
    stop_signal: str | None = None  # unless the study names one
    is_unprivileged: bool = False  # if the lab is root: run as another user, who owns the folder
    sql: tuple[str, ...] = ()  # of a database: the command that takes statements as its last argument
    access_log: Path | None = None  # of a balancer: one JSON object per request
    caveats: tuple[str, ...] = ()  # reported as an event, and kept with the trial


class Piece(Protocol):
    """One kind of part."""

    @property
    def program(self) -> Program | None:
        """Program that the machine needs; None: the study names its own command."""

    def url(self, host: str, port: int) -> str:
        """Return `$NAME.url`, the address for other services."""

    def lay_out(self, site: Site) -> Layout:
        """Plan one replica.

        Raises:
            TestbedError: The replica cannot be set up as the study says.
        """
