"""Scenarios, workloads, streams, and the plan that the engine runs.

The same names as `crates/plan/src`; `Plan.to_json` is what passes the door. Times are
nanoseconds, rates are per second. Nothing here knows a study file.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Final, Literal

from loadlens.model.plain import read
from loadlens.model.profile import Profile

PLAN_SCHEMA_VERSION = 1

TRACE_HEADER: Final = "traceparent"  # W3C Trace Context
TRACE_SLOT: Final = "{{traceparent}}"

Cookies = Literal["off", "iteration", "keep"]  # how long users keep the cookies that the service sets


@dataclass(frozen=True, slots=True)
class Think:
    """A pause of a user: none, fixed, uniform or exponential."""

    kind: Literal["none", "fixed", "uniform", "exponential"] = "none"
    ns: int | None = None  # fixed
    low_ns: int | None = None  # uniform
    high_ns: int | None = None  # uniform
    mean_ns: int | None = None  # exponential

    @property
    def mean_s(self) -> float:
        """The mean pause in seconds."""
        if self.kind == "uniform":
            return ((self.low_ns or 0) + (self.high_ns or 0)) / 2e9
        return (self.ns or self.mean_ns or 0) / 1e9


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request; strings are templates."""

    kind: Literal["none", "text", "json", "file"] = "none"
    text: str | None = None
    value: Any = None  # json: any JSON value; a string that is one {{...}} keeps its JSON type
    path: str | None = None  # file
    digest: str | None = None  # file: SHA-256, hex


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a number; at least one of them is set."""

    equals: float | None = None
    above: float | None = None
    below: float | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One demand on the answer."""

    kind: Literal[
        "json", "exists", "absent", "number", "count", "header", "contains", "regex", "size", "latency"
    ]
    path: str | None = None  # json, exists, absent, number, count
    name: str | None = None  # header
    equals: Any = None  # json, header
    text: str | None = None  # contains
    pattern: str | None = None  # regex
    bounds: Bounds | None = None  # number, count, size (bytes of the decoded body); `is` in the plan
    below_ns: int | None = None  # latency


@dataclass(frozen=True, slots=True)
class Source:
    """The place in a response that a value is extracted from."""

    kind: Literal["json", "header", "regex"]
    path: str | None = None  # json
    name: str | None = None  # header
    pattern: str | None = None  # regex
    group: int | None = None  # regex; none: the first group, or the whole match
    header: str | None = None  # regex; none: in the body


@dataclass(frozen=True, slots=True)
class Extract:
    """One value that later steps of the iteration use as `{{name}}`."""

    name: str
    source: Source


@dataclass(frozen=True, slots=True)
class Auth:
    """Credentials: the secret is an environment variable that only the engine reads."""

    kind: Literal["none", "basic", "bearer"]
    user: str | None = None  # basic
    password_env: str | None = None  # basic: name of the variable
    token_env: str | None = None  # bearer: name of the variable


MISSING_PAGE: Final = "a missing page"  # name of the step that requests a path which the lab made up


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a scenario."""

    name: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    auth: Auth | None = None
    body: Body = Body()
    expect: tuple[int, ...] = ()  # empty: any status from 200 to 399
    checks: tuple[Check, ...] = ()
    extract: tuple[Extract, ...] = ()
    think: Think = Think()

    @property
    def is_traced(self) -> bool:
        """True if it sends a trace context whose ids follow from the record."""
        return any(name.lower() == TRACE_HEADER and value == TRACE_SLOT for name, value in self.headers)

    @property
    def is_varied(self) -> bool:
        """True if its requests may ask for different things: a template is filled in for each."""
        headers = [value for _, value in self.headers if value != TRACE_SLOT]
        return any("{{" in part for part in (self.path, *headers, self.body.text or "", str(self.body.value)))

    def traced(self) -> Step:
        """Return the step with a trace context in its headers, unless it has one of its own."""
        if any(name.lower() == TRACE_HEADER for name, _ in self.headers):
            return self
        return replace(self, headers=(*self.headers, (TRACE_HEADER, TRACE_SLOT)))


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring steps of a scenario that belong together; they may be repeated."""

    name: str  # empty: it only repeats
    first: int  # index of its first step in the scenario
    steps: int  # how many, those of inner groups included
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class Scenario:
    """Steps that one user does in order."""

    name: str
    weight: float
    steps: tuple[Step, ...]
    groups: tuple[Group, ...] = ()  # in the order of their first steps, outer before inner

    @property
    def visits(self) -> tuple[int, ...]:
        """Times that each step is due in one iteration: the product of the repeats around it."""
        return visits(len(self.steps), [(g.first, g.steps, g.repeat) for g in self.groups])

    @property
    def requests(self) -> int:
        """Requests of one iteration."""
        return sum(self.visits)

    def traced(self) -> Scenario:
        """Return the scenario with a trace context in every request."""
        return replace(self, steps=tuple(step.traced() for step in self.steps))

    @property
    def pause_s(self) -> float:
        """Mean pauses after the steps of one iteration, in seconds; none comes after the last."""
        pauses = sum(times * step.think.mean_s for times, step in zip(self.visits, self.steps, strict=True))
        return pauses - self.steps[-1].think.mean_s if self.steps else 0.0


