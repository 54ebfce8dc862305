"""The testbed: services, their start and readiness, and the metrics that they offer.

Strings may still hold names that only the testbed knows (`$host`, `$port`, `$port.NAME`, `$scratch`,
`$replica`, `$SERVICE.url`, `$SERVICE.host`, `$SERVICE.port`, and calibrated values); names of params and
factors are filled when the study is planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from loadlens.model.workload import Tls

Scalar = str | int | float | bool
BuildKind = Literal["python", "node", "maven", "mix", "run"]
Use = Literal["process", "postgres", "nginx", "fault-proxy", "prometheus"]
Runtime = Literal["node", "beam"]

BALANCING_POLICIES: Final = ("round-robin", "least-connections", "random-two", "ip-hash")
# What may be set of each kind of balancer or proxy, and how it is set otherwise.
BALANCER_SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "nginx": {
        "workers": "1",
        "keepalive": "64",  # idle connections kept to each backend by each worker; 0: one for each request
        "max_fails": "0",  # 0: a backend is never left out; nginx itself would after one failure
        "fail_timeout": "10s",
        "next_upstream": "off",  # a failed request is not tried again elsewhere: the client's count is true
        "read_timeout": "60s",
        "log": "on",  # counts and times of each backend
    },
    "fault-proxy": {
        "keepalive": "1024",  # idle connections kept to each backend; 0: one for each request
        "timeout": "60s",  # for so long the service may say nothing
        "failures": "pass",  # what the client sees of a service that fails; answer: 502 or 504
    },
}
BALANCERS: Final[tuple[Use, ...]] = ("nginx",)  # they distribute requests over replicas by a policy
PASSING: Final[tuple[Use, ...]] = (*BALANCERS, "fault-proxy")  # they pass requests on
METRICS_PORT: Final = "metrics"  # of a fault proxy: where its books are read
PROXY_PREFIX: Final = "loadlens_proxy_"  # of the names in them


@dataclass(frozen=True, slots=True)
class Build:
    """The environment of a service, made in isolation and cached by digest."""

    kind: BuildKind
    spec: str  # python: requirements file; run: a command; others: the project file
    debian: tuple[str, ...] = ()  # mix: packages of the distribution that are unpacked next to the build


@dataclass(frozen=True, slots=True)
class Calibrate:
    """A command whose last line is the value of a name, found out once a run."""

    run: str
    gives: str


@dataclass(frozen=True, slots=True)
class Ready:
    """A service is ready when GET `path` answers exactly `status`."""

    path: str
    port: str | None = None  # name of the port; none: the first
    status: int | None = 200  # none: any answer below 500
    within_s: float = 30.0
    # host and port of its own choice, given by flags; none: a port of the testbed
    address: tuple[str, int] | None = None
    tls: Tls | None = None  # none: over plain HTTP


@dataclass(frozen=True, slots=True)
class Stop:
    """The signal that ends a service, and the time that it may take before it is killed."""

    signal: str | None = None  # none: TERM, or what its kind understands
    within_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Placement and bounds of each replica; none: not limited."""

    cpu: float | None = None  # cores
    period_s: float = 0.010
    memory_bytes: int | None = None
    cpus: tuple[int, ...] | None = None  # CPU set


@dataclass(frozen=True, slots=True)
class Inside:
    """Facts that a model of a service needs and that cannot be seen from outside before it runs."""

    workers: int = 1  # of each replica: processes that take requests, each for itself
    threads: int = 0  # of each worker, that do the work of requests; 0: it is done where it was measured


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
    requests: str | None = None  # the counter of its answers, over all labels
    time: str | None = None  # the counter of the time that they took
    time_in: Literal["s", "ms"] = "s"
    tls: Tls | None = None  # none: over plain HTTP


@dataclass(frozen=True, slots=True)
class Otlp:
    """A port of this machine on which spans and logs of services are received."""

    port: int | None = None  # none: a free one


@dataclass(frozen=True, slots=True)
class DelayLaw:
    """The law of a time that a fault proxy adds; what does not belong to its kind is none."""

    kind: Literal["fixed", "uniform", "exponential", "normal", "lognormal"]
    ns: int | None = None  # fixed
    low_ns: int | None = None  # uniform
    high_ns: int | None = None  # uniform
    mean_ns: int | None = None  # exponential, normal
    sd_ns: int | None = None  # normal; a draw below 0 is 0
    median_ns: int | None = None  # lognormal
    sigma: float | None = None  # lognormal: standard deviation of the logarithm


