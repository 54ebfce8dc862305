"""What is under test: services, how they start, tell that they are ready, and what they say about themselves.

Strings may still hold names that only the testbed knows (`$host`, `$port`, `$port.NAME`, `$scratch`,
`$replica`, `$SERVICE.url`, `$SERVICE.host`, `$SERVICE.port`, and calibrated values); names of params and
factors are filled when the study is planned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Build:
    """How a service's environment is made; isolated and cached by digest."""

    kind: Literal["python", "node", "maven", "mix", "run"]
    spec: str  # python: requirements file; run: a command; others: the project file


@dataclass(frozen=True, slots=True)
class Ready:
    """A service is ready when GET `path` answers exactly `status`."""

    path: str
    port: str | None = None  # name of the port; none: the first
    status: int = 200
    within_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Stop:
    """How a service is asked to end, and how long it may take before it is killed."""

    signal: str = "TERM"
    within_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Placement and bounds of each replica; none: not limited."""

    cpu: float | None = None  # cores
    period_s: float = 0.010
    memory_bytes: int | None = None
    cpus: tuple[int, ...] | None = None  # CPU set


@dataclass(frozen=True, slots=True)
class ServerTimes:
    """A file to which the service appends one JSON object a request."""

    file: str
    path: str  # key of the request path
    status: str  # key of the status
    seconds: str  # key of the response time as the server measured it, in seconds


@dataclass(frozen=True, slots=True)
class Scrape:
    """An endpoint in the Prometheus text format."""

    path: str = "/metrics"
    port: str | None = None
    every_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Service:
    """One part of the testbed."""

    name: str
    start: str
    dir: str | None = None  # absolute, or relative to the study file's folder
    use: Literal["process"] = "process"
    build: Build | None = None
    setup: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    after: tuple[str, ...] = ()
    replicas: int = 1
    ports: tuple[str, ...] = ("http",)
    ready: Ready | None = None
    stop: Stop = Stop()
    limits: Limits = Limits()
    server_times: ServerTimes | None = None
    scrape: Scrape | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """Where the load goes: a service's port, or a URL outside (then nothing is started)."""

    service: str | None = None
    port: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """How the data are put back, and how that is verified; a failed reset invalidates the trial."""

    before: Literal["trial", "block"]
    run: str | None = None
    files: tuple[str, ...] = ()  # removed
    verify: str | None = None
    service: str | None = None  # whose folder and environment the commands run in; none: the entry's