def visits(steps: int, groups: Iterable[tuple[int, int, int]]) -> tuple[int, ...]:
    """Return the times that each step is due in one iteration, given (first, steps, repeat) of the groups."""
    times = [1] * steps
    for first, length, repeat in groups:
        times[first : first + length] = [repeat * each for each in times[first : first + length]]
    return tuple(times)


@dataclass(frozen=True, slots=True)
class PemFile:
    """A file of certificates or a key, of which no plan and no record holds the content."""

    path: str
    digest: str  # SHA-256, hex


@dataclass(frozen=True, slots=True)
class Tls:
    """Settings of TLS 1.2 or 1.3; http/1.1 is offered by ALPN."""

    server_name: str | None = None  # asked for (SNI) and verified; none: the target's host
    ca: PemFile | None = None  # none: what the operating system trusts
    certificate: PemFile | None = None  # the client's, with its chain
    key: PemFile | None = None  # none: it stands in the file of the certificate
    insecure: bool = False  # takes any certificate of the server
    resume: bool = True  # new connections take up earlier sessions


@dataclass(frozen=True, slots=True)
class Target:
    """The address that requests go to."""

    host: str
    port: int
    authority: str
    tls: Tls | None = None  # none: plain TCP

    @property
    def origin(self) -> str:
        """Scheme and authority, as a URL begins."""
        return f"{'https' if self.tls else 'http'}://{self.authority}"


@dataclass(frozen=True, slots=True)
class Connection:
    """Use of connections: kept, new for each request, or closed after `requests`."""

    reuse: Literal["keep", "new", "requests"] = "keep"
    requests: int | None = None
    pool: int | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """Due times from a file, and what is to be known of them without it."""

    path: str
    digest: str  # SHA-256, hex
    arrivals: int
    last_ns: int
    peak_per_s: float  # the most within a second
    column: str | None = None  # a name in the first line, or a number from 1
    speed: float = 1.0
    from_first: bool = False  # whether the first time is the start


@dataclass(frozen=True, slots=True)
class Closed:
    """Users who wait for the answer, think, and ask again."""

    users: int  # at most at once
    think: Think = Think()
    ramp_ns: int = 0
    iterations: int | None = None
    requests: int | None = None
    pace: Think | None = None  # from one due time of an iteration to the next, instead of a think time
    profile: Profile | None = None  # how many users are there over time; none: all

    @property
    def is_shaped(self) -> bool:
        """True if the number of users changes after a ramp at the start."""
        return self.profile is not None

    @property
    def ends(self) -> bool:
        """True if the last user leaves before the load is ended otherwise."""
        return _ends(self.profile)


@dataclass(frozen=True, slots=True)
class Open:
    """Iterations that start at due times, whatever the server does: one of a rate, a profile and a replay."""

    rate_per_s: float | None = None
    arrivals: Literal["constant", "poisson"] = "constant"
    max_in_flight: int = 1000
    overflow: Literal["queue", "drop"] = "queue"
    requests: int | None = None
    profile: Profile | None = None
    replay: Replay | None = None

    @property
    def is_shaped(self) -> bool:
        """True if the rate changes by plan."""
        return self.rate_per_s is None

    @property
    def ends(self) -> bool:
        """True if nothing is due from some moment on."""
        return self.replay is not None or _ends(self.profile)

    @property
    def peak_per_s(self) -> float:
        """The highest rate."""
        if self.profile is not None:
            return self.profile.peak
        return self.replay.peak_per_s if self.replay is not None else self.rate_per_s or 0.0

    def due_between(self, from_s: float, until_s: float) -> float | None:
        """Iterations that are due between two moments since the start; none: only the replayed file knows.

        Of a Poisson schedule the expected number.
        """
        if self.profile is not None:
            return self.profile.integral(until_s) - self.profile.integral(from_s)
        if self.replay is not None:
            is_all = from_s <= 0 and until_s > self.replay.last_ns / 1e9
            return float(self.replay.arrivals) if is_all else None
        return (self.rate_per_s or 0.0) * (until_s - from_s)


