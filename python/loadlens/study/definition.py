"""A study file as read: typed, checked, its `$names` still open, every value with the line that it stands on.

`define` makes a Definition, `design` fills its names case by case. A value that may hold a `$name` is a
`Later`: what was written, where, and how the filled value becomes the type that the field promises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from loadlens.errors import DefinitionError, DefinitionErrors
from loadlens.model.profile import Leg, ReplayText
from loadlens.model.study import Edge
from loadlens.model.topology import DelayLaw, Entry, Runtime, Scalar, Use
from loadlens.model.workload import Auth, Bounds, Connection, Cookies, Think

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a study file that a person can open."""

    file: str
    line: int  # from 1
    key: str = ""  # experiments.alone.load.users

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.key}".rstrip()


@dataclass(frozen=True, slots=True)
class Name:
    """One `$name` in a text, without its dollar: `users`, `port.http`, `api.url`."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A text with names in it: literal pieces (`$$` already read as a dollar) and names, in order."""

    pieces: tuple[str | Name, ...]

    @property
    def whole_name(self) -> Name | None:
        """The name that is the whole text: its value keeps its type."""
        only = self.pieces[0] if len(self.pieces) == 1 else None
        return only if isinstance(only, Name) else None


@dataclass(frozen=True, slots=True)
class Later(Generic[T_co]):
    """A value to be filled when the study is planned."""

    written: Any  # a scalar, a Text, or lists and dicts of these
    place: Place
    convert: Callable[[Any], T_co]  # raises UnitError on a value that does not fit the key
    is_testbed: bool = False  # names of the testbed ($port, $scratch ...) may stay open in it


