"""Services, entry and reset of one case."""

from __future__ import annotations

from pathlib import Path

from loadlens.design.fill import Filler
from loadlens.model.definition import BuildPart, Definition, ResetPart, ServicePart
from loadlens.model.topology import (
    Build,
    Entry,
    Limits,
    Ready,
    Reset,
    Scrape,
    ServerTimes,
    Service,
    Stop,
)

_NS_PER_S = 1e9


def services(definition: Definition, fill: Filler) -> tuple[Service, ...]:
    """Every service with this case's values; names of the testbed are still open."""
    return tuple(_service(name, part, definition.folder, fill) for name, part in definition.services.items())


def _service(name: str, part: ServicePart, folder: str, fill: Filler) -> Service:
    directory = fill.optional(part.dir)
    ports = ("http",) if part.ports is None else tuple(fill.value(port, "http") for port in part.ports)
    home = Path(folder) / (directory or ".")
    if part.dir is not None and not home.is_dir():
        fill.fault(f"service {name}: there is no folder {directory!r}", part.dir.place, f"make {home}")
    return Service(
        name=name,
        start=fill.value(part.start, ""),
        dir=directory,
        build=None if part.build is None else _build(part.build, home, fill),
        setup=fill.optional(part.setup),
        env=tuple((key, fill.value(value, "")) for key, value in part.env.items()),
        after=tuple(fill.value(other, "") for other in part.after),
        replicas=fill.value(part.replicas, 1),
        ports=ports,
        ready=_ready(part, fill),
        stop=_stop(part, fill),
        limits=_limits(part, fill),
        server_times=_server_times(part, fill),
        scrape=_scrape(part, fill),
    )


def _build(part: BuildPart, home: Path, fill: Filler) -> Build:
    if part.python is None:
        return Build("run", fill.value(part.run, ""))
    requirements = fill.value(part.python, "")
    if home.is_dir() and not (home / requirements).is_file():
        fill.fault(
            f"there is no file {requirements!r} in {home.name}", part.python.place, "a requirements file"
        )
    return Build("python", requirements)


def _ready(part: ServicePart, fill: Filler) -> Ready | None:
    if part.ready is None:
        return None
    ready = part.ready
    return Ready(
        path=fill.value(ready.get, "/"),
        port=fill.optional(ready.port),
        status=fill.value(ready.status, 200),
        within_s=fill.value(ready.within, 30_000_000_000) / _NS_PER_S,
    )


def _stop(part: ServicePart, fill: Filler) -> Stop:
    if part.stop is None:
        return Stop()
    within_ns = fill.value(part.stop.within, 10_000_000_000)
    return Stop(fill.value(part.stop.signal, "TERM"), within_ns / _NS_PER_S)


def _limits(part: ServicePart, fill: Filler) -> Limits:
    limits = part.limits
    if limits is None:
        return Limits()
    if limits.period is not None and limits.cpu is None:
        fill.fault("a period without a share of CPU time", limits.period.place, "cpu: 0.5")
    return Limits(
        cpu=fill.optional(limits.cpu),
        period_s=fill.value(limits.period, 10_000_000) / _NS_PER_S,
        memory_bytes=fill.optional(limits.memory),
        cpus=fill.optional(limits.cpus),
    )


def _server_times(part: ServicePart, fill: Filler) -> ServerTimes | None:
    times = part.server_times
    if times is None:
        return None
    return ServerTimes(
        file=fill.value(times.file, ""),
        path=fill.value(times.json.path, ""),
        status=fill.value(times.json.status, ""),
        seconds=fill.value(times.json.seconds, ""),
    )


def _scrape(part: ServicePart, fill: Filler) -> Scrape | None:
    scrape = part.scrape
    if scrape is None:
        return None
    return Scrape(
        path=fill.value(scrape.get, "/metrics"),
        port=fill.optional(scrape.port),
        every_s=fill.value(scrape.every, 1_000_000_000) / _NS_PER_S,
    )


def entry(definition: Definition, fill: Filler) -> Entry:
    """Where the load goes; faults when a filled name leads nowhere."""
    found = fill.value(definition.entry, Entry())
    place = definition.entry.place
    if found.url is not None:
        if definition.services:
            fill.fault(
                "with a URL as entry nothing is started, but there are services", place, "remove services"
            )
        return found
    if found.service is not None and found.service not in definition.services:
        known = ", ".join(definition.services) or "none"
        fill.fault(f"entry {found.service!r} is no service", place, f"services: {known}")
    return found


def reset(part: ResetPart | None, fill: Filler) -> Reset | None:
    """How the data are put back."""
    if part is None:
        return None
    return Reset(
        before=fill.value(part.before, "trial"),
        run=fill.optional(part.run),
        files=tuple(fill.value(file, "") for file in part.files),
        verify=fill.optional(part.verify),
        service=fill.optional(part.service),
    )
