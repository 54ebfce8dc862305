"""The result of one load, as the engine hands it out and trial.json keeps it (docs/reference/record.md).

The load of another program has a type of its own: such programs report little of what our engine counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from loadlens.model.plain import Unreadable, read

EXTREMES: Final = ("stdev", "min", "max")  # plain numbers; other statistics are quantities


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with its 95 % interval, an open end being none; no value: `undecided` says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    undecided: str | None = None
    independent_above: float | None = None  # quantiles only


@dataclass(frozen=True, slots=True)
class Distribution:
    """Times of some requests, in seconds."""

    count: int
    censored: int
    mean: Quantity
    stdev: float | None
    min: float | None
    max: float | None
    p50: Quantity
    p75: Quantity
    p90: Quantity
    p95: Quantity
    p99: Quantity
    p999: Quantity
    independent: float | None = None
    histogram: tuple[tuple[float, int], ...] | None = None  # (upper end, count); none: not reported

    def quantity(self, name: str) -> Quantity:
        """The mean or a quantile by name: `mean`, `p99`."""
        quantity: Quantity = getattr(self, name)
        return quantity

    def value(self, statistic: str) -> float | None:
        """The value of a statistic by name: `mean`, `p99`, `max`; none: it has no such one."""
        value: Quantity | float | None = getattr(self, statistic, None)
        return value.value if isinstance(value, Quantity) else value

    @property
    def typical_s(self) -> float | None:
        """The mean; of few requests what is known of their middle; none: no answer came."""
        if not self.count:
            return None
        middle = self.mean.value if self.mean.value is not None else self.p50.value
        ends = [end for end in (self.min, self.max) if end is not None]
        return middle if middle is not None or not ends else sum(ends) / len(ends)


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """Outcomes of the requests of the whole run."""

    due: int
    issued: int
    answered: int
    ok: int
    unexpected_status: int
    check_failed: int
    failed: int
    in_flight: int
    dropped: int
    waiting: int
    skipped: int

    @property
    def bad(self) -> int:
        """Requests that ended, but not as expected."""
        return self.failed + self.unexpected_status + self.check_failed

    @property
    def ended(self) -> int:
        """Requests that were answered or failed."""
        return self.answered + self.failed


@dataclass(frozen=True, slots=True)
class EndCounts:
    """Requests that ended in a phase that is not measured."""

    answered: int
    failed: int


@dataclass(frozen=True, slots=True)
class ErrorClass:
    """Failures of one class."""

    count: int
    first_s: float
    last_s: float
    samples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FailingAnswer:
    """An answer that was not as expected: the first few of each status are kept."""

    status: int
    step: str
    at_s: float  # since t0
    head: str  # without the values of cookies
    body: str  # its beginning


@dataclass(frozen=True, slots=True)
class UsualAnswer:
    """An answer as expected: the first of each size of a step is kept, four sizes to an octave."""

    status: int
    step: str
    at_s: float  # since t0
    body_bytes: int
    body: str  # its beginning, without what may be a token


@dataclass(frozen=True, slots=True)
class Phases:
    """Parts of the service time; one that a record is too old for, or that did not occur, is none."""

    resolve: float | None = None  # once, before the start
    connect: Distribution | None = None
    tls: Distribution | None = None
    first_byte: Distribution | None = None
    last_byte: Distribution | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Answers that passed and failed one check of a step."""

    name: str
    passed: int
    failed: int
    not_judged: int
    first_s: float | None
    last_s: float | None
    samples: tuple[str, ...]

    @property
    def judged(self) -> int:
        """Answers that the check was applied to."""
        return self.passed + self.failed


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step of a stream."""

    name: str
    requests: RequestCounts
    scenario: str
    throughput_rps: Quantity
    response_time_s: Distribution
    service_time_s: Distribution
    phases_s: Phases = Phases()
    checks: tuple[CheckResult, ...] = ()  # absent in older records


@dataclass(frozen=True, slots=True)
class GroupRuns:
    """Outcomes of the runs of a group."""

    due: int
    completed: int
    failed: int
    unfinished: int


@dataclass(frozen=True, slots=True)
class GroupResult:
    """A group of steps that has a name."""

    name: str
    scenario: str
    runs: GroupRuns
    response_time_s: Distribution
    service_time_s: Distribution


@dataclass(frozen=True, slots=True)
class ByteCounts:
    """Bytes of HTTP; none: not reported by the program that made the load."""

    out: int | None
    in_wire: int | None
    in_body: int | None


@dataclass(frozen=True, slots=True)
class ConnectionCounts:
    """Connections of a stream."""

    opened: int
    wanted: int = 0
    kept: int = 0
    closed_by_server: int = 0
    closed_by_client: int = 0
    closed_by_error: int = 0


@dataclass(frozen=True, slots=True)
class TlsSessions:
    """Handshakes, and what they agreed on."""

    verified: bool
    full: int
    resumed: int
    sessions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LittleCheck:
    """Throughput times mean time over the integral of what was in flight."""

    ratio: float | None
    verdict: Literal["holds", "broken", "unknown"]
    edge_bound: float | None = None
    in_flight_mean: float | None = None


@dataclass(frozen=True, slots=True)
class StreamResult:
    """One stream of the engine."""

    name: str
    role: Literal["load", "probe"]
    kind: Literal["closed", "open"]
    requests: RequestCounts
    in_warmup: EndCounts
    after_end: EndCounts
    law_holds: bool
    law: str
    status: Mapping[str, int]
    errors: Mapping[str, ErrorClass]
    throughput_rps: Quantity
    response_time_s: Distribution
    service_time_s: Distribution
    lag_s: Distribution
    steps: tuple[StepResult, ...]
    bytes: ByteCounts
    little: LittleCheck
    phases_s: Phases = Phases()
    groups: tuple[GroupResult, ...] = ()  # absent in older records
    connections: ConnectionCounts | None = None
    tls: TlsSessions | None = None
    failing_answers: tuple[FailingAnswer, ...] = ()  # by status; absent in older records
    usual_answers: tuple[UsualAnswer, ...] = ()  # by step and size; absent in older records

    def errors_of(self, kinds: tuple[str, ...]) -> int:
        """Failures of some classes."""
        return sum(self.errors[kind].count for kind in kinds if kind in self.errors)


@dataclass(frozen=True, slots=True)
class Generator:
    """The generator's report on itself; none: not known, as of a program of others."""

    verdict: str | None = None  # kept_up, late, starved, limit, stood_still
    reasons: tuple[str, ...] = ()
    threads: int | None = None
    busy: float | None = None
    runq_wait: float | None = None
    stood_still_s: float | None = None  # of the measured part, the worst thread
    suspended_s: float | None = None  # the machine, in the whole run
    lag_p99_s: float | None = None
    lag_limit_s: float | None = None
    is_marked_late: bool | None = None
    requests_per_s: float | None = None
    ceiling_rps: float | None = None
    cpu_s: float | None = None


