"""A report as every medium shows it: sections in order, figures as final text, links that have a target.

The report is walked here and nowhere else. The writers of HTML, Markdown and the terminal only place what
they find in a `View`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from loadlens.model.finding import Estimate, Finding, Grade
from loadlens.model.report import CaseDetail, Chart, Matrix, MatrixCell, Report, State, Table
from loadlens.present import charts, numbers, tokens, words
from loadlens.present.numbers import Scale
from loadlens.report.write import cells
from loadlens.report.write.cells import NOT_MEASURED, CellView, TableView

OPEN_FINDINGS = 1
DRAWN_CASES = 8  # details whose charts are drawn; of the others only the tables are shown
BIG_MATRIX = 60  # from this number of cells on, intervals are left out of the matrix
COMPACT_COLUMNS = 6
WORST_FIRST: tuple[State, ...] = ("bad", "caution", "unknown", "ok")
SECTIONS = (
    ("effects", "Effects"),
    ("findings", "Findings"),
    ("code", "Code"),
    ("cases", "Cases"),
    ("charts", "Charts"),
    ("predictions", "Predictions"),
    ("details", "Per case"),
    ("accounting", "Accounting"),
    ("setup", "Set-up"),
    ("environment", "Environment"),
    ("limits", "Limits"),
    ("published", "Published"),
    ("appendix", "Appendix"),
)


def anchor(*parts: str) -> str:
    """Return an id that may stand in a fragment: letters, digits and `._=,-` of the parts."""
    return "-".join(re.sub(r"[^A-Za-z0-9._=,-]+", "-", part).strip("-") or "x" for part in parts)


@dataclass(frozen=True, slots=True)
class Link:
    """Words with a target on the page, or words alone."""

    text: str
    href: str | None  # "#id"
    state: State = "unknown"  # of a badge


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding with those that it explains."""

    number: int
    finding: Finding
    id: str
    is_open: bool
    chips: tuple[Link, ...]
    rivals: Mapping[bool | None, str]  # by verdict: "thread pool (CPU is full) · GC (no period)"
    predictions: tuple[str, ...]  # "mean: 2.31 s (2.17–2.45) → 9.0 ms (4.5–13.5)"
    signals: TableView
    counter: TableView | None
    explains: tuple[FindingView, ...]


@dataclass(frozen=True, slots=True)
class MetricCell:
    """A case's figure of one metric, shaded."""

    cell: CellView
    shade: int = 0  # 1-7 of the ramp; 0: none
    is_predicted: bool = False


@dataclass(frozen=True, slots=True)
class CaseCell:
    """A cell of the matrix: a figure for each metric, or one word for all."""

    href: str | None
    metrics: tuple[MetricCell, ...]
    word: str
    state: State
    judged: bool
    is_knee: bool
    name: str  # for a screen reader


@dataclass(frozen=True, slots=True)
class MatrixView:
    """The matrix of one experiment."""

    id: str
    matrix: Matrix
    heads: tuple[str, ...]  # "mean, ms"
    printed: tuple[int, ...]  # the metrics that are shown on paper
    rows: tuple[tuple[str, tuple[CaseCell, ...]], ...]
    single: TableView | None  # of the only case, in place of the matrix
    size: str  # "" | "compact" | "tiny"
    not_judged: str


@dataclass(frozen=True, slots=True)
class FigureView:
    """A chart with the findings that cite it."""

    chart: Chart
    id: str
    alternative: str  # for a screen reader
    caption: str
    table: TableView | None
    is_drawn: bool
    cited: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class DetailView:
    """A case with its tables, and its charts where they are drawn."""

    detail: CaseDetail
    id: str
    unused: int  # trials
    trials: TableView
    tables: tuple[tuple[str, TableView], ...]  # with their headings
    inside: TableView | None
    charts: tuple[FigureView, ...]
    not_drawn: int


