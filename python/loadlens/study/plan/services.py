"""Services, entry and reset of one case."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import cast

from loadlens.model.topology import (
    BALANCER_SETTINGS,
    METRICS_PORT,
    Build,
    BuildKind,
    Calibrate,
    Entry,
    Inside,
    Limits,
    Ready,
    Reset,
    Scrape,
    ServerTimes,
    Service,
    Stop,
    Use,
)
from loadlens.model.workload import PemFile, Tls
from loadlens.study.definition import (
    BuildPart,
    Definition,
    Later,
    ResetPart,
    ServicePart,
    TlsPart,
)
from loadlens.study.plan.fault_settings import proxy_faults
from loadlens.study.plan.fill import Filler

_NS_PER_S = 1e9


def services(definition: Definition, fill: Filler) -> tuple[Service, ...]:
    """Every service with this case's values; names of the testbed are still open."""
    present = {
        name: part for name, part in definition.services.items() if fill.value(part.when, default=True)
    }
    made = _with_scraped(
        tuple(_service(name, part, definition.folder, fill) for name, part in present.items()),
        definition,
        fill,
    )
    for service in made:
        for other in (*service.after, *service.over):
            if other in definition.services and other not in present:
                fill.fault(
                    f"service {service.name} needs {other}, which this case does not have",
                    definition.services[service.name].place,
                    f"a `when` for {service.name} too",
                )
    return made


def _with_scraped(made: tuple[Service, ...], definition: Definition, fill: Filler) -> tuple[Service, ...]:
    """The services; Prometheus with what it scrapes: what its study says, or all that have metrics."""
    scraped = tuple(service.name for service in made if service.scrape is not None)
    planned = []
    for service in made:
        if service.use == "prometheus":
            part = definition.services[service.name]
            dumb = [name for name in service.over if name in definition.services and name not in scraped]
            if dumb:
                fill.fault(f"{dumb[0]} has no metrics to scrape", part.over[0].place, "scrape: {}")
            elif not service.over and not scraped:
                fill.fault(
                    f"service {service.name} has nothing to scrape", part.place, "scrape: {} of a service"
                )
            service = replace(service, over=service.over or scraped)
        planned.append(service)
    return tuple(planned)


def _service(name: str, part: ServicePart, folder: str, fill: Filler) -> Service:
    use: Use = fill.value(part.use, "process")
    _check_fits(name, part, use, fill)
    directory = fill.optional(part.dir)
    ports = ("http",) if part.ports is None else tuple(fill.value(port, "http") for port in part.ports)
    if use == "fault-proxy" and METRICS_PORT not in ports:
        ports = (*ports, METRICS_PORT)
    home = Path(folder) / (directory or ".")
    if part.dir is not None and not home.is_dir():
        fill.fault(f"service {name}: there is no folder {directory!r}", part.dir.place, f"make {home}")
    return Service(
        name=name,
        start=fill.value(part.start, ""),
        dir=directory,
        use=use,
        build=None if part.build is None else _build(part.build, home, fill),
        setup=fill.optional(part.setup),
        env=tuple((key, fill.value(value, "")) for key, value in part.env.items()),
        after=tuple(fill.value(other, "") for other in part.after),
        replicas=fill.value(part.replicas, 1),
        ports=ports,
        ready=_ready(part, fill),
        stop=_stop(part, fill),
        limits=_limits(part, fill),
        model=_inside(part, fill),
        server_times=_server_times(part, fill),
        scrape=_scrape(part, use, fill),
        runtime=fill.optional(part.runtime),
        over=tuple(fill.value(other, "") for other in part.over),
        policy=fill.optional(part.policy),
        settings=tuple((key, _setting(use, key, value, fill)) for key, value in part.settings.items()),
        faults=proxy_faults(part, fill) if use == "fault-proxy" else None,
        needs=tuple(fill.value(program, "") for program in part.needs),
        calibrate=None
        if part.calibrate is None
        else Calibrate(fill.value(part.calibrate.run, ""), part.calibrate.gives),
        variant=part.variant,
    )


# Which keys mean something to which kinds of parts.
_ONLY_OF = {
    "start": ("process",),
    "build": ("process",),
    "env": ("process",),
    "calibrate": ("process",),
    "server_times": ("process",),
    "runtime": ("process",),
    "model": ("process",),
    "over": ("nginx", "fault-proxy", "prometheus"),
    "policy": ("nginx",),
    "settings": ("postgres", "nginx", "fault-proxy"),
    "faults": ("fault-proxy",),
}


