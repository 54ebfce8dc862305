"""The result of one load, as the engine hands it out and trial.json keeps it (docs/reference/record.md).

The load of another program has a type of its own: such programs report little of what our engine counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from loadlens.model.plain import Unreadable, read

EXTREMES: Final = ("stdev", "min", "max")  # plain numbers; other statistics are quantities
LATEST_START_S: Final = 0.1  # after the agreed moment: what a node sends later is of another load
MOST_CLOCK_ERROR_S: Final = 0.25  # the length of an interval: beyond it those of nodes do not belong together


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
class LoadChange:
    """A change of a load while it ran."""

    stream: str
    what: Literal["rate_per_s", "users"]
    old: float
    new: float
    at_ns: int  # from then on, since t0

    @property
    def words(self) -> str:
        """Describe it: `load: 100/s to 200/s from 5.000 s on`."""
        unit = "/s" if self.what == "rate_per_s" else " users"
        return f"{self.stream}: {self.old:g}{unit} to {self.new:g}{unit} from {self.at_ns / 1e9:.3f} s on"


@dataclass(frozen=True, slots=True)
class NodeStream:
    """A stream as one of several machines saw it."""

    name: str
    due: int
    ok: int
    failed: int
    throughput_rps: Quantity
    p50_s: Quantity  # of the response time, as p99
    p99_s: Quantity
    unexpected_status: int = 0  # of older records: not known
    check_failed: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """One of the machines that made a load together."""

    name: str
    host: str
    share: tuple[int, int, int]  # the parts from the first up to the second, of so many
    threads: int | None  # none: its result was not received
    status: Literal["complete", "stopped", "refused", "failed", "lost"]
    t0_unix_ns: int = 0  # by its own clock; 0: it never started
    clock_offset_ns: int = (
        0  # its monotonic clock less that of the machine that directs, in the middle of the trial
    )
    clock_error_ns: int = 0  # that the offset is off by at most
    clock_drift_ppm: float | None = None  # none: its clock was compared only once
    start_late_ns: int | None = None  # its worst thread; none: it never started
    reasons: tuple[str, ...] = ()
    generator: Generator | None = None
    streams: tuple[NodeStream, ...] = ()

    @property
    def part(self) -> float:
        """Its share of the load."""
        begin, end, of = self.share
        return (end - begin) / of

    @property
    def faults(self) -> tuple[str, ...]:
        """Reasons why the load that it took part in must not be used, although it ended."""
        faults = []
        if self.start_late_ns is not None and self.start_late_ns > LATEST_START_S * 1e9:
            faults.append(
                f"began {self.start_late_ns / 1e6:.0f} ms late, at most {LATEST_START_S * 1e3:.0f} ms"
            )
        if self.clock_error_ns > MOST_CLOCK_ERROR_S * 1e9:
            error, most = self.clock_error_ns / 1e6, MOST_CLOCK_ERROR_S * 1e3
            faults.append(f"its clock is known to {error:.0f} ms only, at most {most:.0f} ms")
        return tuple(f"node {self.name}: {fault}" for fault in faults)


@dataclass(frozen=True, slots=True)
class EngineResult:
    """The result of one load."""

    status: Literal["complete", "stopped", "incomplete"]
    reasons: tuple[str, ...]
    warmup_s: float
    measured_s: float
    elapsed_s: float
    generator: Generator
    t0_unix_ns: int = 0
    t0_monotonic_ns: int = 0
    start_late_ns: int | None = None  # how long after t0 the latest thread began; None: not recorded
    streams: tuple[StreamResult, ...] = ()  # none where another program made the load
    driver: Driver | None = None
    external: ExternalLoad | None = None  # with `driver`
    load_changes: tuple[LoadChange, ...] = ()  # in order; figures of the whole load then mix several levels
    nodes: tuple[Node, ...] = ()  # the machines of a fleet, in the order of their threads; none: one machine

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
    def node_faults(self) -> tuple[str, ...]:
        """Reasons why what several machines made must not be used, each with the node."""
        lost = self.reasons if self.status == "incomplete" else ()
        return (*lost, *(fault for node in self.nodes for fault in node.faults))

    @property
    def load_s(self) -> float:
        """Length of the load in seconds, warm-up included."""
        return self.warmup_s + self.measured_s
