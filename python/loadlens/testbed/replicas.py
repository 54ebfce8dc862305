"""What one replica of a service is to be: its names, ports, commands and environment, before it runs."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadlens.errors import TestbedError
from loadlens.model.topology import Scalar, Service
from loadlens.testbed.build import Environment, Prepared
from loadlens.testbed.keeper import Command
from loadlens.testbed.names import Names
from loadlens.testbed.ports import HOST, Ports

_INTERNAL = ("LOADLENS_RUN", "LOADLENS_SERVICE", "LOADLENS_KEEPER")  # of a lab that this lab runs in


@dataclass(frozen=True, slots=True)
class Replica:
    """One process to be started, under its names."""

    service: Service
    number: int  # from 1
    ports: Mapping[str, int]
    names: Names
    command: Command

    @property
    def name(self) -> str:
        """`api`, or `api.2` where there are several."""
        return self.service.name if self.service.replicas == 1 else f"{self.service.name}.{self.number}"

    def port(self, name: str | None) -> int:
        """The named port; the first without a name.

        Raises:
            TestbedError: The service has no such port.
        """
        if name is None and self.ports:
            return next(iter(self.ports.values()))
        if name is None or name not in self.ports:
            known = ", ".join(self.ports) or "none"
            raise TestbedError(
                f"service {self.service.name} has no port {name or 'at all'}",
                where=f"services.{self.service.name}.ports",
                hint=f"known: {known}",
            )
        return self.ports[name]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all services of a testbed share."""

    prepared: Prepared
    scratch: Path
    logs: Path
    values: Mapping[str, Scalar]


def lay_out(
    services: Iterable[Service], around: Surroundings, ports: Ports
) -> tuple[dict[str, tuple[Replica, ...]], tuple[str, ...]]:
    """Every replica with its ports taken and its names filled; and the secrets in their environments."""
    services = tuple(services)
    taken = {
        service.name: tuple({port: ports.take() for port in service.ports} for _ in range(service.replicas))
        for service in services
    }
    shared: dict[str, Scalar] = {**around.values, "host": HOST, "scratch": str(around.scratch)}
    for name, replicas in taken.items():
        for number, by_name in enumerate(replicas, 1):
            prefixes = (name, f"{name}.{number}") if number == 1 else (f"{name}.{number}",)
            for prefix in prefixes:
                shared |= _addresses(prefix, by_name)
    names = Names(shared)
    secrets: list[str] = []
    laid: dict[str, tuple[Replica, ...]] = {}
    for service in services:
        made: list[Replica] = []
        for number, by_name in enumerate(taken[service.name], 1):
            replica, hidden = _replica(service, number, by_name, names, around)
            made.append(replica)
            secrets.extend(hidden)
        laid[service.name] = tuple(made)
    return laid, tuple(dict.fromkeys(secrets))


def _addresses(prefix: str, ports: Mapping[str, int]) -> dict[str, Scalar]:
    """The names under which the others find a replica."""
    addresses: dict[str, Scalar] = {f"{prefix}.host": HOST}
    for index, (name, port) in enumerate(ports.items()):
        addresses[f"{prefix}.port.{name}"] = port
        if index == 0:
            addresses[f"{prefix}.port"] = port
            addresses[f"{prefix}.url"] = f"http://{HOST}:{port}"
    return addresses


def _replica(
    service: Service, number: int, ports: Mapping[str, int], names: Names, around: Surroundings
) -> tuple[Replica, tuple[str, ...]]:
    own: dict[str, Scalar] = {"replica": number}
    for index, (name, port) in enumerate(ports.items()):
        own[f"port.{name}"] = port
        if index == 0:
            own["port"] = port
    names = names.with_values(own)
    where = f"services.{service.name}"
    environment, secrets = _environment(
        service, names, around.prepared.environment(service.name), where=where
    )
    log = f"{service.name}.log" if service.replicas == 1 else f"{service.name}.{number}.log"
    command = Command(
        argv=arguments(service.start, names, where=f"{where}.start"),
        env=environment,
        cwd=around.prepared.folder(service.name),
        log=around.logs / log,
        stop_signal=stop_signal(service),
    )
    return Replica(service, number, dict(ports), names, command), secrets


def arguments(text: str, names: Names, *, where: str) -> tuple[str, ...]:
    """A command line as arguments; names are filled after splitting, so a path with a space stays one."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TestbedError(f"cannot split {text!r}: {str(error).lower()}", where=where) from None
    if not words:
        raise TestbedError("the command is empty", where=where)
    return tuple(names.fill(word, where=where) for word in words)


def _environment(
    service: Service, names: Names, build: Environment, *, where: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The caller's environment, what the build adds, what the study says; and the secrets in it."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in build.without and name not in _INTERNAL
    }
    environment |= build.variables
    secrets: list[str] = []
    for name, text in service.env:
        environment[name], hidden = names.fill_environment(text, where=f"{where}.env.{name}")
        secrets.extend(hidden)
    if build.path:
        rest = environment.get("PATH", os.defpath)
        environment["PATH"] = os.pathsep.join([*map(str, build.path), rest])
    return environment, tuple(secrets)


def stop_signal(service: Service) -> signal.Signals:
    """The signal that asks the service to end."""
    name = service.stop.signal.upper().removeprefix("SIG")
    try:
        return signal.Signals[f"SIG{name}"]
    except KeyError:
        raise TestbedError(
            f"unknown signal {service.stop.signal!r}",
            where=f"services.{service.name}.stop.signal",
            hint="such as TERM, INT, QUIT",
        ) from None
