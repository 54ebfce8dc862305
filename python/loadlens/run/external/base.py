"""Interface of a driver: its unsupported features, its command line, and its report.

A driver's figures are its own: they are not corrected here, unless its own adjustment can be undone exactly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from loadlens.credentials import Hiding
from loadlens.model.external_load import CannotDo
from loadlens.model.workload import Closed, Plan, Step, Stream
from loadlens.units import NS_PER_S

QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from sending to the last byte, as a driver reported them; None: not reported."""

    count: int
    censored: int = 0  # answered, but left out of the rest because they took too long
    mean: float | None = None
    deviation: float | None = None
    least: float | None = None
    most: float | None = None
    quantiles: Mapping[str, float] = field(default_factory=dict)  # by the names of QUANTILES
    # Rounding steps of the reported values in seconds, by value: `mean`, `stdev`, `min`, `max`, `quantiles`.
    # A value without an entry is not rounded.
    rounding: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as a driver reported it."""

    sent_s: float  # since the load began
    seconds: float  # from then to the last byte, or to the failure
    status: int  # 0: no answer
    body_bytes: int  # decoded
    is_failed: bool = False  # no complete answer


@dataclass(frozen=True, slots=True)
class ToolReport:
    """A driver's report of a load; None: not reported."""

    seconds: float
    answered: int
    unexpected_status: int | None  # of the answered: below 200 or above 399
    failed: int  # no complete answer
    errors: Mapping[str, int]  # by the driver's own message
    times: Times | None
    statuses: Mapping[str, int] | None = None
    bytes_out: int | None = None
    bytes_in: int | None = None  # heads included
    bytes_in_bodies: int | None = None
    in_flight: int | None = None  # sent and given up at the end
    notes: tuple[str, ...] = ()  # caveats about its figures
    began_s: float | None = None  # when its first request was sent, by CLOCK_MONOTONIC
    requests: Sequence[Request] | None = None  # every request that ended


@dataclass(frozen=True, slots=True)
class Printed:
    """Output of a driver."""

    stdout: str
    folder: Path  # with the files that it wrote


@dataclass(frozen=True, slots=True)
class Work:
    """View of a plan for tools that can only repeat one request with a number of users."""

    plan: Plan

    @property
    def stream(self) -> Stream:
        """The load."""
        return self.plan.streams[0]

    @property
    def step(self) -> Step:
        """The single request."""
        return self.stream.scenarios[0].steps[0]

    @property
    def users(self) -> int:
        """Number of concurrent connections."""
        workload = self.stream.workload
        return workload.users if isinstance(workload, Closed) else workload.max_in_flight

    @property
    def requests(self) -> int | None:
        """Number of requests that ends the load; None if time ends it."""
        return self.stream.workload.requests

    @property
    def leaves_users_idle(self) -> bool:
        """True if the load ends before every user has sent a request."""
        return self.requests is not None and self.requests < self.users

    @property
    def url(self) -> str:
        """URL of the request."""
        return self.stream.target.origin + self.step.path

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Headers of the request, with the content type that our engine gives a JSON body."""
        headers = self.step.headers
        if self.step.body.kind != "json" or any(name.lower() == "content-type" for name, _ in headers):
            return headers
        return (*headers, ("Content-Type", "application/json"))

    @property
    def body(self) -> bytes:
        """Body without templates, as our engine would send it."""
        body = self.step.body
        if body.kind == "file":
            return Path(body.path or "").read_bytes()
        if body.kind == "json":
            return json.dumps(body.value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        return (body.text or "").encode()

    def body_file(self, folder: Path) -> Path:
        """Write the body, which may be empty, to a file."""
        file = folder / "body"
        file.write_bytes(self.body)
        return file


@dataclass(frozen=True, slots=True)
class Driver:
    """One external load generator."""

    name: str  # also the program
    install: str  # the command that installs it
    version: tuple[str, ...]  # command that prints its version on the first line; empty: none
    lacks: Callable[[Work], Iterator[CannotDo]]  # features that it lacks, beyond `common_faults`
    words: Callable[[Work, Path], list[str]]  # its command line; the folder is for its files
    report: Callable[[Printed, Work], ToolReport]  # ValueError: unexpected output
    # Parts of a request that it takes as arguments, which every account of the machine can read (`ps`).
    shows: frozenset[Literal["headers", "url"]] = frozenset()

    def faults(self, plan: Plan, hide: Sequence[str] = ()) -> list[CannotDo]:
        """List everything in a plan that the driver does not support; `hide` names further credentials."""
        work = Work(plan)
        return [*common_faults(work, self.name), *self.lacks(work), *self._shown(work, Hiding(hide))]

    def _shown(self, work: Work, hiding: Hiding) -> Iterator[CannotDo]:
        shown = [name for name, _ in work.headers if "headers" in self.shows and hiding.is_header(name)]
        if "url" in self.shows and hiding.text(work.url) != work.url:
            shown.append("the query")
        if shown:
            words = f"{self.name} would show {' and '.join(shown)} to everyone who lists processes (`ps`)"
            yield CannotDo("secrets", f"{words}: wrk, k6 and locust read them from a file")

    def command(self, plan: Plan, folder: Path) -> list[str]:
        """Return the command line for a plan without faults; `folder` is for the driver's files."""
        return self.words(Work(plan), folder)

    def read(self, printed: Printed, plan: Plan) -> ToolReport:
        """Read its report; raise ValueError for unexpected output."""
        return self.report(printed, Work(plan))


