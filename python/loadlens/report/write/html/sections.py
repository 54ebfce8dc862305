"""What each section of the page shows, as final text: the templates only place it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loadlens.model.finding import Estimate, Figure, Finding
from loadlens.model.report import (
    Badge,
    CaseDetail,
    Chart,
    Matrix,
    MatrixCell,
    Report,
    Table,
)
from loadlens.present import numbers, tokens, words
from loadlens.present.numbers import Scale
from loadlens.report.write.cells import (
    AccountingView,
    CellView,
    PublishedView,
    accounting_view,
    figure_cell,
    head,
    metric_scale,
    predictions_table,
    published_view,
)
from loadlens.report.write.html.pictures import alternative

OPEN_FINDINGS = 3
DRAWN_CASES = 8  # details whose charts are drawn; of the others the tables stand
BIG_MATRIX = 60  # from so many cells on the value stands alone
_COMPACT_COLUMNS = 6

SECTIONS = (
    ("findings", "Findings"),
    ("cases", "Cases"),
    ("predictions", "Predictions"),
    ("published", "Published"),
    ("charts", "Charts"),
    ("details", "Per case"),
    ("accounting", "Accounting"),
    ("setup", "Set-up"),
    ("environment", "Environment"),
    ("limits", "Limits"),
    ("appendix", "Appendix"),
)


def anchor(*parts: str) -> str:
    """An id that may stand in a fragment: letters, digits and `._=,-` of the parts."""
    return "-".join(re.sub(r"[^A-Za-z0-9._=,-]+", "-", part).strip("-") or "x" for part in parts)


@dataclass(frozen=True, slots=True)
class Link:
    """Words that lead somewhere on the page, or just words."""

    text: str
    href: str | None  # "#id"


@dataclass(frozen=True, slots=True)
class BadgeView:
    """A badge with its target, if that is on the page."""

    state: str
    text: str
    href: str | None


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding with those that it explains."""

    number: int
    finding: Finding
    id: str
    is_open: bool
    chips: tuple[Link, ...]
    excluded: str  # "thread pool (CPU is full) · GC (no period)"
    not_excluded: str
    predictions: tuple[tuple[str, str, str], ...]  # what, before, after
    evidence: tuple[EvidenceRow, ...]
    explains: tuple[FindingView, ...]


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One signal in "How we know"."""

    signal: str
    text: str
    seen: str
    threshold: str
    verdict: str
    state: str


@dataclass(frozen=True, slots=True)
class MetricCell:
    """A case's figure of one metric, shaded."""

    cell: CellView
    step: int  # 1-7 of the ramp; 0: no shade
    is_predicted: bool = False


@dataclass(frozen=True, slots=True)
class CaseCell:
    """A cell of the matrix: one figure a metric, or one word for all."""

    href: str | None
    metrics: tuple[MetricCell, ...]
    word: str
    state: str
    judged: bool
    is_knee: bool
    name: str  # for a screen reader


@dataclass(frozen=True, slots=True)
class MatrixView:
    """The matrix of one experiment."""

    id: str
    matrix: Matrix
    heads: tuple[str, ...]  # "mean, ms"
    printed: tuple[int, ...]  # which metrics paper shows
    rows: tuple[tuple[str, tuple[CaseCell, ...]], ...]
    is_single: bool
    size: str  # "" | "compact" | "tiny"
    not_judged: str


@dataclass(frozen=True, slots=True)
class FigureView:
    """A chart with the places that cite it."""

    chart: Chart
    id: str
    alternative: str
    cited: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class DetailView:
    """A case with its charts, where they are drawn."""

    detail: CaseDetail
    id: str
    charts: tuple[FigureView, ...]
    not_drawn: int


@dataclass(frozen=True, slots=True)
class View:
    """The page in order."""

    nav: tuple[Link, ...]
    summary: BadgeView | None
    badges: tuple[BadgeView, ...]
    counts: str
    findings: tuple[FindingView, ...]
    matrices: tuple[MatrixView, ...]
    published: tuple[PublishedView, ...]
    charts: tuple[FigureView, ...]
    published_charts: tuple[FigureView, ...]
    details: tuple[DetailView, ...]
    accounting: tuple[AccountingView, ...]
    balances: bool
    predictions: Table | None
    objective_rows: tuple[tuple[CellView, ...], ...]


