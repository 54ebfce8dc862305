"""A study as planned: experiments, cases with every `$name` of theirs filled, trials in order.

`study/parse` reads the file, `study/plan` makes the cases and the order of their trials.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from loadlens.model.topology import Entry, Outside, Reset, Scalar, Service
from loadlens.model.workload import KEPT_ROWS, Closed, Connection, Cookies, Feed, Open, Scenario
from loadlens.units import scalar

ChartKind = Literal[
    "load_curve",  # C1
    "quantiles",  # C2
    "heat",  # C3
    "resources",  # C4
    "density",  # C5
    "published",  # C6
    "bystander",  # C7
    "demand",  # C8
    "comparison",  # C9
    "predicted",  # C10
]
QUESTION: Final = "How does {} respond to load?"  # of a study that asks none of its own
TIMES: Final = ("response_time", "service_time", "server_time", "first_byte", "last_byte", "connect", "tls")
STATISTICS: Final = ("mean", "p50", "p75", "p90", "p95", "p99", "p999")
EXTREMES: Final = ("stdev", "min", "max")  # of response_time and service_time only
UNSUCCESSFUL: Final = "unsuccessful.share"
# What objectives and claims can speak of; `measure.metrics` answers each of them.
METRICS: Final = (
    *(f"{time}.{statistic}" for time in TIMES for statistic in STATISTICS),
    *(f"{time}.{statistic}" for time in TIMES[:2] for statistic in EXTREMES),
    "throughput",
    "failed.share",  # of the ended requests, those without a whole answer
    "unexpected.share",  # of the answered requests, those with an unexpected status
    UNSUCCESSFUL,  # of the ended requests, those without a whole answer of an expected status
    "ab_failed.share",  # of the ended requests, those that ApacheBench would call failed
    "body_bytes.mean",  # of the answers, decoded
    "body_bytes.max",
    "load.elapsed",  # of the load, from its first request to its last answer
    "load.answers",  # that came in it
    "load.time_per_answer",  # the one by the other: the load's length for each answer
    "load.received_bytes",  # in it, heads and framing included
    "load.received_rate",
)
# What a report can put side by side: a metric, or the quantiles of one of these times.
COMPARED: Final = (*TIMES[:2], *METRICS)


# Columns of published figures that are no factor.
FIGURE_COLUMNS: Final = frozenset(("experiment", "step", "metric", "side", "value", "unit", "note"))
_SECONDS_PER_UNIT: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0}

# Purpose of a case: `load` is a level of a load curve, `look` an unloaded baseline, `dense` looks for pauses,
# `stacks` samples the threads of the services and gives no figures, `rate` tries a rate against objectives.
Purpose = Literal["load", "look", "dense", "stacks", "rate"]

TAKES: Final = ("last", "mean", "max", "min")


@dataclass(frozen=True, slots=True)
class Edge:
    """A place in the measured part: so many seconds after its beginning, or a share of it."""

    seconds: float | None = None
    share: float | None = None

    def of(self, length_s: float) -> float:
        """Seconds from the beginning of a part of this length."""
        return self.share * length_s if self.share is not None else float(self.seconds or 0.0)


@dataclass(frozen=True, slots=True)
class Window:
    """The part of each trial that figures are taken from; none: that edge of the measured part."""

    begin: Edge | None = None
    end: Edge | None = None

    def of(self, begin_s: float, end_s: float) -> tuple[float, float]:
        """Its edges in a trial whose measured part has these."""
        length = end_s - begin_s
        begin = begin_s if self.begin is None else begin_s + self.begin.of(length)
        return begin, end_s if self.end is None else min(end_s, begin_s + self.end.of(length))


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression that the report answers for each trial."""

    name: str
    expression: str
    unit: str = ""
    take: str = "mean"  # one of TAKES
    step_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a factor: its name and the params that it binds."""

    factor: str
    name: str  # "5", "threads"
    binds: tuple[tuple[str, Scalar], ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """A thin open stream alongside the load."""

    name: str
    scenario: Scenario
    workload: Open
    connection: Connection
    timeout_ns: int


@dataclass(frozen=True, slots=True)
class Objective:
    """A limit on a metric; exit 99 when it is missed."""

    metric: str  # such as response_time.p99, failed.share
    step: str | None
    below: float | None = None
    above: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of an experiment, ready to run: only names of the testbed are still open."""

    name: str  # "alone workers=1 users=5"
    slug: str  # a folder name, unique in the study
    experiment: str
    levels: tuple[Level, ...]
    params: tuple[tuple[str, Scalar], ...]  # every $name with the value that it has in this case
    services: tuple[Service, ...]
    entry: Entry
    scenarios: tuple[Scenario, ...]
    workload: Closed | Open
    connection: Connection
    timeout_ns: int
    warmup_ns: int | None  # none: automatic
    duration_ns: int | None  # none: until the requests are done
    probes: tuple[Probe, ...]
    fresh: Literal["trial", "block", "run"]
    reset: Reset | None
    trials: int
    held_out: bool = False
    needs_cores: int | None = None  # on a machine with fewer it is shown, not judged
    feeds: tuple[Feed, ...] = ()  # those that its requests use
    cookies: Cookies = "iteration"
    outside: Outside | None = None  # what flags say is at the entry's URL
    purpose: Purpose = "load"
    driver: str | None = None  # the program of others that makes the load (`model.driving`); none: our engine

    @property
    def requests(self) -> float:
        """Requests of an iteration, the mean over the mix."""
        return self._mean([float(scenario.requests) for scenario in self.scenarios]) or 1.0

    @property
    def pause_s(self) -> float:
        """Mean pause between the steps of an iteration, in seconds."""
        return self._mean([scenario.pause_s for scenario in self.scenarios])

    def _mean(self, values: Sequence[float]) -> float:
        weights = [scenario.weight for scenario in self.scenarios]
        total = sum(weight * value for weight, value in zip(weights, values, strict=True))
        return total / (sum(weights) or 1.0)

    def has(self, levels: Mapping[str, str]) -> bool:
        """True if factors and params of the case have these levels and values."""
        own = {name: str(value) for name, value in self.params}
        own |= {level.factor: level.name for level in self.levels}
        return all(own.get(name) == text for name, text in levels.items())

    def is_of(self, row: Mapping[str, str]) -> bool:
        """True if a row of published figures is about this case; none is about a held-out one."""
        levels = {name: text for name, text in row.items() if name not in FIGURE_COLUMNS and text}
        return row["experiment"] == self.experiment and not self.held_out and self.has(levels)