def _check_fits(name: str, part: ServicePart, use: Use, fill: Filler) -> None:
    """A part of some kind has the keys that it needs and none that mean nothing to it."""
    for key, uses in _ONLY_OF.items():
        written = getattr(part, key)
        if written and use not in uses:
            kinds = " or ".join(uses)
            fill.fault(
                f"service {name}: {key} means nothing to use: {use}",
                part.place,
                f"remove it, or use: {kinds}",
            )
    if use == "process" and part.start is None:
        fill.fault(f"service {name} without start", part.place, "start: the command that runs it")
    if use == "prometheus" and part.scrape is not None:
        fill.fault(f"service {name}: Prometheus is not scraped here", part.scrape.place, "remove scrape")
    if use in BALANCER_SETTINGS and not part.over:
        fill.fault(f"service {name} stands before nothing", part.place, "over: the name of a service")
    if use != "process" and part.replicas is not None and fill.value(part.replicas, 1) != 1:
        fill.fault(f"service {name}: there is one {use}", part.replicas.place, "remove replicas")


_NGINX_VALUE = {
    "workers": (r"[1-9][0-9]{0,2}|auto", "1, 2 or auto"),
    "keepalive": (r"[0-9]{1,6}", "64, or 0 for a new connection for each request"),
    "max_fails": (r"[0-9]{1,4}", "0, or the failures after which a backend is left out"),
    "fail_timeout": (r"[0-9]{1,6}(ms|s|m)?", "10s"),
    "next_upstream": (
        r"off|(error|timeout|invalid_header|http_50[0234]|non_idempotent|\s){1,20}",
        "off, or error timeout",
    ),
    "read_timeout": (r"[0-9]{1,6}(ms|s|m)?", "60s"),
    "log": (r"on|off", "on or off"),
}


_PROXY_VALUE = {
    "keepalive": (r"[0-9]{1,6}", "1024, or 0 for a new connection for each request"),
    "timeout": (r"[0-9]{1,6}(ms|s|m)?", "60s"),
    "failures": (r"pass|answer", "pass, or answer"),
}
_KNOWN_VALUES = {"nginx": _NGINX_VALUE, "fault-proxy": _PROXY_VALUE}


def _setting(use: Use, key: str, later: Later[str], fill: Filler) -> str:
    """One setting; those of a balancer are known, those of a database are its own."""
    value = fill.value(later, "")
    if use not in BALANCER_SETTINGS:
        return value
    if key not in BALANCER_SETTINGS[use]:
        fill.fault(f"{use} has no setting {key!r} here", later.place, ", ".join(BALANCER_SETTINGS[use]))
        return value
    pattern, example = _KNOWN_VALUES[use][key]
    if not re.fullmatch(pattern, value):
        fill.fault(f"setting {key} cannot be {value!r}", later.place, example)
    return value


def _build(part: BuildPart, home: Path, fill: Filler) -> Build:
    files = {"python": part.python, "node": part.node, "maven": part.maven, "mix": part.mix}
    for kind, later in files.items():
        if later is None:
            continue
        file = fill.value(later, "")
        if home.is_dir() and not (home / file).is_file():
            fill.fault(f"there is no file {file!r} in {home.name}", later.place, _BUILD_FILES[kind])
        return Build(cast(BuildKind, kind), file, tuple(fill.value(name, "") for name in part.debian))
    return Build("run", fill.value(part.run, ""))


_BUILD_FILES = {"python": "a requirements file", "node": "package.json", "maven": "pom.xml", "mix": "mix.exs"}


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
    return Stop(fill.optional(part.stop.signal), within_ns / _NS_PER_S)


def _inside(part: ServicePart, fill: Filler) -> Inside:
    inside = part.model
    if inside is None:
        return Inside()
    return Inside(workers=fill.value(inside.workers, 1), threads=fill.value(inside.threads, 0))


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


def _scrape(part: ServicePart, use: Use, fill: Filler) -> Scrape | None:
    scrape = part.scrape
    port = METRICS_PORT if use == "fault-proxy" else None
    if scrape is None:
        return None if port is None else Scrape(port=port)
    return Scrape(
        path=fill.value(scrape.get, "/metrics"),
        port=fill.optional(scrape.port) or port,
        every_s=fill.value(scrape.every, 1_000_000_000) / _NS_PER_S,
        requests=fill.optional(scrape.requests),
        time=fill.optional(scrape.time),
        time_in=fill.value(scrape.time_in, "s"),
    )