@dataclass(frozen=True, slots=True)
class DelayFault:
    """Time added to each request."""

    request: DelayLaw | None = None  # before the request asks for admission
    response: DelayLaw | None = None  # before the first byte of the answer leaves
    seed: int = 1


@dataclass(frozen=True, slots=True)
class ResetFault:
    """Requests whose connection is reset."""

    share: float
    at: Literal["request", "response", "body"] = "request"
    seed: int = 1


@dataclass(frozen=True, slots=True)
class DropFault:
    """Requests that are read and never answered."""

    share: float
    seed: int = 1


@dataclass(frozen=True, slots=True)
class ErrorFault:
    """Requests that the proxy answers itself."""

    share: float
    status: int = 500
    seed: int = 1


@dataclass(frozen=True, slots=True)
class BandwidthFault:
    """A bound on bytes per second."""

    rate: int  # bytes a second
    shared: bool = False  # by all connections; else each has it
    of: Literal["response", "request", "both"] = "response"


@dataclass(frozen=True, slots=True)
class ConnectionsFault:
    """A bound on the number of connections."""

    most: int
    above: Literal["refuse", "hold"] = "refuse"


@dataclass(frozen=True, slots=True)
class Admission:
    """A bound on the requests that the service has at once, and the treatment of the others."""

    in_flight: int
    queue: int = 0
    wait_ns: int | None = None  # none: for ever
    status: int = 503
    retry_after_s: int = 1


@dataclass(frozen=True, slots=True)
class ProxyFaults:
    """The faults that a proxy injects; none: it does not."""

    delay: DelayFault | None = None
    reset: ResetFault | None = None
    drop: DropFault | None = None
    errors: ErrorFault | None = None
    bandwidth: BandwidthFault | None = None
    connections: ConnectionsFault | None = None
    admit: Admission | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """One part of the testbed."""

    name: str
    start: str = ""  # empty: the command of its kind
    dir: str | None = None  # absolute, or relative to the study file's folder
    use: Use = "process"
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
    otlp: Otlp | None = None  # none: its spans are not received
    runtime: Runtime | None = None  # what runs it, to be sampled from inside
    over: tuple[str, ...] = ()  # what a balancer or proxy stands before, or Prometheus scrapes: all replicas
    policy: str | None = None  # of a balancer; none: its first
    settings: tuple[tuple[str, str], ...] = ()
    faults: ProxyFaults | None = None  # of a fault proxy
    needs: tuple[str, ...] = ()  # programs that must be on the machine
    calibrate: Calibrate | None = None
    model: Inside = Inside()
    variant: str | None = None  # which of several ways to run it was taken

    def setting(self, name: str) -> str:
        """Return a setting of a balancer or proxy: the study's, or the default."""
        return dict(self.settings).get(name, BALANCER_SETTINGS[self.use][name])


@dataclass(frozen=True, slots=True)
class Peer:
    """A process of this machine that a service calls, such as a database."""

    name: str  # differs from that of every other
    pid: int
    ports: tuple[int, ...] = ()  # of TCP, that it was called at
    has_code: bool = False  # of the service, which is a proxy and passes its requests on to this program


@dataclass(frozen=True, slots=True)
class Outside:
    """A service at an address of its own, not one of the testbed's: what is known of it, to watch it by."""

    name: str
    host: str
    is_here: bool = False  # on this machine, so that its ports can be watched
    ports: tuple[tuple[str, int], ...] = ()  # by name, the one of the load first
    pids: tuple[int, ...] = ()  # processes that run already, each watched with all that it starts
    peers: tuple[Peer, ...] = ()  # watched likewise
    scrape: Scrape | None = None
    otlp: Otlp | None = None

    @property
    def port(self) -> int:
        """The port of the load; 0: not known."""
        return self.ports[0][1] if self.ports else 0


@dataclass(frozen=True, slots=True)
class Entry:
    """The target of the load: a service's port, or a URL outside (then nothing is started)."""

    service: str | None = None
    port: str | None = None
    url: str | None = None
    tls: Tls | None = None  # none: plain TCP


@dataclass(frozen=True, slots=True)
class Reset:
    """Commands that put the data back and verify it; a failed reset invalidates the trial."""

    before: Literal["trial", "block"] = "trial"
    run: str | None = None
    sql: str | None = None
    files: tuple[str, ...] = ()  # removed
    verify: str | None = None
    verify_sql: str | None = None  # answers true when the data are as they should be
    service: str | None = None  # whose folder and environment the commands run in; none: the entry's
