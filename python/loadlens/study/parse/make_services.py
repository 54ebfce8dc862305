"""Makes the services of a case from their keys, and secures the one that the load asks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from loadlens.model.topology import (
    BALANCER_SETTINGS,
    BALANCERS,
    METRICS_PORT,
    PASSING,
    Build,
    Entry,
    ProxyFaults,
    Scrape,
    ServerTimes,
    Service,
    Use,
)
from loadlens.model.workload import PemFile, Tls
from loadlens.study.parse.schema import At, Fields
from loadlens.study.tree import Tree

# Which keys mean something to which kinds of parts.
_ONLY_OF: Final = {
    "start": ("process",),
    "build": ("process",),
    "env": ("process",),
    "calibrate": ("process",),
    "server_times": ("process",),
    "otlp": ("process",),
    "runtime": ("process",),
    "model": ("process",),
    "over": (*PASSING, "prometheus"),
    "policy": BALANCERS,
    "settings": ("postgres", *PASSING),
    "faults": ("fault-proxy",),
}
_MOST_PEM_BYTES: Final = 16 << 20
_BUILD_FILES: Final = {
    "python": "a requirements file",
    "node": "package.json",
    "maven": "pom.xml",
    "mix": "mix.exs",
}
_NGINX_VALUE: Final = {
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
_PROXY_VALUE: Final = {
    "keepalive": (r"[0-9]{1,6}", "1024, or 0 for a new connection for each request"),
    "timeout": (r"[0-9]{1,6}(ms|s|m)?", "60s"),
    "failures": (r"pass|answer", "pass, or answer"),
}
_KNOWN_VALUES: Final = {"nginx": _NGINX_VALUE, "fault-proxy": _PROXY_VALUE}


def service(fields: Fields, node: Tree, at: At) -> Service:
    """A service of a case; names of the testbed are still open."""
    name, use = at.name, fields.get("use", "process")
    fields.pop("when", None)
    fields.pop("variants", None)
    _check_fits(name, use, fields, node, at)
    home = Path(at.folder) / fields.get("dir", ".")
    if "dir" in fields and not home.is_dir():
        message = f"service {name}: there is no folder {fields['dir']!r}"
        at.fault_of(node, "dir", message, f"make {home}")
    if "build" in fields:
        _check_build(fields["build"], home, node, at)
    if "settings" in fields:
        fields["settings"] = tuple(fields["settings"].items())
        for key, value in fields["settings"] if use in BALANCER_SETTINGS else ():
            _check_setting(use, key, value, node, at)
    if use == "fault-proxy":
        ports, scrape = fields.get("ports", ("http",)), fields.get("scrape", Scrape())
        fields["ports"] = ports if METRICS_PORT in ports else (*ports, METRICS_PORT)
        fields["scrape"] = replace(scrape, port=scrape.port or METRICS_PORT)
        fields.setdefault("faults", ProxyFaults())
    else:
        fields.pop("faults", None)
    return Service(**{**fields, "name": name, "env": tuple(fields.get("env", {}).items())})


def _check_fits(name: str, use: Use, fields: Fields, node: Tree, at: At) -> None:
    """A part of some kind has the keys that it needs and none that mean nothing to it."""
    for key, uses in _ONLY_OF.items():
        if fields.get(key) and use not in uses:
            message = f"service {name}: {key} means nothing to use: {use}"
            at.fault(node.line, message, f"remove it, or use: {' or '.join(uses)}")
    if use == "process" and "start" not in node.items:
        at.fault(node.line, f"service {name} without start", "start: the command that runs it")
    if use == "prometheus" and "scrape" in node.items:
        at.fault_of(node, "scrape", f"service {name}: Prometheus is not scraped here", "remove scrape")
    if use in BALANCER_SETTINGS and not fields.get("over"):
        at.fault(node.line, f"service {name} stands before nothing", "over: the name of a service")
    if use != "process" and fields.get("replicas", 1) != 1:
        at.fault_of(node, "replicas", f"service {name}: there is one {use}", "remove replicas")


def _check_build(build: Build, home: Path, node: Tree, at: At) -> None:
    if build.kind != "run" and home.is_dir() and not (home / build.spec).is_file():
        part = node.items["build"]
        assert isinstance(part, Tree)
        message = f"there is no file {build.spec!r} in {home.name}"
        at.of(node, "build").fault_of(part, build.kind, message, _BUILD_FILES[build.kind])


def _check_setting(use: Use, key: str, value: str, node: Tree, at: At) -> None:
    """Flag unknown settings of a balancer; a database checks its own."""
    settings, below = node.items["settings"], at.of(node, "settings")
    assert isinstance(settings, Tree)
    if key not in BALANCER_SETTINGS[use]:
        message = f"{use} has no setting {key!r} here"
        below.fault_of(settings, key, message, ", ".join(BALANCER_SETTINGS[use]))
        return
    pattern, example = _KNOWN_VALUES[use][key]
    if not re.fullmatch(pattern, value):
        below.fault_of(settings, key, f"setting {key} cannot be {value!r}", example)


def build(fields: Fields, node: Tree, at: At) -> Build:
    """Return the environment of a service, by the one key that describes it."""
    kind = next((kind for kind in _BUILD_FILES if kind in node.items), "run")
    return Build(kind, fields.get(kind, ""), fields.get("debian", ()))  # type: ignore[arg-type]  # one of its keys


def server_times(fields: Fields, node: Tree, at: At) -> ServerTimes:
    """The file where a service logs its response times, and the keys of its lines."""
    return ServerTimes(fields["file"], **fields["json"])


def tls(fields: Fields, node: Tree, at: At) -> Tls:
    """Return the TLS settings of connections to the entry."""
    if "key" in node.items and "cert" not in node.items:
        at.fault_of(node, "key", "a key without its certificate", "cert: client.pem")
    for name, key, what in (
        ("ca", "ca", "CERTIFICATE"),
        ("certificate", "cert", "CERTIFICATE"),
        ("key", "key", "PRIVATE KEY"),
    ):
        if name in fields:
            fields[name] = _pem(fields[name], what, node, key, at)
    return Tls(**fields)


def _pem(file: str, what: str, node: Tree, key: str, at: At) -> PemFile | None:
    """A file by its digest; the engine reads its content, which no record holds."""
    path = Path(at.folder) / file
    if path.exists() and not path.is_file():
        at.fault_of(node, key, f"{path.name!r} is no regular file", "a copy of it in a file")
        return None
    try:
        with path.open("rb") as stream:
            content = stream.read(_MOST_PEM_BYTES)
    except OSError as error:
        at.fault_of(node, key, f"{path.name!r} cannot be read: {error.strerror}", f"make {path}")
        return None
    if b"-----BEGIN " not in content or f"{what}-----".encode() not in content:
        message = f"no {what.lower()} in PEM form in {path.name!r}"
        at.fault_of(node, key, message, f"a file with a line '-----BEGIN {what}-----'")
        return None
    return PemFile(str(path), hashlib.sha256(content).hexdigest())


# ---------------------------------------------------------------------------- all services of a case together


def together(
    made: Mapping[str, Service], nodes: Tree, entry: Entry, study: Tree, at: At
) -> tuple[Service, ...]:
    """The services of a case as they depend on each other.

    Args:
        made: Those that the case has.
        nodes: Every service of the study, as written.
        entry: What the load asks.
        study: The study, as written.
        at: The place of the services.
    """
    scraped = tuple(name for name, service in made.items() if service.scrape is not None)
    services = dict(made)
    for name, service in made.items():
        node = nodes.items[name]
        assert isinstance(node, Tree)
        if service.use == "prometheus":
            unscraped = [over for over in service.over if over in nodes.items and over not in scraped]
            if unscraped:
                message = f"{unscraped[0]} has no metrics to scrape"
                at.below(name).fault_of(node, "over", message, "scrape: {}")
            elif not service.over and not scraped:
                message = f"service {name} has nothing to scrape"
                at.below(name).fault(node.line, message, "scrape: {} of a service")
            services[name] = replace(service, over=service.over or scraped)
        for other in (*service.after, *services[name].over):
            if other in nodes.items and other not in made:
                message = f"service {name} needs {other}, which this case does not have"
                at.below(name).fault(node.line, message, f"a `when` for {name} too")
    secured = study.items.get("tls")
    if isinstance(secured, Tree) and entry.service in services and entry.tls is not None:
        services[entry.service] = _secured(services, entry, secured, replace(at, key="tls"))
    return tuple(services.values())


def _secured(services: Mapping[str, Service], entry: Entry, node: Tree, at: At) -> Service:
    """The entry's service: what the lab asks of the entry's port it asks over TLS, as the load does.

    A port speaks TLS or does not, so the others are asked over plain HTTP.
    """
    service = services[str(entry.service)]
    if service.use != "process":
        message = f"a {service.use} speaks no TLS here, and {service.name} is the entry"
        at.fault(node.line, message, "remove tls, or the port of a process as entry")
        return service
    first = service.ports[0] if service.ports else None
    port, ready, scrape = entry.port or first, service.ready, service.scrape
    if ready is not None and (ready.port or first) == port:
        ready = replace(ready, tls=entry.tls)
    if scrape is not None and (scrape.port or first) == port:
        scrape = replace(scrape, tls=entry.tls)
        for server in services.values():  # Prometheus runs as a user who may not read a private key
            if server.use == "prometheus" and service.name in server.over and "cert" in node.items:
                message = f"{server.name} scrapes {service.name} and can show no client certificate"
                hint = "scrape: {port: NAME} with a port without TLS, or no prometheus"
                at.fault_of(node, "cert", message, hint)
    return replace(service, ready=ready, scrape=scrape)