@dataclass(frozen=True, slots=True)
class Trust:
    """Verdicts on the record: what limits how far figures go, and how many checks hold."""

    caveats: tuple[Link, ...]  # the worst first
    rest: tuple[Link, ...]

    @property
    def words(self) -> str:
        """`7 checks hold, 1 could not be made`: the rest in a few words."""
        held = sum(badge.state == "ok" for badge in self.rest)
        unknown = len(self.rest) - held
        parts = [f"{words.plural(held, 'check')} hold" + "s" * (held == 1)] if held else []
        parts += [f"{unknown} could not be made"] if unknown else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class View:
    """The whole report in order."""

    nav: tuple[Link, ...]
    trust: Trust
    pictures: tuple[FigureView, ...]  # of the first screen
    summary: Link | None  # the worst badge
    objectives: TableView | None
    effects: TableView | None
    effects_chart: FigureView | None
    counts: str
    findings: tuple[FindingView, ...]
    suspected: tuple[FindingView, ...]  # not shown to hold: without advice
    matrices: tuple[MatrixView, ...]
    predictions: TableView | None
    models: TableView | None
    claims: TableView | None
    published: TableView | None
    published_charts: tuple[FigureView, ...]
    charts: tuple[FigureView, ...]
    details: tuple[DetailView, ...]
    accounting: TableView | None
    balances: bool
    setup: TableView | None


def view(report: Report) -> View:
    """Return everything that the writers place."""
    drawn = _drawn(report)
    ids = _ids(report, drawn)
    findings = findings_of(report, ids)
    trust = trust_of(report, ids)
    cited: dict[str, list[Link]] = {}
    for f in findings:
        for chart in dict.fromkeys(e.chart for e in f.finding.evidence if e.chart):
            cited.setdefault(chart, []).append(Link(f"finding {f.number}", f"#{f.id}"))
    published, foretold = report.published, report.predictions
    shown = [f for f in findings if f.finding.grade > Grade.SUSPECTED]
    counts = {"findings": len(shown), "cases": sum(len(matrix.cells) for matrix in report.matrices)}
    return View(
        nav=tuple(
            Link(f"{title} {counts[name]}" if counts.get(name) else title, f"#{name}")
            for name, title in SECTIONS
            if name in ids
        ),
        trust=trust,
        pictures=tuple(
            _figure(c, cited) for name in report.pictures for c in report.charts if c.anchor == name
        ),
        summary=next(iter((*trust.caveats, *trust.rest)), None),
        objectives=cells.objectives(report.objectives) if report.objectives else None,
        effects=_table(report.effects.table if report.effects else None),
        effects_chart=next(
            (
                _figure(c, cited)
                for c in report.charts
                if _is_of_effects(c, report) and c.anchor not in report.pictures
            ),
            None,
        ),
        counts=words.grade_counts(
            (f.grade for f in report.findings if f.explained_by is None),
            len(report.absent),
            len(report.not_assessed),
        ),
        findings=tuple(shown),
        suspected=tuple(f for f in findings if f.finding.grade == Grade.SUSPECTED),
        matrices=tuple(_matrix(matrix, i, report) for i, matrix in enumerate(report.matrices)),
        predictions=cells.predictions(foretold.rows) if foretold and foretold.rows else None,
        models=_table(foretold.models if foretold else None),
        claims=cells.claims(published.claims) if published and published.claims else None,
        published=cells.published(published.rows) if published and published.rows else None,
        published_charts=tuple(_figure(c, cited) for c in report.charts if _is_published(c, report)),
        charts=tuple(_figure(c, cited) for c in report.charts if _is_in_charts(c, report)),
        details=tuple(
            _detail(detail, cited, is_drawn=any(detail is other for other in drawn))
            for detail in report.details
        ),
        accounting=cells.accounting(report.accounting) if report.accounting else None,
        balances=all(row.state != "bad" for row in report.accounting),
        setup=_table(report.setup),
    )


def _table(table: Table | None) -> TableView | None:
    return None if table is None else cells.table_view(table)


def _is_published(chart: Chart, report: Report) -> bool:
    """True if the chart belongs to the section of published figures."""
    return chart.kind == "published" and report.published is not None


def _is_of_effects(chart: Chart, report: Report) -> bool:
    """True if the chart belongs to the section of effects."""
    return report.effects is not None and chart.anchor == report.effects.chart


def _is_in_charts(chart: Chart, report: Report) -> bool:
    """True if the chart belongs neither to the first screen nor to a section of its own."""
    is_elsewhere = _is_published(chart, report) or _is_of_effects(chart, report)
    return not is_elsewhere and chart.anchor not in report.pictures


