"""What the testbed asks of a kind of part: where it lives, what is written there, which commands run it."""

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
    """Where one replica is to live, and what is around it."""

    service: Service
    number: int  # from 1
    home: Path  # the folder of the study's service
    folder: Path  # of this replica alone, below the scratch; there before anything of it runs
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
    """What a part stands before: the first port of every replica of the services in `over`.

    Raises:
        TestbedError: One of them is not there or has no port.
    """
    found: list[int] = []
    for name in site.service.over:
        replicas = site.others.get(name)
        if not replicas or not replicas[0]:
            raise TestbedError(f"there is no service {name} with a port", where=f"{site.where}.over")
        found += [next(iter(ports.values())) for ports in replicas]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Layout:
    """What one replica consists of."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=dict)  # beside the site's
    files: Mapping[Path, str] = field(default_factory=dict)  # written before anything runs
    copies: Mapping[Path, Path] = field(default_factory=dict)  # folders: to -> from
    first: tuple[tuple[str, ...], ...] = ()  # commands that run to their end before it starts
    ready: Question | None = None  # what to ask when the study does not say
    stop_signal: str | None = None  # when the study does not say
    is_unprivileged: bool = False  # when we are root: runs as another user, to whom the folder belongs
    sql: tuple[str, ...] = ()  # of a database: the command that takes statements as its last argument
    access_log: Path | None = None  # of a balancer: one JSON object a request
    caveats: tuple[str, ...] = ()  # said aloud, and kept with the trial


class Piece(Protocol):
    """One kind of part."""

    @property
    def program(self) -> Program | None:
        """What the machine must have to run it; none: the study names its own command."""

    def url(self, host: str, port: int) -> str:
        """`$NAME.url`: how the other services reach it."""

    def lay_out(self, site: Site) -> Layout:
        """What one replica is to be.

        Raises:
            TestbedError: It cannot be made as the study says.
        """