def seconds(ns: int) -> int:
    """Return whole seconds."""
    return ns // NS_PER_S


def common_faults(work: Work, name: str) -> Iterator[CannotDo]:
    """Yield everything beyond one request repeated in a closed loop."""
    yield from _more_than_one_request(work, name)
    yield from _more_than_users_at_it(work, name)
    plan, stream, step = work.plan, work.stream, work.step
    if plan.warmup_ns:
        yield CannotDo("warmup", f"{name} knows no warm-up")
    if plan.feeds or _has_templates(step):
        yield CannotDo("templates", f"{name} fills no {{{{...}}}}")
    if step.checks:
        yield CannotDo("checks", f"{name} checks no answers")
    if step.expect:
        yield CannotDo("expect", f"{name} checks no answers for the statuses of the study")
    if step.auth is not None:
        yield CannotDo("auth", f"{name} takes no secrets from the environment")
    if stream.cookies == "keep":
        yield CannotDo("cookies", f"{name} keeps no cookies")
    if stream.connection.reuse == "requests":
        yield CannotDo("connection", f"{name} keeps connections or makes a new one for each request")
    if stream.connection.pool is not None:
        yield CannotDo("connections", f"{name} gives each user a connection and has no pool of them")
    tls = stream.target.tls
    if tls is not None and not tls.insecure:
        yield CannotDo("tls", f"{name} verifies no certificates, so ask for none to be verified: insecure")
    if tls is not None and (tls.ca or tls.certificate or tls.server_name or not tls.resume):
        yield CannotDo("tls", f"{name}'s TLS has no settings here")


def _more_than_one_request(work: Work, name: str) -> Iterator[CannotDo]:
    stream = work.stream
    if len(work.plan.streams) > 1:
        yield CannotDo("probes", f"{name} sends no probes alongside its load")
    scenario = stream.scenarios[0]
    if len(stream.scenarios) > 1 or len(scenario.steps) > 1 or scenario.groups:
        yield CannotDo("mix", f"{name} asks one request over and over: one scenario of one step")
    elif scenario.steps[0].extract:
        yield CannotDo("mix", f"{name} extracts no values from answers")


def _more_than_users_at_it(work: Work, name: str) -> Iterator[CannotDo]:
    workload = work.stream.workload
    if not isinstance(workload, Closed):
        yield CannotDo("rate", f"{name} keeps no rate and no due times")
        return
    if workload.profile is not None or workload.ramp_ns:
        yield CannotDo("shape", f"{name} keeps one level of load")
    if workload.pace is not None or workload.think.kind != "none" or work.step.think.kind != "none":
        yield CannotDo("pauses", f"{name}'s users neither think nor keep a pace")
    if workload.iterations is not None:
        yield CannotDo("iterations", f"{name} counts no iterations of single users")


def whole_seconds(work: Work, name: str) -> Iterator[CannotDo]:
    """Yield the times that are not whole seconds."""
    duration_ns, timeout_ns = work.plan.duration_ns, work.stream.timeout_ns
    if duration_ns is not None and (duration_ns % NS_PER_S or duration_ns < NS_PER_S):
        yield CannotDo("duration", f"{name} counts its duration in whole seconds")
    if timeout_ns % NS_PER_S or timeout_ns < NS_PER_S:
        yield CannotDo("timeout", f"{name} counts its time-out in whole seconds")


def number_or_time(work: Work, name: str) -> Iterator[CannotDo]:
    """Yield a fault if the plan ends by requests and by time, for a tool that supports only one."""
    if work.requests is not None and work.plan.duration_ns is not None:
        words = f"{name} ends by its number of requests or by time, not by whichever is first"
        yield CannotDo("requests", words)


def written(printed: Printed, name: str, *, otherwise: str = "it ended before its report") -> Any:
    """Read the JSON report that a driver wrote at its end.

    Args:
        printed: Output of the driver.
        name: Name of the file.
        otherwise: Message if the file does not exist.

    Raises:
        ValueError: The file does not exist, or is not JSON.
    """
    file = printed.folder / name
    if not file.is_file():
        raise ValueError(otherwise)
    return json.loads(file.read_text())


def unexpected(statuses: Mapping[str, int]) -> int:
    """Count the answers with a status below 200 or above 399."""
    return sum(count for status, count in statuses.items() if not 200 <= int(status) < 400)


def is_text(content: bytes) -> bool:
    """True if the bytes are UTF-8."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _has_templates(step: Step) -> bool:
    texts = [step.path, step.body.text or "", *(value for _, value in step.headers)]
    texts.append(json.dumps(step.body.value, ensure_ascii=False) if step.body.kind == "json" else "")
    return any("{{" in text for text in texts)