def _ends(profile: Profile | None) -> bool:
    return profile is not None and not profile.repeats and profile.segments[-1].end == 0


LOAD: Final = "load"  # the measured stream of a case; no probe is named so


@dataclass(frozen=True, slots=True)
class Stream:
    """A mix of scenarios under one workload, with a recorder of its own."""

    name: str
    role: Literal["load", "probe"]
    target: Target
    scenarios: tuple[Scenario, ...]
    workload: Closed | Open
    connection: Connection = Connection()
    timeout_ns: int = 30_000_000_000
    cookies: Cookies = "iteration"


@dataclass(frozen=True, slots=True)
class Feed:
    """A file of records; each iteration that uses it is given one."""

    name: str
    path: str
    digest: str  # SHA-256, hex
    format: Literal["csv", "tsv", "jsonl"]
    pick: Literal["shared", "unique", "random", "user"] = "shared"
    end: Literal["loop", "stop"] = "loop"


FEED_FORMATS: Final = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


MOST_PARTS: Final = 10_000  # of a load, among all machines
KEPT_ROWS: Final = 2_000_000  # of each stream, by default; docs/adr/0071 says why


@dataclass(frozen=True, slots=True)
class RecordTo:
    """The folder that the live files go to, and the bound of the sample log."""

    dir: str
    max_sample_rows: int | None = KEPT_ROWS  # of each stream; beyond it the log is thinned; None: never
    sums: bool = False  # write sums.bin too, from which several machines' counts are merged


@dataclass(frozen=True, slots=True)
class Share:
    """The parts `begin` to `end` - 1 of `of` equal parts of a load: what one machine carries of it."""

    begin: int = 0
    end: int = 1
    of: int = 1

    @property
    def weight(self) -> float:
        """The share as a number from 0 to 1."""
        return (self.end - self.begin) / self.of