def _ids(report: Report, drawn: Sequence[CaseDetail]) -> set[str]:
    """Return every target that a link may have on the page."""
    shown = {
        "effects": report.effects,
        "findings": True,
        "code": report.flame is not None,
        "cases": report.matrices,
        "objectives": report.objectives,
        "predictions": report.predictions is not None,
        "published": report.published is not None,
        "charts": any(_is_in_charts(chart, report) for chart in report.charts),
        "details": report.details,
        "accounting": report.accounting,
        "setup": report.setup is not None,
        "environment": report.environment or report.environment_differences,
        "limits": True,
        "appendix": True,
    }
    ids = {name for name, is_shown in shown.items() if is_shown}
    ids |= {anchor("finding", finding.rule) for finding in report.findings}
    ids |= {anchor("case", detail.slug) for detail in report.details}
    ids |= {anchor(chart.anchor) for chart in report.charts}
    return ids | {anchor("case", detail.slug, chart.anchor) for detail in drawn for chart in detail.charts}


def _target(ids: set[str], name: str | None) -> str | None:
    """Return the address of a part of the page; none if the page does not have it."""
    return f"#{anchor(name)}" if name and anchor(name) in ids else None


def trust_of(report: Report, ids: set[str]) -> Trust:
    """Return the verdicts on the record, those first that limit how far figures go.

    Args:
        report: Any.
        ids: Targets on the page; a medium without links has none.
    """
    badges = sorted(report.badges, key=lambda badge: WORST_FIRST.index(badge.state))
    links = [Link(b.text, _target(ids, b.anchor), b.state) for b in badges]
    caveats = [link for link in links if link.state in ("bad", "caution")]
    return Trust(tuple(caveats), tuple(links[len(caveats) :]))


def findings_of(report: Report, ids: set[str]) -> tuple[FindingView, ...]:
    """Return root findings in the report's order, with those that they explain.

    A finding that is only suspected gives no advice: following it might cure nothing.

    Args:
        report: Any.
        ids: Targets on the page; a medium without links has none.
    """
    rules = {finding.rule for finding in report.findings}
    roots = [f for f in report.findings if f.explained_by is None or f.explained_by not in rules]
    roots.sort(key=lambda finding: finding.grade == Grade.SUSPECTED)

    def rivals(finding: Finding, verdict: bool | None) -> str:
        named = [c for c in finding.counter if c.ruled_out is verdict]
        return " · ".join(f"{c.rival} ({c.text})" if c.text else c.rival for c in named)

    def shown(finding: Finding, number: int) -> FindingView:
        if finding.grade == Grade.SUSPECTED:
            finding = replace(finding, advice="", predictions=())
        explained = [f for f in report.findings if f.explained_by == finding.rule and f.rule != finding.rule]
        return FindingView(
            number=number,
            finding=finding,
            id=anchor("finding", finding.rule),
            is_open=number <= OPEN_FINDINGS,
            chips=tuple(
                Link(words.cut(e.chip, words.CHIP_LENGTH), _target(ids, e.chart))
                for e in finding.evidence
                if e.chip
            ),
            rivals={verdict: rivals(finding, verdict) for verdict in (True, None, False)},
            predictions=tuple(
                f"{p.words}: {numbers.show(p.before).with_interval} → {numbers.show(p.after).with_interval}"
                for p in finding.predictions
            ),
            signals=cells.evidence(finding),
            counter=cells.rivals(finding) if finding.counter else None,
            explains=tuple(shown(f, 0) for f in explained if finding.explained_by is None),
        )

    return tuple(shown(finding, number) for number, finding in enumerate(roots, 1))


def _figure(chart: Chart, cited: Mapping[str, Sequence[Link]], case: str | None = None) -> FigureView:
    is_drawn = charts.has_rows(chart)
    return FigureView(
        chart=chart,
        id=anchor(chart.anchor) if case is None else anchor("case", case, chart.anchor),
        alternative=words.plain(f"{chart.headline} {chart.caption}"),
        caption=charts.caption(chart) if is_drawn else "",
        table=_table(charts.table(chart)) if is_drawn else None,
        is_drawn=is_drawn,
        cited=tuple(cited.get(chart.anchor, ())),
    )