def view(report: Report) -> View:
    """Everything that the templates place."""
    ids = _ids(report)
    findings = _findings(report, ids)
    badges = tuple(_badge(badge, ids) for badge in report.badges)
    cited = _citations(findings)
    counts = {"findings": len(findings), "cases": sum(len(matrix.cells) for matrix in report.matrices)}
    nav = tuple(
        Link(f"{title} {counts[name]}" if counts.get(name) else title, f"#{name}")
        for name, title in SECTIONS
        if name in ids
    )
    return View(
        nav=nav,
        summary=_worst(badges),
        badges=badges,
        counts=words.grade_counts(
            (f.grade for f in report.findings if f.explained_by is None),
            len(report.absent),
            len(report.not_assessed),
        ),
        findings=findings,
        matrices=tuple(_matrix(matrix, i, report) for i, matrix in enumerate(report.matrices)),
        published=tuple(map(published_view, report.published.rows if report.published else ())),
        charts=tuple(_figure(c, c.anchor, cited) for c in report.charts if not _is_beside(c, report)),
        published_charts=tuple(_figure(c, c.anchor, cited) for c in report.charts if _is_beside(c, report)),
        details=_details(report, cited),
        accounting=tuple(map(accounting_view, report.accounting)),
        balances=all(row.state != "bad" for row in report.accounting),
        predictions=None if report.predictions is None else predictions_table(report.predictions),
        objective_rows=tuple(
            (CellView(row.objective), CellView(row.limit), figure_cell(row.figure, with_unit=True))
            for row in report.objectives
        ),
    )


def _is_beside(chart: Chart, report: Report) -> bool:
    """Whether the chart stands with the published figures."""
    return chart.kind == "published" and report.published is not None


def _ids(report: Report) -> set[str]:
    """Every target that a link may have on this page."""
    shown = {
        "findings": True,
        "cases": bool(report.matrices),
        "objectives": bool(report.objectives),
        "predictions": report.predictions is not None,
        "published": report.published is not None,
        "charts": any(not _is_beside(chart, report) for chart in report.charts),
        "details": bool(report.details),
        "accounting": bool(report.accounting),
        "setup": report.setup is not None,
        "environment": bool(report.environment or report.environment_differences),
        "limits": True,
        "appendix": True,
    }
    found = {name for name, is_shown in shown.items() if is_shown}
    found |= {anchor("finding", finding.rule) for finding in report.findings}
    found |= {anchor("case", detail.slug) for detail in report.details}
    found |= {anchor(chart.anchor) for chart in report.charts}
    found |= {
        anchor("case", detail.slug, chart.anchor) for detail in _drawn(report) for chart in detail.charts
    }
    return found


def _badge(badge: Badge, ids: set[str]) -> BadgeView:
    target = anchor(badge.anchor) if badge.anchor else None
    return BadgeView(badge.state, badge.text, f"#{target}" if target in ids else None)


def _worst(badges: Sequence[BadgeView]) -> BadgeView | None:
    """The badge that the bar repeats: the worst one, the first of its kind."""
    order = ("bad", "caution", "unknown", "ok")
    return min(badges, key=lambda badge: order.index(badge.state), default=None)


def _findings(report: Report, ids: set[str]) -> tuple[FindingView, ...]:
    """Roots in the report's order; what one explains is folded under it."""
    rules = {finding.rule for finding in report.findings}
    roots = [f for f in report.findings if f.explained_by is None or f.explained_by not in rules]

    def shown(finding: Finding, number: int) -> FindingView:
        explained = [f for f in report.findings if f.explained_by == finding.rule and f is not finding]
        return FindingView(
            number=number,
            finding=finding,
            id=anchor("finding", finding.rule),
            is_open=number <= OPEN_FINDINGS,
            chips=tuple(_chip(e.chip, e.chart, ids) for e in finding.evidence if e.chip),
            excluded=_rivals(finding, ruled_out=True),
            not_excluded=_rivals(finding, ruled_out=None),
            predictions=tuple(_prediction(p.words, p.before, p.after) for p in finding.predictions),
            evidence=_evidence(finding),
            explains=tuple(shown(f, 0) for f in explained if finding.explained_by is None),
        )

    return tuple(shown(finding, number) for number, finding in enumerate(roots, 1))


def _chip(text: str, chart: str | None, ids: set[str]) -> Link:
    target = anchor(chart) if chart else None
    return Link(words.cut(text, words.CHIP_LENGTH), f"#{target}" if target in ids else None)


def _rivals(finding: Finding, *, ruled_out: bool | None) -> str:
    named = [c for c in finding.counter if c.ruled_out is ruled_out]
    return " · ".join(f"{c.rival} ({c.text})" if c.text else c.rival for c in named)


def _prediction(what: str, before: Figure, after: Figure) -> tuple[str, str, str]:
    return what, numbers.show(before).with_interval, numbers.show(after).with_interval


def _evidence(finding: Finding) -> tuple[EvidenceRow, ...]:
    plain = Scale("", 1.0)
    rows = []
    for e in finding.evidence:
        seen = "not observed" if e.passed is None else "in words"
        if e.value is not None:
            seen = numbers.value(e.value, plain, low=e.low, high=e.high)
            if e.low is not None or e.high is not None:
                seen += f" ({numbers.interval(e.low, e.high, plain, point=e.value)})"
        verdict = {True: "passes", False: "does not pass", None: "not observed"}[e.passed]
        state = {True: "ok", False: "bad", None: "unknown"}[e.passed]
        threshold = "in words" if e.threshold is None else numbers.value(e.threshold, plain)
        rows.append(EvidenceRow(e.signal, e.text, seen, threshold, verdict, state))
    return tuple(rows)