def draw(seed: int, *purpose: str) -> int:
    """Return a number below 2^53 that follows from the seed and what it is for.

    From a digest and not from a generator, so that one more case leaves the numbers of the others alone.
    """
    digest = hashlib.sha256("/".join([str(seed), *purpose]).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 11


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """One trial to run."""

    case: Case
    block: int  # from 1
    position: int  # from 1, in the order of the whole run
    seed: int

    @property
    def name(self) -> str:
        """The trial's folder name."""
        return f"block-{self.block}"


@dataclass(frozen=True, slots=True)
class QuotedFigure:
    """A published figure."""

    metric: str
    value: float
    experiment: str = ""  # empty: any
    step: str = ""  # empty: the whole load
    side: str = ""  # "server": as the server measured it
    unit: str = ""
    note: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)  # of factors, or values of params

    @classmethod
    def of(cls, row: Mapping[str, str]) -> QuotedFigure:
        """Read a row of the CSV file."""
        levels = {name: text for name, text in row.items() if name not in FIGURE_COLUMNS and text}
        texts = {name: text for name, text in row.items() if name in FIGURE_COLUMNS and name != "value"}
        return cls(value=float(row["value"]), levels=levels, **texts)

    @property
    def measured_metric(self) -> str:
        """The metric that it is compared with."""
        is_server = self.side == "server"
        return self.metric.replace("response_time.", "server_time.") if is_server else self.metric


@dataclass(frozen=True, slots=True)
class Published:
    """Published figures, as rows of a CSV file."""

    file: str
    cores: int | None
    rows: tuple[Mapping[str, str], ...]  # experiment, levels..., step, metric, side, value, unit, note

    @property
    def figures(self) -> tuple[QuotedFigure, ...]:
        """The rows, as the report compares them with measurements."""
        return tuple(map(QuotedFigure.of, self.rows))


def asks_nothing_more(question: str) -> bool:
    """Return true if the question is the one that a study gets which asks none."""
    before, _, after = QUESTION.partition("{}")
    return question.startswith(before) and question.endswith(after)


def seconds_of(row: Mapping[str, str]) -> float | None:
    """Return the published time of a row in seconds; none for what is no time."""
    unit, value = _SECONDS_PER_UNIT.get(row["unit"]), scalar(row["value"])
    return value * unit if unit is not None and isinstance(value, (int, float)) else None


@dataclass(frozen=True, slots=True)
class Claim:
    """A published statement about shape that the record can uphold or contradict."""

    kind: Literal["ratio", "rises", "order", "same"]
    metric: str
    step: str | None
    experiment: str
    where: tuple[tuple[str, str], ...] = ()
    of: tuple[tuple[str, str], ...] = ()
    to: tuple[tuple[str, str], ...] = ()
    over: str | None = None
    across: str | None = None
    expected: tuple[str, ...] = ()  # `is`: the levels in their published order
    published: float | None = None
    within: float | None = None  # relative tolerance, 0.3 for 30 %
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of every case of an experiment, for the report to put side by side."""

    metric: str  # one of COMPARED
    experiment: str
    step: str | None = None


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """Settings of the report: charts, comparisons, the window of the figures, PromQL."""

    charts: tuple[str, ...] = ()  # empty: all that apply
    compare: tuple[Compared, ...] = ()
    window: Window | None = None  # none: the whole measured part
    promql: tuple[Query, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetSize:
    """The machines that make the loads of a study together."""

    nodes: int
    weights: tuple[int, ...] = ()  # of each, in the order of their names; empty: equal shares


@dataclass(frozen=True, slots=True)
class Study:
    """A whole study."""

    name: str
    question: str
    folder: str  # of the study file, absolute
    text: str  # of the study file, as read
    params: tuple[tuple[str, Scalar], ...]
    cases: tuple[Case, ...]
    order_by: Literal["blocks", "listed"]
    seed: int
    published: Published | None = None
    claims: tuple[Claim, ...] = ()
    objectives: tuple[Objective, ...] = ()
    quick: bool = False
    quick_differences: tuple[str, ...] = ()  # what the quick profile changed, in words
    report: ReportSettings = ReportSettings()
    notes: tuple[str, ...] = ()
    samples: int | None = KEPT_ROWS  # rows of each stream's requests that a record keeps; None: all
    hide: tuple[str, ...] = ()  # names whose values are kept nowhere, besides those that `credentials` knows
    fleet: FleetSize | None = None  # none: any number of machines, also one