def _drawn(report: Report) -> list[CaseDetail]:
    """Return the details whose charts are drawn: first open ones, then those that findings name."""
    scopes = " ".join(finding.scope for finding in report.findings)
    with_charts = [detail for detail in report.details if detail.charts]
    ranked = sorted(with_charts, key=lambda d: (not d.open, d.slug not in scopes and d.name not in scopes))
    return ranked[:DRAWN_CASES]


def _detail(detail: CaseDetail, cited: Mapping[str, Sequence[Link]], *, is_drawn: bool) -> DetailView:
    return DetailView(
        detail=detail,
        id=anchor("case", detail.slug),
        unused=sum(trial.status != "complete" for trial in detail.trials),
        trials=cells.trials(detail),
        tables=cells.of_case(detail),
        inside=_table(detail.inside),
        charts=tuple(_figure(chart, cited, detail.slug) for chart in detail.charts) if is_drawn else (),
        not_drawn=0 if is_drawn else len(detail.charts),
    )


def _matrix(matrix: Matrix, number: int, report: Report) -> MatrixView:
    scales = [cells.metric_scale(matrix, key, unit) for key, _, unit in matrix.metrics]
    shades = [_shades(matrix, key) for key, _, _ in matrix.metrics]
    detailed = {detail.slug for detail in report.details}
    rows = tuple(
        (row, tuple(_case_cell(matrix, row, column, scales, shades, detailed) for column in matrix.columns))
        for row in matrix.rows
    )
    heads = tuple(cells.head(label, on) for (_, label, _), on in zip(matrix.metrics, scales, strict=True))
    printed = [
        i for i, (key, _, _) in enumerate(matrix.metrics) if key.endswith(".p99") and "probe" not in key
    ]
    size = len(matrix.rows) * len(matrix.columns)
    reasons = dict.fromkeys(cell.word for cell in matrix.cells.values() if not cell.judged and cell.word)
    return MatrixView(
        id=f"matrix-{number}",
        matrix=matrix,
        heads=heads,
        printed=tuple(sorted({0, *printed})) if matrix.metrics else (),
        rows=rows,
        single=_single(rows[0][1][0], heads) if size == 1 else None,
        size="tiny" if size > BIG_MATRIX else "compact" if len(matrix.columns) >= COMPACT_COLUMNS else "",
        not_judged=words.listed(reasons, "or"),
    )


def _single(only: CaseCell, heads: Sequence[str]) -> TableView:
    """Return the figures of the only case of an experiment, a row for each."""
    rows: Iterable[tuple[str, CellView, str]] = (
        (head, CellView(metric.cell.text, look=metric.cell.look), metric.cell.second or "exact")
        for head, metric in zip(heads, only.metrics, strict=bool(only.metrics))
    )
    if not only.metrics:
        rows = [(only.name, CellView(only.word, state=only.state), "nothing was measured")]
    titles = ("figure", "value", "95 % interval, or why not")
    return cells.text_table(titles, (cells.LEFT, cells.RIGHT, cells.RIGHT), rows)


def _shades(matrix: Matrix, key: str) -> Mapping[str, int]:
    """Return the step of the ramp for each case, by the log of its value within the table's range."""
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
    shades: Sequence[Mapping[str, int]],
    detailed: set[str],
) -> CaseCell:
    cell = matrix.cells.get((row, column)) or MatrixCell("", {}, "unknown", "not run")
    is_usable = cell.state != "bad" and bool(cell.figures)
    metrics = []
    for (key, _, _), on, shade in zip(matrix.metrics, scales, shades, strict=True):
        figure = cell.figures.get(key)
        if figure is None:
            metrics.append(MetricCell(NOT_MEASURED))
            continue
        predicted = isinstance(figure, Estimate) and numbers.is_predicted(figure)
        step = shade.get(cell.case, 0) if cell.judged else 0
        metrics.append(MetricCell(cells.figure_cell(figure, on), step, predicted))
    return CaseCell(
        href=f"#{anchor('case', cell.case)}" if cell.case in detailed else None,
        metrics=tuple(metrics) if is_usable else (),
        word=cell.word or ("invalid" if cell.state == "bad" else "" if cell.figures else "not run"),
        state=cell.state,
        judged=cell.judged,
        is_knee=matrix.knee_after.get(row) == column,
        name=f"{matrix.row_factor}={row} {matrix.column_factor}={column}".strip(" ="),
    )
