"""Plan of one replica before it runs: its names, ports, command and environment."""

from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadlens.errors import TestbedError
from loadlens.model.topology import Scalar, Service
from loadlens.testbed.build import Environment, Prepared
from loadlens.testbed.keeper import Command
from loadlens.testbed.parts import PIECES, Layout, Piece, Site
from loadlens.testbed.ports import HOST, Ports
from loadlens.testbed.replica_names import Names

# What services get of the caller's environment: where programs, libraries and certificates are, who the user
# is. Everything else is passed by name, so that no credential of a shell reaches a service by chance.
PASSED = frozenset(
    (
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TERM",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "VIRTUAL_ENV",
        "NODE_PATH",
        "JAVA_HOME",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    )
)


@dataclass(frozen=True, slots=True)
class Replica:
    """One process to be started, under its names."""

    service: Service
    number: int  # from 1
    ports: Mapping[str, int]
    names: Names
    command: Command
    folder: Path  # its own, below the scratch
    layout: Layout

    @property
    def name(self) -> str:
        """`api`, or `api.2` where there are several."""
        return self.service.name if self.service.replicas == 1 else f"{self.service.name}.{self.number}"

    def port(self, name: str | None) -> int:
        """Return the named port; the first one without a name.

        Raises:
            TestbedError: The service has no such port.
        """
        if name is None and self.ports:
            return next(iter(self.ports.values()))
        if name is None or name not in self.ports:
            names = ", ".join(self.ports) or "none"
            raise TestbedError(
                f"service {self.service.name} has no port {name or 'at all'}",
                where=f"services.{self.service.name}.ports",
                hint=f"known: {names}",
            )
        return self.ports[name]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Folders, builds and values shared by all services of a testbed."""

    prepared: Prepared
    scratch: Path
    logs: Path
    values: Mapping[str, Scalar]
    temporary: Path  # holds one folder per replica, its TMPDIR


def lay_out(
    services: Iterable[Service], around: Surroundings, ports: Ports
) -> tuple[dict[str, tuple[Replica, ...]], tuple[str, ...]]:
    """Return every replica with its ports taken and its names filled, and the secrets in all environments."""
    services = tuple(services)
    taken = {
        service.name: tuple({port: ports.take() for port in service.ports} for _ in range(service.replicas))
        for service in services
    }
    uses = {service.name: service.use for service in services}
    shared: dict[str, Scalar] = {**around.values, "host": HOST, "scratch": str(around.scratch)}
    for name, replicas in taken.items():
        for number, replica_ports in enumerate(replicas, 1):
            prefixes = (name, f"{name}.{number}") if number == 1 else (f"{name}.{number}",)
            for prefix in prefixes:
                shared |= _addresses(prefix, replica_ports, PIECES[uses[name]])
    names = Names(shared)
    by_name = {service.name: service for service in services}
    secrets: list[str] = []
    laid: dict[str, tuple[Replica, ...]] = {}
    for service in services:
        made: list[Replica] = []
        for number in range(1, service.replicas + 1):
            replica, hidden = _replica(service, number, names, around, taken, by_name)
            made.append(replica)
            secrets.extend(hidden)
        laid[service.name] = tuple(made)
    return laid, tuple(dict.fromkeys(secrets))


def _addresses(prefix: str, ports: Mapping[str, int], piece: Piece) -> dict[str, Scalar]:
    """Return the names under which other services reach a replica."""
    addresses: dict[str, Scalar] = {f"{prefix}.host": HOST}
    for index, (name, port) in enumerate(ports.items()):
        addresses[f"{prefix}.port.{name}"] = port
        if index == 0:
            addresses[f"{prefix}.port"] = port
            addresses[f"{prefix}.url"] = piece.url(HOST, port)
    return addresses


def _replica(
    service: Service,
    number: int,
    names: Names,
    around: Surroundings,
    taken: Mapping[str, tuple[Mapping[str, int], ...]],
    services: Mapping[str, Service],
) -> tuple[Replica, tuple[str, ...]]:
    ports = taken[service.name][number - 1]
    own: dict[str, Scalar] = {"replica": number}
    for index, (name, port) in enumerate(ports.items()):
        own[f"port.{name}"] = port
        if index == 0:
            own["port"] = port
    names = names.with_values(own)
    title = service.name if service.replicas == 1 else f"{service.name}.{number}"
    environment, secrets = environment_of(
        service,
        names,
        around.prepared.environment(service.name),
        temporary=around.temporary / title,
        where=f"services.{service.name}",
    )
    site = Site(
        service=service,
        number=number,
        home=around.prepared.folder(service.name),
        folder=around.scratch / title,
        ports=ports,
        names=names,
        environment=environment,
        others=taken,
        services=services,
    )
    layout = PIECES[service.use].lay_out(site)
    command = Command(
        argv=_with_temporary_folder(layout.argv, environment["TMPDIR"]),
        env=environment | dict(layout.environment),
        cwd=layout.cwd,
        log=around.logs / f"{title}.log",
        stop_signal=_stop_signal(service, layout),
        account=_account() if layout.is_unprivileged else None,
    )
    return Replica(service, number, dict(ports), names, command, site.folder, layout), secrets


def _with_temporary_folder(argv: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """Add the folder for temporary files to a `java` command: the JVM ignores TMPDIR.

    JAVA_TOOL_OPTIONS would reach a JVM behind a script too, but every JVM prints that it picked them up.
    """
    program, *others = argv
    if Path(program).name != "java" or any(word.startswith("-Djava.io.tmpdir=") for word in others):
        return argv
    return (program, f"-Djava.io.tmpdir={folder}", *others)


def _account() -> tuple[int, int] | None:
    """Return the user and group of an unprivileged part; None unless the lab runs as root.

    Raises:
        TestbedError: There is no such user.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise TestbedError(
            "there is no unprivileged account `nobody` to run a part as", hint="run as another user than root"
        ) from None
    return entry.pw_uid, entry.pw_gid


def environment_of(
    service: Service, names: Names, build: Environment, *, temporary: Path, where: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Merge what passes of the caller's environment with those of build and study; also return the secrets.

    `temporary` is the folder for temporary files, unless the study sets TMPDIR.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if (name in PASSED or name.startswith("LC_")) and name not in build.without
    }
    environment |= {**build.variables, "TMPDIR": str(temporary)}
    secrets: list[str] = []
    for name, text in service.env:
        environment[name], hidden = names.fill_environment(text, where=f"{where}.env.{name}")
        secrets.extend(hidden)
    if build.path:
        rest = environment.get("PATH", os.defpath)
        environment["PATH"] = os.pathsep.join([*map(str, build.path), rest])
    return environment, tuple(secrets)


def _stop_signal(service: Service, layout: Layout) -> signal.Signals:
    """Return the signal that stops the service."""
    name = (service.stop.signal or layout.stop_signal or "TERM").upper().removeprefix("SIG")
    try:
        return signal.Signals[f"SIG{name}"]
    except KeyError:
        raise TestbedError(
            f"unknown signal {service.stop.signal!r}",
            where=f"services.{service.name}.stop.signal",
            hint="such as TERM, INT, QUIT",
        ) from None