def entry(definition: Definition, fill: Filler) -> Entry:
    """Return the target of the load; a fault if a filled name leads nowhere."""
    target = fill.value(definition.entry, Entry())
    place = definition.entry.place
    if target.url is not None:
        if definition.services:
            fill.fault(
                "with a URL as entry nothing is started, but there are services", place, "remove services"
            )
        secured = definition.tls is not None or target.url.startswith("https:")
        return replace(target, tls=_tls(definition.tls, definition.folder, fill) if secured else None)
    present = [name for name, part in definition.services.items() if fill.value(part.when, default=True)]
    if target.service is not None and target.service not in present:
        names = ", ".join(present) or "none"
        fill.fault(f"entry {target.service!r} is no service", place, f"services: {names}")
    return (
        target
        if definition.tls is None
        else replace(target, tls=_tls(definition.tls, definition.folder, fill))
    )


def secured(
    made: tuple[Service, ...], entry: Entry, definition: Definition, fill: Filler
) -> tuple[Service, ...]:
    """The services; what the lab asks of the entry's port it asks over TLS, as the load does.

    A port speaks TLS or does not, so the others are asked over plain HTTP.
    """
    service = next((service for service in made if service.name == entry.service), None)
    if entry.tls is None or definition.tls is None or service is None or not service.ports:
        return made
    port = entry.port or service.ports[0]
    if service.use != "process":
        fill.fault(
            f"a {service.use} speaks no TLS here, and {service.name} is the entry",
            definition.tls.place,
            "remove tls, or the port of a process as entry",
        )
        return made
    ready, scrape = service.ready, service.scrape
    if ready is not None and (ready.port or service.ports[0]) == port:
        ready = replace(ready, tls=entry.tls)
    if scrape is not None and (scrape.port or service.ports[0]) == port:
        scrape = replace(scrape, tls=entry.tls)
        _check_prometheus(made, service.name, definition.tls, fill)
    asked = replace(service, ready=ready, scrape=scrape)
    return tuple(asked if other is service else other for other in made)


def _check_prometheus(made: tuple[Service, ...], scraped: str, part: TlsPart, fill: Filler) -> None:
    """It runs as a user who may not read a private key."""
    for server in made:
        if server.use == "prometheus" and scraped in server.over and part.cert is not None:
            fill.fault(
                f"{server.name} scrapes {scraped} and can show no client certificate",
                part.cert.place,
                "scrape: {port: NAME} with a port without TLS, or no prometheus",
            )


def _tls(part: TlsPart | None, folder: str, fill: Filler) -> Tls:
    if part is None:
        return Tls()
    if part.key is not None and part.cert is None:
        fill.fault("a key without its certificate", part.key.place, "cert: client.pem")
    return Tls(
        server_name=fill.optional(part.servername),
        ca=_pem(part.ca, "CERTIFICATE", folder, fill),
        certificate=_pem(part.cert, "CERTIFICATE", folder, fill),
        key=_pem(part.key, "PRIVATE KEY", folder, fill),
        insecure=fill.value(part.insecure, False),
        resume=fill.value(part.resume, True),
    )


def _pem(later: Later[str] | None, what: str, folder: str, fill: Filler) -> PemFile | None:
    """A file by its digest; the engine reads its content, which no record holds."""
    if later is None:
        return None
    path = Path(folder) / fill.value(later, "")
    try:
        content = path.read_bytes()
    except OSError as error:
        fill.fault(f"{path.name!r} cannot be read: {error.strerror}", later.place, f"make {path}")
        return None
    if b"-----BEGIN " not in content or f"{what}-----".encode() not in content:
        hint = f"a file with a line '-----BEGIN {what}-----'"
        fill.fault(f"no {what.lower()} in PEM form in {path.name!r}", later.place, hint)
        return None
    return PemFile(str(path), hashlib.sha256(content).hexdigest())


def reset(part: ResetPart | None, fill: Filler) -> Reset | None:
    """Return the reset of the data."""
    if part is None:
        return None
    return Reset(
        before=fill.value(part.before, "trial"),
        run=fill.optional(part.run),
        sql=fill.optional(part.sql),
        files=tuple(fill.value(file, "") for file in part.files),
        verify=fill.optional(part.verify),
        verify_sql=fill.optional(part.verify_sql),
        service=fill.optional(part.service),
    )
