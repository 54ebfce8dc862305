"""What a driver is: what it cannot do of a plan, the command that does the rest, and what it told.

A driver's figures are its own: nothing here corrects them, unless what was done to them can be taken back
exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loadlens.model.workload import Body, Closed, Plan, Step
from loadlens.units import NS_PER_S

QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from sending to the last byte, as a driver told them; none: it does not say."""

    count: int
    censored: int = 0  # answered, but left out of the rest because they took too long
    mean: float | None = None
    deviation: float | None = None
    least: float | None = None
    most: float | None = None
    quantiles: Mapping[str, float] = field(default_factory=dict)  # by the names of QUANTILES


@dataclass(frozen=True, slots=True)
class Told:
    """What a driver says of a load; none: it does not say."""

    seconds: float
    answered: int
    unexpected_status: int | None  # of the answered: below 200 or above 399
    failed: int  # not answered whole
    errors: Mapping[str, int]  # by the driver's own words
    times: Times | None
    statuses: Mapping[str, int] | None = None
    bytes_out: int | None = None
    bytes_in: int | None = None  # heads included
    bytes_in_bodies: int | None = None
    notes: tuple[str, ...] = ()  # what to know of its figures


@dataclass(frozen=True, slots=True)
class Printed:
    """What a driver left behind."""

    stdout: str
    folder: Path  # with the files that it wrote


@dataclass(frozen=True, slots=True)
class Driver:
    """One load generator of others."""

    name: str
    program: str
    install: str  # the command that installs it
    version: tuple[str, ...]  # what makes it say its version on its first line; empty: it cannot
    faults: Callable[[Plan], list[str]]  # what it cannot do of a plan; empty: it can do all of it
    command: Callable[[Plan, Path], list[str]]  # only of plans without faults; the folder is for its files
    read: Callable[[Printed, Plan], Told]  # ValueError: it did not print what it should


def step_of(plan: Plan) -> Step:
    """The one request of a plan that a driver takes."""
    return plan.streams[0].scenarios[0].steps[0]


def users_of(plan: Plan) -> int:
    """Connections at once."""
    workload = plan.streams[0].workload
    return workload.users if isinstance(workload, Closed) else workload.max_in_flight


def requests_of(plan: Plan) -> int | None:
    """How many requests end it; none: time does."""
    return plan.streams[0].workload.requests


def url_of(plan: Plan) -> str:
    """What is asked for."""
    return plan.streams[0].target.origin + step_of(plan).path


def seconds(ns: int) -> int:
    """Whole seconds."""
    return ns // NS_PER_S


def common_faults(plan: Plan, name: str) -> Iterator[str]:
    """What asks more than one request over and over in a closed loop."""
    stream, step = plan.streams[0], step_of(plan)
    workload = stream.workload
    if not isinstance(workload, Closed):
        yield f"{name} keeps no rate and no due times"
    elif workload.profile is not None or workload.ramp_ns:
        yield f"{name} keeps one level of load"
    elif workload.pace is not None or workload.think.kind != "none":
        yield f"{name}'s users neither think nor keep a pace"
    if plan.warmup_ns:
        yield f"{name} knows no warm-up"
    if plan.feeds or _has_templates(step):
        yield f"{name} fills no {{{{...}}}}"
    if step.checks or step.expect:
        yield f"{name} checks no answers"
    if step.auth is not None:
        yield f"{name} takes no secrets from the environment"
    if stream.cookies == "keep":
        yield f"{name} keeps no cookies"
    if stream.connection.reuse == "requests":
        yield f"{name} keeps connections or makes a new one for each request"
    tls = stream.target.tls
    if tls is not None and not tls.insecure:
        yield f"{name} verifies no certificates, so ask for --insecure"
    if tls is not None and (tls.ca or tls.certificate or tls.server_name or not tls.resume):
        yield f"{name}'s TLS has no settings here"


def whole_seconds(plan: Plan, name: str) -> Iterator[str]:
    """Times that do not fit a program which counts in seconds."""
    for what, ns in (("duration", plan.duration_ns), ("time-out", plan.streams[0].timeout_ns)):
        if ns is not None and (ns % NS_PER_S or ns < NS_PER_S):
            yield f"{name} counts its {what} in whole seconds"


def body_of(body: Body) -> bytes:
    """The bytes of a body without templates."""
    if body.kind == "file":
        return Path(body.path or "").read_bytes()
    return (body.text or "").encode()


def _has_templates(step: Step) -> bool:
    texts = [step.path, step.body.text or "", *(value for _, value in step.headers)]
    return any("{{" in text for text in texts)