def _citations(findings: Iterable[FindingView]) -> Mapping[str, tuple[Link, ...]]:
    """Which findings cite a chart, by the chart's anchor."""
    found: dict[str, list[Link]] = {}
    for shown in findings:
        for chart in dict.fromkeys(e.chart for e in shown.finding.evidence if e.chart):
            found.setdefault(chart, []).append(Link(f"finding {shown.number}", f"#{shown.id}"))
    return {chart: tuple(links) for chart, links in found.items()}


def _figure(chart: Chart, name: str, cited: Mapping[str, tuple[Link, ...]]) -> FigureView:
    return FigureView(chart, anchor(name), alternative(chart), cited.get(chart.anchor, ()))


def _drawn(report: Report) -> list[CaseDetail]:
    """The details whose charts are drawn: open ones, those that findings name, then from the first on."""
    scopes = " ".join(finding.scope for finding in report.findings)
    with_charts = [detail for detail in report.details if detail.charts]
    ranked = sorted(with_charts, key=lambda d: (not d.open, d.slug not in scopes and d.name not in scopes))
    return ranked[:DRAWN_CASES]


def _details(report: Report, cited: Mapping[str, tuple[Link, ...]]) -> tuple[DetailView, ...]:
    drawn = _drawn(report)
    found = []
    for detail in report.details:
        name = anchor("case", detail.slug)
        charts = detail.charts if any(detail is other for other in drawn) else ()
        figures = tuple(
            FigureView(
                chart,
                anchor("case", detail.slug, chart.anchor),
                alternative(chart),
                cited.get(chart.anchor, ()),
            )
            for chart in charts
        )
        found.append(DetailView(detail, name, figures, len(detail.charts) - len(charts)))
    return tuple(found)


def _matrix(matrix: Matrix, number: int, report: Report) -> MatrixView:
    scales = [metric_scale(matrix, key, unit) for key, _, unit in matrix.metrics]
    steps = [_steps(matrix, key) for key, _, _ in matrix.metrics]
    detailed = {detail.slug for detail in report.details}
    rows = tuple(
        (row, tuple(_case_cell(matrix, row, column, scales, steps, detailed) for column in matrix.columns))
        for row in matrix.rows
    )
    heads = tuple(head(label, on) for (_, label, _), on in zip(matrix.metrics, scales, strict=True))
    printed = {0} | {
        i for i, (key, _, _) in enumerate(matrix.metrics) if key.endswith(".p99") and "probe" not in key
    }
    cells = len(matrix.rows) * len(matrix.columns)
    reasons = dict.fromkeys(cell.word for cell in matrix.cells.values() if not cell.judged and cell.word)
    return MatrixView(
        id=f"matrix-{number}",
        matrix=matrix,
        heads=heads,
        printed=tuple(sorted(printed)) if matrix.metrics else (),
        rows=rows,
        is_single=cells == 1,
        size="tiny" if cells > BIG_MATRIX else "compact" if len(matrix.columns) >= _COMPACT_COLUMNS else "",
        not_judged=words.listed(reasons, "or"),
    )


def _steps(matrix: Matrix, key: str) -> Mapping[str, int]:
    """Step of the ramp for each case: the log of its value between the table's smallest and largest."""
    values = {
        cell.case: figure.point
        for cell in matrix.cells.values()
        if isinstance(figure := cell.figures.get(key), Estimate) and cell.state != "bad"
    }
    positive = [v for v in values.values() if v > 0 and math.isfinite(v)]
    if not positive or min(positive) == max(positive):
        return dict.fromkeys(values, 1)
    low, width = math.log(min(positive)), math.log(max(positive) / min(positive))
    last = len(tokens.RAMP)
    return {
        case: 1 + min(last - 1, int((math.log(v) - low) / width * last)) if v > 0 and math.isfinite(v) else 1
        for case, v in values.items()
    }


def _case_cell(
    matrix: Matrix,
    row: str,
    column: str,
    scales: Sequence[Scale],
    steps: Sequence[Mapping[str, int]],
    detailed: set[str],
) -> CaseCell:
    cell = matrix.cells.get((row, column)) or MatrixCell("", {}, "unknown", "not run")
    href = f"#{anchor('case', cell.case)}" if cell.case in detailed else None
    unusable = cell.state == "bad" or not cell.figures
    metrics = []
    for (key, _, _), on, step in zip(matrix.metrics, scales, steps, strict=True):
        figure = cell.figures.get(key)
        if unusable or figure is None:
            metrics.append(MetricCell(CellView("not measured", "", "not-measured"), 0))
        else:
            predicted = isinstance(figure, Estimate) and numbers.is_predicted(figure)
            shade = step.get(cell.case, 0) if cell.judged else 0
            metrics.append(MetricCell(figure_cell(figure, on), shade, predicted))
    return CaseCell(
        href=href,
        metrics=() if unusable else tuple(metrics),
        word=cell.word or ("invalid" if cell.state == "bad" else "not run" if not cell.figures else ""),
        state=cell.state,
        judged=cell.judged,
        is_knee=matrix.knee_after.get(row) == column,
        name=f"{matrix.row_factor}={row} {matrix.column_factor}={column}".strip(" ="),
    )
