"""Findings, matrices, charts and verdicts as every medium shows them: final text, links with a target."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from loadlens.model.finding import Estimate, Finding, Grade
from loadlens.model.report import Chart, Matrix, MatrixCell, Report, State
from loadlens.present import charts, numbers, tokens, words
from loadlens.present.numbers import Scale
from loadlens.report.write import cells
from loadlens.report.write.cells import NOT_MEASURED, CellView, TableView

OPEN_FINDINGS = 1
BIG_MATRIX = 60  # from this number of cells on, intervals are left out of the matrix
COMPACT_COLUMNS = 6
WORST_FIRST: tuple[State, ...] = ("bad", "caution", "unknown", "ok")


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

    kind: ClassVar = "finding"
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

    kind: ClassVar = "matrix"
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

    kind: ClassVar = "figure"
    chart: Chart
    id: str
    alternative: str  # for a screen reader
    caption: str
    table: TableView | None
    is_drawn: bool
    is_of_case: bool
    cited: tuple[Link, ...]


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


def figure(chart: Chart, cited: Mapping[str, Sequence[Link]], case: str | None = None) -> FigureView:
    is_drawn = charts.has_rows(chart)
    return FigureView(
        chart=chart,
        id=anchor(chart.anchor) if case is None else anchor("case", case, chart.anchor),
        alternative=words.plain(f"{chart.headline} {chart.caption}"),
        caption=charts.caption(chart) if is_drawn else "",
        table=cells.table_view(table) if is_drawn and (table := charts.table(chart)) is not None else None,
        is_drawn=is_drawn,
        is_of_case=case is not None,
        cited=tuple(cited.get(chart.anchor, ())),
    )


def matrix_view(matrix: Matrix, number: int, report: Report) -> MatrixView:
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
