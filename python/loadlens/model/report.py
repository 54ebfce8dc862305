"""A report as pure data: every medium is rendered from this and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from loadlens.model.finding import Absent, Figure, Finding, NotAssessed
from loadlens.model.stacks import CodeEvidence
from loadlens.model.study import ChartKind

State = Literal["ok", "caution", "bad", "unknown"]
Cell = str | int | float | None | Figure


@dataclass(frozen=True, slots=True)
class Badge:
    """One verdict in the header; word and glyph, never colour alone."""

    state: State
    text: str
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A labelled line of the first screen."""

    label: str  # "fix"
    text: str
    is_command: bool = False  # to be typed as it is


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    unit: str = ""
    align: Literal["left", "right"] = "right"
    is_mixed: bool = False  # each figure has a unit of its own


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; figures are formatted by the renderer."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as datasets; the columns of each kind are those of present/charts.py."""

    kind: ChartKind
    anchor: str
    headline: str  # the result, with a verb
    datasets: Mapping[str, tuple[Mapping[str, Any], ...]]
    options: Mapping[str, Any]  # axis titles, domains
    caption: str  # n, trials, interval, form legend
    table: Table | None = None
    entities: Mapping[str, int] | None = None  # name -> colour slot 1-6, fixed for the whole report


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One case in the matrix."""

    case: str  # slug
    figures: Mapping[str, Figure]  # metric -> figure; metrics as in Matrix.metrics
    state: State
    word: str  # "" | "invalid" | "not run" | "not judged: 2 cores" | "2.1 % failed"
    judged: bool = True


@dataclass(frozen=True, slots=True)
class Matrix:
    """Cases of one experiment: rows and columns are factor levels in study order."""

    experiment: str
    title: str
    row_factor: str  # "" when there is one row
    column_factor: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], MatrixCell]
    metrics: tuple[tuple[str, str, str], ...]  # (key, label, unit): the first is shown first
    knee_after: Mapping[str, str]  # row -> the last column before the knee


@dataclass(frozen=True, slots=True)
class ObjectiveRow:
    """One objective of the study: limit, value, interval and verdict stand on one row."""

    objective: str  # "p99 of response time, step sum"
    limit: str  # "below 30 ms"
    figure: Figure
    state: State  # ok: met; bad: missed; unknown: the interval covers the limit
    word: str  # "met" | "missed" | "undecided: the interval covers the limit"
    case: str = ""  # slug, where the study has several


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A published claim and whether our figures uphold it."""

    claim: str
    published: str
    ours: Figure
    tolerance: str
    holds: bool | None  # none: undecided or not judged
    note: str = ""


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One published figure next to ours."""

    case: str
    step: str
    metric: str
    published: float
    unit: str
    measured: Figure
    ratio: float | None
    shape: (
        str  # "agrees" | "differs" | "undecided" | "reference" | "not judged" | "not measured" | "impossible"
    )
    note: str = ""


@dataclass(frozen=True, slots=True)
class PublishedSection:
    """Our shape compared with the published one."""

    agreement: tuple[str, ...]
    claims: tuple[ClaimRow, ...]
    rows: tuple[PublishedRow, ...]


@dataclass(frozen=True, slots=True)
class PredictionRow:
    """One figure that was predicted before its case ran, and the measurement."""

    case: str  # slug
    name: str  # of the case
    metric: str
    step: str | None  # step or probe; none: the whole load
    predicted: Figure
    measured: Figure
    error: float | None  # predicted over measured, less 1; none: not measured
    state: State  # ok: inside the interval; caution: the intervals overlap; bad: outside, or made too late
    word: str  # "inside its interval" ...


@dataclass(frozen=True, slots=True)
class PredictionSection:
    """Predictions of held-out cases and their score."""

    lines: tuple[str, ...]  # the score, and what was not predicted with the reason
    rows: tuple[PredictionRow, ...]
    models: Table | None  # what each prediction rests on


@dataclass(frozen=True, slots=True)
class EffectSection:
    """Changes that the levels of each factor make against the first one."""

    lines: tuple[str, ...]  # a sentence for each
    table: Table
    chart: str | None  # anchor of the chart that shows them


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One trial in a case's detail."""

    name: str
    status: str
    position: int
    note: str
    figures: tuple[Figure, ...]  # in the order of CaseDetail.trial_columns


@dataclass(frozen=True, slots=True)
class CaseDetail:
    """Everything about one case."""

    slug: str
    name: str
    plan: str  # in words
    trial_columns: tuple[Column, ...]
    trials: tuple[TrialRow, ...]
    failures: Table | None
    charts: tuple[Chart, ...]
    log_tail: str = ""
    open: bool = False
    phases: Table | None = None  # parts of the service time
    checks: Table | None = None
    groups: Table | None = None  # runs of groups of steps
    reasons: Table | None = None  # why requests failed, and what to try
    inside: Table | None = None  # what runtimes, servers and the kernel reported
    backends: Table | None = None  # who got the requests behind a balancer
    queries: Table | None = None  # PromQL that the study asks
    proxies: Table | None = None  # what fault proxies did, by their own books
    spans: Table | None = None  # time of requests by the spans of the services
    nodes: Table | None = None  # the machines of a fleet


@dataclass(frozen=True, slots=True)
class AccountingRow:
    """Counts of requests from one source, and the explanation of a difference."""

    source: str
    sent: int | None
    expected_low: int | None
    expected_high: int | None
    observed: int | None
    difference: int | None
    explained_by: str
    state: State


@dataclass(frozen=True, slots=True)
class FlameBar:
    """A function within its callers, or the state of a thread below them."""

    depth: int  # from 0, at the outermost
    begin: float  # share of all samples to its left
    width: float  # its own share
    name: str
    place: str  # "orders.py:41" of own code, the module of a library; empty: a state
    is_own: bool
    samples: int
    change: float | None  # of its share from the lightest level to this one; none: that was not sampled


@dataclass(frozen=True, slots=True)
class Flame:
    """Samples of the threads at work at the highest level, merged from the outside in."""

    bars: tuple[FlameBar, ...]
    samples: int
    load: str  # "8 users"
    light: str  # the lightest level; empty: not sampled


@dataclass(frozen=True, slots=True)
class Report:
    """The whole answer."""

    schema_version: int
    study: str
    question: str
    answer: tuple[str, ...]  # the headline, then what follows from it; with numbers
    badges: tuple[Badge, ...]
    conditions: tuple[str, ...]
    findings: tuple[Finding, ...]  # ordered: impact, then grade
    absent: tuple[Absent, ...]
    not_assessed: tuple[NotAssessed, ...]
    matrices: tuple[Matrix, ...]
    published: PublishedSection | None
    charts: tuple[Chart, ...]
    details: tuple[CaseDetail, ...]
    accounting: tuple[AccountingRow, ...]
    environment: tuple[tuple[str, str], ...]
    environment_differences: tuple[str, ...]
    limits: tuple[str, ...]  # thinned, not watched, not identifiable, assumptions
    commands: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]
    digests: tuple[tuple[str, str], ...]
    record_digest: str
    objectives: tuple[ObjectiveRow, ...] = ()
    setup: Table | None = None  # variant and place of each part of the testbed
    predictions: PredictionSection | None = None  # of held-out cases
    effects: EffectSection | None = None  # of factors other than the load
    lines: tuple[Line, ...] = ()  # of the first screen: capacity, fix, gain, who waits, how sure, next
    pictures: tuple[str, ...] = ()  # anchors of the charts on the first screen
    code: CodeEvidence = field(default_factory=CodeEvidence)
    flame: Flame | None = None