class Faults:
    """Faults of a study, collected so that all are shown together, each once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Place], DefinitionError] = {}

    def add(self, message: str, place: Place, hint: str | None = None) -> None:
        """Note one fault; the same one at the same place counts once."""
        self._found.setdefault((message, place), DefinitionError(message, where=str(place), hint=hint))

    def __len__(self) -> int:
        return len(self._found)

    def raise_any(self) -> None:
        """Raise what was found, in the order of the lines, file by file.

        Raises:
            DefinitionErrors: At least one fault was found.
        """
        if self._found:
            files = list(dict.fromkeys(place.file for _, place in self._found))
            in_order = sorted(self._found, key=lambda at: (files.index(at[1].file), at[1].line))
            raise DefinitionErrors([self._found[at] for at in in_order])


# ------------------------------------------------------------------------------------------------ services


@dataclass(frozen=True, slots=True)
class BuildPart:
    place: Place
    python: Later[str] | None = None
    node: Later[str] | None = None
    maven: Later[str] | None = None
    mix: Later[str] | None = None
    debian: tuple[Later[str], ...] = ()
    run: Later[str] | None = None


@dataclass(frozen=True, slots=True)
class CalibratePart:
    place: Place
    run: Later[str]
    gives: str


@dataclass(frozen=True, slots=True)
class ReadyPart:
    place: Place
    get: Later[str]
    port: Later[str] | None = None
    status: Later[int] | None = None
    within: Later[int] | None = None  # ns


@dataclass(frozen=True, slots=True)
class StopPart:
    place: Place
    signal: Later[str] | None = None
    within: Later[int] | None = None  # ns


@dataclass(frozen=True, slots=True)
class LimitsPart:
    place: Place
    cpu: Later[float] | None = None  # cores
    period: Later[int] | None = None  # ns
    memory: Later[int] | None = None  # bytes
    cpus: Later[tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class InsidePart:
    place: Place
    workers: Later[int] | None = None
    threads: Later[int] | None = None


@dataclass(frozen=True, slots=True)
class TimesKeys:
    place: Place
    path: Later[str]
    status: Later[str]
    seconds: Later[str]


@dataclass(frozen=True, slots=True)
class ServerTimesPart:
    place: Place
    file: Later[str]
    json: TimesKeys


@dataclass(frozen=True, slots=True)
class ScrapePart:
    place: Place
    get: Later[str] | None = None
    port: Later[str] | None = None
    every: Later[int] | None = None  # ns
    requests: Later[str] | None = None
    time: Later[str] | None = None
    time_in: Later[Literal["s", "ms"]] | None = None


@dataclass(frozen=True, slots=True)
class DelayPart:
    place: Place
    request: Later[DelayLaw | None] | None = None
    response: Later[DelayLaw | None] | None = None
    seed: Later[int] | None = None


@dataclass(frozen=True, slots=True)
class ResetFaultPart:
    place: Place
    share: Later[float]
    at: Later[Literal["request", "response", "body"]] | None = None
    seed: Later[int] | None = None


@dataclass(frozen=True, slots=True)
class DropPart:
    place: Place
    share: Later[float]
    seed: Later[int] | None = None


@dataclass(frozen=True, slots=True)
class ErrorsPart:
    place: Place
    share: Later[float]
    status: Later[int] | None = None
    seed: Later[int] | None = None


@dataclass(frozen=True, slots=True)
class BandwidthPart:
    place: Place
    rate: Later[int | None]  # none: not slowed down
    shared: Later[bool] | None = None
    of: Later[Literal["response", "request", "both"]] | None = None


@dataclass(frozen=True, slots=True)
class ConnectionsPart:
    place: Place
    most: Later[int | None]  # none: not bounded
    above: Later[Literal["refuse", "hold"]] | None = None


@dataclass(frozen=True, slots=True)
class AdmitPart:
    place: Place
    in_flight: Later[int | None]  # none: every request is admitted
    queue: Later[int] | None = None
    wait: Later[int] | None = None  # ns
    status: Later[int] | None = None
    retry_after: Later[int] | None = None  # ns


@dataclass(frozen=True, slots=True)
class FaultsPart:
    place: Place
    delay: DelayPart | None = None
    reset: ResetFaultPart | None = None
    drop: DropPart | None = None
    errors: ErrorsPart | None = None
    bandwidth: BandwidthPart | None = None
    connections: ConnectionsPart | None = None
    admit: AdmitPart | None = None


@dataclass(frozen=True, slots=True)
class ServicePart:
    """A service as written, or one variant of it."""

    place: Place
    start: Later[str] | None = None
    use: Later[Use] | None = None
    build: BuildPart | None = None
    calibrate: CalibratePart | None = None
    setup: Later[str] | None = None
    env: Mapping[str, Later[str]] = field(default_factory=dict)
    dir: Later[str] | None = None
    after: tuple[Later[str], ...] = ()
    replicas: Later[int] | None = None
    ports: tuple[Later[str], ...] | None = None
    ready: ReadyPart | None = None
    stop: StopPart | None = None
    limits: LimitsPart | None = None
    model: InsidePart | None = None
    server_times: ServerTimesPart | None = None
    scrape: ScrapePart | None = None
    runtime: Later[Runtime] | None = None
    needs: tuple[Later[str], ...] = ()
    variants: Mapping[str, ServicePart] = field(default_factory=dict)
    variant: str | None = None  # the one that was taken
    when: Later[bool] | None = None
    over: tuple[Later[str], ...] = ()
    policy: Later[str] | None = None
    settings: Mapping[str, Later[str]] = field(default_factory=dict)
    faults: FaultsPart | None = None


@dataclass(frozen=True, slots=True)
class ResetPart:
    place: Place
    before: Later[Literal["trial", "block"]] | None = None
    run: Later[str] | None = None
    sql: Later[str] | None = None
    files: tuple[Later[str], ...] = ()
    verify: Later[str] | None = None
    verify_sql: Later[str] | None = None
    service: Later[str] | None = None


@dataclass(frozen=True, slots=True)
class TlsPart:
    place: Place
    ca: Later[str] | None = None
    cert: Later[str] | None = None
    key: Later[str] | None = None
    servername: Later[str] | None = None
    insecure: Later[bool] | None = None
    resume: Later[bool] | None = None


# ----------------------------------------------------------------------------------------- scenarios, probes


@dataclass(frozen=True, slots=True)
class CheckPart:
    place: Place
    json: Mapping[str, Later[Any]] = field(default_factory=dict)
    exists: tuple[Later[str], ...] = ()
    absent: tuple[Later[str], ...] = ()
    number: Mapping[str, Later[Bounds]] = field(default_factory=dict)
    count: Mapping[str, Later[Bounds]] = field(default_factory=dict)
    header: Mapping[str, Later[str]] = field(default_factory=dict)
    contains: tuple[Later[str], ...] = ()
    regex: tuple[Later[str], ...] = ()
    size: Later[Bounds] | None = None
    latency: Later[int] | None = None  # ns


@dataclass(frozen=True, slots=True)
class ExtractPart:
    place: Place
    json: Later[str] | None = None
    header: Later[str] | None = None
    regex: Later[str] | None = None
    group: Later[int] | None = None


@dataclass(frozen=True, slots=True)
class StepPart:
    place: Place
    get: Later[str] | None = None
    post: Later[str] | None = None
    put: Later[str] | None = None
    patch: Later[str] | None = None
    delete: Later[str] | None = None
    name: Later[str] | None = None
    json: Later[Any] | None = None
    body: Later[str] | None = None
    file: Later[str] | None = None
    headers: Mapping[str, Later[str]] = field(default_factory=dict)
    auth: Later[Auth] | None = None
    expect: tuple[Later[int], ...] = ()
    check: CheckPart | None = None
    extract: Mapping[str, ExtractPart] = field(default_factory=dict)
    think: Later[Think] | None = None

    @property
    def request(self) -> tuple[str, Later[str]]:
        """The method and the path; `define` has seen to it that there is exactly one."""
        methods = {
            "GET": self.get,
            "POST": self.post,
            "PUT": self.put,
            "PATCH": self.patch,
            "DELETE": self.delete,
        }
        return next((method, path) for method, path in methods.items() if path is not None)


@dataclass(frozen=True, slots=True)
class GroupPart:
    """Steps that belong together; they may be repeated."""

    place: Place
    steps: tuple[StepPart | GroupPart, ...]
    group: Later[str] | None = None
    repeat: Later[int] | None = None


def steps_in(items: Iterable[StepPart | GroupPart]) -> tuple[StepPart, ...]:
    """The steps of a scenario without its groups, in order."""
    flat: list[StepPart] = []
    for item in items:
        flat += steps_in(item.steps) if isinstance(item, GroupPart) else (item,)
    return tuple(flat)


def groups_in(items: Iterable[StepPart | GroupPart]) -> tuple[GroupPart, ...]:
    """The groups of a scenario, outer before inner."""
    groups = [item for item in items if isinstance(item, GroupPart)]
    return tuple(each for group in groups for each in (group, *groups_in(group.steps)))


@dataclass(frozen=True, slots=True)
class FeedPart:
    """A file of records that templates take values from."""

    place: Place
    file: Later[str]
    format: Later[Literal["csv", "tsv", "jsonl"]] | None = None
    pick: Later[Literal["shared", "unique", "random", "user"]] | None = None
    end: Later[Literal["loop", "stop"]] | None = None


@dataclass(frozen=True, slots=True)
class ProbePart(StepPart):
    rate: Later[float] | None = None
    arrivals: Later[Literal["constant", "poisson"]] | None = None
    connection: Later[Connection] | None = None
    timeout: Later[int] | None = None  # ns
    max_in_flight: Later[int] | None = None


# ----------------------------------------------------------------------------------------------- experiments


@dataclass(frozen=True, slots=True)
class LoadPart:
    place: Place
    users: Later[int] | None = None
    think: Later[Think] | None = None
    pace: Later[Think] | None = None
    ramp: Later[int] | None = None  # ns
    stages: Later[tuple[Leg, ...]] | None = None
    steps: Later[tuple[Leg, ...]] | None = None
    bursts: Later[tuple[Leg, ...]] | None = None
    replay: Later[ReplayText] | None = None
    iterations: Later[int] | None = None
    requests: Later[int] | None = None
    duration: Later[int] | None = None  # ns
    connections: Later[int] | None = None  # a pool
    connection: Later[Connection] | None = None
    warmup: Later[int | None] | None = None  # ns; filled with none: automatic
    timeout: Later[int] | None = None  # ns
    rate: Later[float] | None = None
    arrivals: Later[Literal["constant", "poisson"]] | None = None
    max_in_flight: Later[int] | None = None
    overflow: Later[Literal["queue", "drop"]] | None = None
    cookies: Later[Cookies] | None = None
    driver: Later[str] | None = None  # of model.driving, or our own engine


@dataclass(frozen=True, slots=True)
class LevelPart:
    """One level of a factor: the name as written, and what it binds."""

    name: str
    place: Place
    binds: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class HoldOutPart:
    place: Place
    factors: Mapping[str, tuple[LevelPart, ...]]
    where: Mapping[str, tuple[LevelPart, ...]]


@dataclass(frozen=True, slots=True)
class ExperimentPart:
    """One experiment, or what the quick profile changes of it."""

    place: Place
    mix: Later[Mapping[str, float]] | None = None  # scenario -> weight
    load: LoadPart | None = None
    factors: Mapping[str, tuple[LevelPart, ...]] | None = None
    hold_out: HoldOutPart | None = None
    probes: Mapping[str, ProbePart] | None = None
    trials: Later[int] | None = None
    fresh: Later[Literal["trial", "block", "run"]] | None = None
    reset: ResetPart | None = None
    needs_cores: Later[int] | None = None


# ------------------------------------------------------------------------- what the study says of the results


@dataclass(frozen=True, slots=True)
class ObjectivePart:
    place: Place
    metric: str
    step: str | None = None
    below: Any = None  # a number in the unit of the metric (s, 1/s, a fraction) once the file is checked
    above: Any = None


@dataclass(frozen=True, slots=True)
class PublishedPart:
    place: Place
    file: str
    cores: int | None = None
    rows: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimPart:
    place: Place
    ratio: str | None = None
    rises: str | None = None
    order: str | None = None
    same: str | None = None
    experiment: str | None = None
    step: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    of: Mapping[str, str] = field(default_factory=dict)
    to: Mapping[str, str] = field(default_factory=dict)
    over: str | None = None
    across: str | None = None
    expected: tuple[str, ...] = ()
    published: float | None = None
    within: float | None = None


@dataclass(frozen=True, slots=True)
class OrderPart:
    place: Place
    by: Literal["blocks", "listed"] = "blocks"
    seed: int = 1


@dataclass(frozen=True, slots=True)
class ComparePart:
    place: Place
    metric: str = ""
    experiment: str | None = None
    step: str | None = None


@dataclass(frozen=True, slots=True)
class WindowPart:
    place: Place
    begin: Edge | None = None
    end: Edge | None = None


@dataclass(frozen=True, slots=True)
class QueryPart:
    place: Place
    expr: str
    unit: str = ""
    take: str | None = None
    step: float = 1.0  # s


@dataclass(frozen=True, slots=True)
class ReportPart:
    place: Place
    charts: tuple[str, ...] = ()
    compare: tuple[ComparePart, ...] = ()
    window: WindowPart | None = None
    promql: Mapping[str, QueryPart] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QuickPart:
    """Changes made by the quick profile."""

    place: Place
    trials: Later[int] | None = None
    params: Mapping[str, Scalar] = field(default_factory=dict)
    skip: tuple[str, ...] = ()
    experiments: Mapping[str, ExperimentPart] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Definition:
    """A whole study file."""

    place: Place  # the file itself
    study: str
    question: str
    entry: Later[Entry]
    scenarios: Mapping[str, tuple[StepPart | GroupPart, ...]]
    experiments: Mapping[str, ExperimentPart]
    folder: str = ""  # of the file, absolute
    text: str = ""  # as read
    params: Mapping[str, Scalar] = field(default_factory=dict)
    services: Mapping[str, ServicePart] = field(default_factory=dict)
    tls: TlsPart | None = None
    probes: Mapping[str, ProbePart] = field(default_factory=dict)
    feeds: Mapping[str, FeedPart] = field(default_factory=dict)
    fresh: Later[Literal["trial", "block", "run"]] | None = None
    reset: ResetPart | None = None
    trials: Later[int] | None = None
    order: OrderPart | None = None
    needs_cores: Later[int] | None = None
    auth: Later[Auth] | None = None
    objectives: tuple[ObjectivePart, ...] = ()
    published: PublishedPart | None = None
    claims: tuple[ClaimPart, ...] = ()
    report: ReportPart | None = None
    quick: QuickPart | None = None
    notes: tuple[str, ...] = ()