@dataclass(frozen=True, slots=True)
class Driver:
    """The program of others that made a load."""

    name: str
    tells_requests: bool  # every single one
    version: str | None = None  # none: it has no way to ask for it
    command: tuple[str, ...] = ()
    ran_s: float = 0.0
    tells_begin: bool = False
    rounding_s: Mapping[str, float] = field(default_factory=dict)  # of what it rounds before it reports it


@dataclass(frozen=True, slots=True)
class ExternalCounts:
    """Requests as another program counted them; none: it does not say."""

    answered: int
    failed: int
    ok: int | None = None
    unexpected_status: int | None = None
    in_flight: int | None = None

    @property
    def ended(self) -> int:
        """Requests that were answered or failed."""
        return self.answered + self.failed


@dataclass(frozen=True, slots=True)
class ExternalError:
    """Failures of one class, as another program counted them."""

    count: int
    samples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExternalLoad:
    """A load as reported by the program that made it."""

    name: str
    requests: ExternalCounts
    status: Mapping[str, int] | None
    errors: Mapping[str, ExternalError]  # named by its own words
    throughput_rps: Quantity
    service_time_s: Distribution | None
    bytes: ByteCounts


@dataclass(frozen=True, slots=True)
class EngineResult:
    """The result of one load."""

    status: Literal["complete", "stopped"]
    reasons: tuple[str, ...]
    warmup_s: float
    measured_s: float
    elapsed_s: float
    generator: Generator
    t0_unix_ns: int = 0
    t0_monotonic_ns: int = 0
    streams: tuple[StreamResult, ...] = ()  # none where another program made the load
    driver: Driver | None = None
    external: ExternalLoad | None = None  # with `driver`

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> EngineResult:
        """Read the result of our engine or of a driven trial.

        Raises:
            Unreadable: It is not what docs/reference/record.md describes.
        """
        if content.get("driver") is None:
            return read(cls, content)
        streams = content.get("streams")
        if not isinstance(streams, list) or len(streams) != 1:
            raise Unreadable("the one load of another program is expected", "streams")
        return read(cls, {**content, "streams": [], "external": streams[0]})

    @property
    def load(self) -> StreamResult | None:
        """The measured stream of our engine; none where another program made the load."""
        return next((stream for stream in self.streams if stream.role == "load"), None)

    @property
    def all_loads(self) -> tuple[StreamResult | ExternalLoad, ...]:
        """All streams, of our engine or of another program."""
        return self.streams if self.external is None else (self.external,)

    @property
    def load_s(self) -> float:
        """Length of the load in seconds, warm-up included."""
        return self.warmup_s + self.measured_s