def shares_of(weights: Sequence[int]) -> tuple[Share, ...]:
    """Divide a load among machines by their weights: 2, 6 and 10 get 1, 3 and 5 parts of 9.

    Raises:
        ValueError: There is no weight, one is below 1, or they need more than 10,000 parts.
    """
    if not weights or min(weights) < 1:
        raise ValueError(f"weights are whole numbers from 1 on, got {', '.join(map(str, weights)) or 'none'}")
    smallest = math.gcd(*weights)
    ends = tuple(accumulate(weight // smallest for weight in weights))
    of = ends[-1]
    if of > MOST_PARTS:
        raise ValueError(f"the weights make {of:,} parts, at most {MOST_PARTS:,}: use smaller numbers")
    return tuple(Share(begin, end, of) for begin, end in pairwise((0, *ends)))


@dataclass(frozen=True, slots=True)
class Plan:
    """All that the engine needs."""

    seed: int
    streams: tuple[Stream, ...]
    threads: int | None = None
    cpus: tuple[int, ...] | None = None
    warmup_ns: int = 0
    duration_ns: int | None = None
    drain_ns: int = 0
    record: RecordTo | None = None
    feeds: tuple[Feed, ...] = ()
    share: Share = Share()

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Plan:
        """Read what `to_json` wrote, now or in an earlier version.

        Raises:
            Unreadable: It is no plan.
        """
        streams = [_stream_as_written(stream) for stream in content["streams"]]
        return read(cls, {**content, "share": _share_as_written(content.get("share")), "streams": streams})

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, nothing that is unset."""
        return json.dumps(_plan_as_dict(self), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def digest(self) -> str:
        """SHA-256 of the canonical JSON without the place it is recorded at, hex."""
        content = _plan_as_dict(self)
        content.pop("record", None)
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def _share_as_written(share: Mapping[str, int] | None) -> dict[str, int]:
    """A share of plan.json under the names of the fields; at first it was one part, by its index."""
    if share is None:
        return {}
    begin = share["from"] if "from" in share else share["index"]
    return {"begin": begin, "end": share.get("to", begin + 1), "of": share["of"]}


def _stream_as_written(stream: Mapping[str, Any]) -> dict[str, Any]:
    """A stream of plan.json under the names of the fields."""
    connection = stream.get("connection", {})
    reuse = connection.get("reuse", {"kind": "keep"})
    scenarios = [
        {**scenario, "steps": [_step_as_written(step) for step in scenario["steps"]]}
        for scenario in stream["scenarios"]
    ]
    return {
        **stream,
        "connection": {**connection, "reuse": reuse["kind"], "requests": reuse.get("requests")},
        "scenarios": scenarios,
    }


def _step_as_written(step: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **step,
        "checks": [{**check, "bounds": check.get("is")} for check in step.get("checks", ())],
        "extract": [{**extract, "source": extract["from"]} for extract in step.get("extract", ())],
    }


def _plan_as_dict(plan: Plan) -> dict[str, Any]:
    content: dict[str, Any] = {
        "schema_version": PLAN_SCHEMA_VERSION,
        "seed": plan.seed,
        "warmup_ns": plan.warmup_ns,
        "drain_ns": plan.drain_ns,
        "streams": [_stream_as_dict(stream) for stream in plan.streams],
    }
    if plan.share != Share():
        content["share"] = {"from": plan.share.begin, "to": plan.share.end, "of": plan.share.of}
    if plan.feeds:
        content["feeds"] = [asdict(feed) for feed in plan.feeds]
    if plan.threads is not None:
        content["threads"] = plan.threads
    if plan.cpus is not None:
        content["cpus"] = list(plan.cpus)
    if plan.duration_ns is not None:
        content["duration_ns"] = plan.duration_ns
    if plan.record is not None:
        content["record"] = asdict(plan.record)
        if not plan.record.sums:
            del content["record"]["sums"]
    return content


def _stream_as_dict(stream: Stream) -> dict[str, Any]:
    connection = stream.connection
    reuse: dict[str, Any] = {"kind": connection.reuse}
    if connection.reuse == "requests":
        reuse["requests"] = connection.requests
    workload = _set_values(stream.workload)
    workload["kind"] = "closed" if isinstance(stream.workload, Closed) else "open"
    return {
        "name": stream.name,
        "role": stream.role,
        "target": _target_as_dict(stream.target),
        "scenarios": [
            {
                "name": scenario.name,
                "weight": scenario.weight,
                "steps": [_step_as_dict(step) for step in scenario.steps],
            }
            | ({"groups": [asdict(group) for group in scenario.groups]} if scenario.groups else {})
            for scenario in stream.scenarios
        ],
        "workload": workload,
        "connection": {"reuse": reuse} | ({} if connection.pool is None else {"pool": connection.pool}),
        "timeout_ns": stream.timeout_ns,
    } | ({} if stream.cookies == "iteration" else {"cookies": stream.cookies})


def _target_as_dict(target: Target) -> dict[str, Any]:
    content: dict[str, Any] = {"host": target.host, "port": target.port, "authority": target.authority}
    return content if target.tls is None else content | {"tls": _set_values(target.tls)}


def _step_as_dict(step: Step) -> dict[str, Any]:
    body = _set_values(step.body)
    if step.body.kind == "json":
        body["value"] = step.body.value
    return {
        "name": step.name,
        "method": step.method,
        "path": step.path,
        "headers": [list(pair) for pair in step.headers],
        "body": body,
        "expect": list(step.expect),
        "checks": [_check_as_dict(check) for check in step.checks],
        "extract": [{"name": e.name, "from": _set_values(e.source)} for e in step.extract],
        "think": _set_values(step.think),
    } | ({} if step.auth is None or step.auth.kind == "none" else {"auth": _set_values(step.auth)})


def _check_as_dict(check: Check) -> dict[str, Any]:
    content = _set_values(check)
    if check.bounds is not None:
        content["is"] = content.pop("bounds")
    if check.kind in ("json", "header"):
        content["equals"] = check.equals
    return content


def _set_values(part: Any) -> dict[str, Any]:
    """The fields of a part that are set, its parts as mappings of their own."""
    return {
        name: ({k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value)
        for name, value in asdict(part).items()
        if value is not None
    }
