"""Tables of a report as final text, for every medium: one unit per column, never an empty cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from loadlens.model.finding import Estimate, Figure, Finding, NotMeasured, Undecided
from loadlens.model.report import (
    AccountingRow,
    CaseDetail,
    Cell,
    ClaimRow,
    Column,
    Matrix,
    ObjectiveRow,
    PredictionRow,
    PublishedRow,
    State,
    Table,
)
from loadlens.present import numbers, words
from loadlens.present.numbers import Scale

LEFT, RIGHT, TEXT = "left", "right", "left text"  # TEXT: whole sentences, which may wrap
PURE = Scale("", 1.0)
SHAPE_STATES: dict[str, State] = {
    "agrees": "ok",
    "differs": "caution",
    "reference": "ok",
    "impossible": "bad",
}


@dataclass(frozen=True, slots=True)
class CellView:
    """A cell as final text."""

    text: str
    second: str = ""  # interval, reason or note, in smaller type
    look: Literal["", "undecided", "not-measured", "invalid"] = ""
    state: State | None = None  # its glyph precedes the text


@dataclass(frozen=True, slots=True)
class TableView:
    """A table as final text."""

    heads: tuple[str, ...]  # with their units
    aligns: tuple[str, ...]
    rows: tuple[tuple[CellView, ...], ...]
    note: str = ""


NOT_MEASURED = CellView("not measured", look="not-measured")


def figure_cell(figure: Figure, on: Scale | None = None, *, with_unit: bool = False) -> CellView:
    """Return the cell of a figure: its value, and under it the interval or the reason."""
    view = numbers.show(figure, on)
    if isinstance(figure, NotMeasured):
        return CellView(view.value, view.origin, "not-measured")
    if view.state == "undecided":
        return CellView(view.value, view.origin, "undecided")
    second = view.interval or ("no interval" if "no interval" in view.origin else "")
    return CellView(view.short if with_unit else view.value, second)


def text_table(
    heads: Sequence[str], aligns: Sequence[str], rows: Iterable[Sequence[str | CellView]]
) -> TableView:
    """Return a table whose cells are final text already."""
    made = (tuple(CellView(c or "none") if isinstance(c, str) else c for c in row) for row in rows)
    return TableView(tuple(heads), tuple(aligns), tuple(made))


def table_view(table: Table) -> TableView:
    """Return a table of the report with one unit per column."""
    columns = table.columns
    scales = [_column_scale(column, [row[i] for row in table.rows]) for i, column in enumerate(columns)]
    return TableView(
        tuple(head(column.title, on) for column, on in zip(columns, scales, strict=True)),
        tuple(column.align for column in columns),
        tuple(_row(row, scales, columns) for row in table.rows),
        table.note,
    )


def _row(row: Sequence[Cell], scales: Sequence[Scale], columns: Sequence[Column]) -> tuple[CellView, ...]:
    """Return the cells of a row; figures that carry their own unit share it where they can be compared."""
    mixed = [cell for cell, column in zip(row, columns, strict=True) if column.is_mixed]
    figures = [cell for cell in mixed if isinstance(cell, Estimate | Undecided | NotMeasured)]
    units = {figure.unit for figure in figures if not isinstance(figure, NotMeasured)}
    own = numbers.scale_of(figures) if len(units) == 1 else None
    return tuple(
        _cell(cell, own if column.is_mixed else on, column)
        for cell, on, column in zip(row, scales, columns, strict=True)
    )


def _column_scale(column: Column, values: Sequence[Cell]) -> Scale:
    if column.is_mixed:
        return PURE
    figures = [v for v in values if isinstance(v, Estimate | Undecided | NotMeasured)]
    if figures:
        on = numbers.scale_of(figures)
        # a count needs no unit in its head: the column's title says what is counted
        return on if on.name != column.title else Scale("", on.factor, on.digits)
    return numbers.scale(column.unit, [float(v) for v in values if isinstance(v, int | float)])


def _cell(value: Cell, on: Scale | None, column: Column) -> CellView:
    match value:
        case None:
            return NOT_MEASURED
        case Estimate() | Undecided() | NotMeasured():
            return figure_cell(value, on, with_unit=column.is_mixed)
        case str():
            return CellView(value or "none")
        case int() if on is None or on.factor == 1.0:
            return CellView(numbers.count(value))
        case _:
            return CellView(numbers.value(float(value), on or PURE))


def head(title: str, on: Scale) -> str:
    """Return a title with its unit, unless the title names the unit already."""
    is_named = title == on.name or (on.name == "/s" and title.endswith("/s"))
    return title if is_named or not on.name else f"{title}, {on.name}"


def metric_scale(matrix: Matrix, key: str, unit: str) -> Scale:
    """Return the unit of one metric in a matrix."""
    figures = [cell.figures.get(key) for cell in matrix.cells.values()]
    if any(isinstance(figure, Estimate) for figure in figures):
        return numbers.scale_of(figures)
    return numbers.scale(unit)


# --- the tables of a report ---------------------------------------------------------------------------------


def objectives(rows: Sequence[ObjectiveRow]) -> TableView:
    """Return limit, value, interval and verdict of each objective on one row."""
    has_cases = any(row.case for row in rows)
    return text_table(
        ("objective", "limit", "measured (95 %)", "verdict", *(["case"] if has_cases else [])),
        (LEFT, LEFT, RIGHT, LEFT, *([LEFT] if has_cases else [])),
        (
            (
                row.objective,
                row.limit,
                figure_cell(row.figure, with_unit=True),
                CellView(row.word, state=row.state),
                *([row.case or "all"] if has_cases else []),
            )
            for row in rows
        ),
    )


def evidence(finding: Finding) -> TableView:
    """Return the signals of a finding: value, limit and verdict."""
    rows = []
    for e in finding.evidence:
        seen = "not observed" if e.passed is None else "in words"
        if e.value is not None:
            seen = numbers.value(e.value, PURE, low=e.low, high=e.high)
            if e.low is not None or e.high is not None:
                seen += f" ({numbers.interval(e.low, e.high, PURE, point=e.value)})"
        verdict = {
            True: CellView("passes", state="ok"),
            False: CellView("does not pass", state="bad"),
            None: CellView("not observed", state="unknown"),
        }[e.passed]
        limit = "in words" if e.threshold is None else numbers.value(e.threshold, PURE)
        rows.append((e.signal, e.text, seen, limit, verdict))
    heads = ("signal", "what was seen", "value (95 %)", "limit", "verdict")
    return text_table(heads, (LEFT, TEXT, RIGHT, RIGHT, LEFT), rows)


def rivals(finding: Finding) -> TableView:
    """Return the other explanations of a finding, and whether they were ruled out."""
    verdicts = {
        True: CellView("ruled out", state="ok"),
        False: CellView("not ruled out", state="caution"),
        None: CellView("could not be observed", state="unknown"),
    }
    rows = ((c.rival, c.text, verdicts[c.ruled_out]) for c in finding.counter)
    return text_table(("rival", "what was seen", "verdict"), (LEFT, TEXT, LEFT), rows)


def predictions(rows: Sequence[PredictionRow]) -> TableView:
    """Return predicted figures alongside measured ones with their score."""
    return text_table(
        ("case", "figure", "predicted (95 %)", "measured (95 %)", "off by", "score"),
        (LEFT, LEFT, RIGHT, RIGHT, RIGHT, LEFT),
        (
            (
                row.name,
                words.metric(row.metric) + (f" of {row.step}" if row.step else ""),
                *(figure_cell(figure, on, with_unit=True) for figure in (row.predicted, row.measured)),
                "not known" if row.error is None else f"{row.error * 100:+.1f} %",
                CellView(row.word, state=row.state),
            )
            for row in rows
            for on in [numbers.scale_of([row.predicted, row.measured])]
        ),
    )


def claims(rows: Sequence[ClaimRow]) -> TableView:
    """Return published claims, and whether our figures uphold them."""
    verdicts = {
        True: CellView("holds", state="ok"),
        False: CellView("does not hold", state="caution"),
        None: CellView("undecided", state="unknown"),
    }
    return text_table(
        ("claim", "published", "ours (95 %)", "tolerance", "verdict"),
        (TEXT, RIGHT, RIGHT, LEFT, LEFT),
        (
            (
                row.claim,
                row.published,
                figure_cell(row.ours, with_unit=True),
                row.tolerance,
                replace(verdicts[row.holds], second=row.note),
            )
            for row in rows
        ),
    )


def published(rows: Sequence[PublishedRow]) -> TableView:
    """Return published figures alongside ours; one that cannot be true is struck out."""
    made = []
    for row in rows:
        on = numbers.scale(row.unit, [row.published])
        quoted = f"{numbers.value(row.published, on)} {on.name}".rstrip()
        ours = figure_cell(row.measured, on, with_unit=True)
        ratio = CellView("not judged", look="not-measured")
        if row.ratio is not None:
            ratio = CellView(numbers.value(row.ratio, PURE))
        # the reason for a missing figure is in its own cell
        note = row.note.removeprefix(ours.second).lstrip("; ") if ours.look else row.note
        made.append(
            (
                row.case,
                row.step or "all",
                words.metric(row.metric),
                CellView(quoted, look="invalid" if row.shape == "impossible" else ""),
                ours,
                ratio,
                CellView(row.shape, note, state=SHAPE_STATES.get(row.shape, "unknown")),
            )
        )
    heads = ("case", "step", "metric", "published", "measured (95 %)", "ratio", "shape")
    return text_table(heads, (LEFT, LEFT, LEFT, RIGHT, RIGHT, RIGHT, LEFT), made)


def accounting(rows: Sequence[AccountingRow]) -> TableView:
    """Return sent, received, expected and difference as counts; expected is a range where it is one."""

    def counted(*ends: int | None) -> CellView:
        if all(end is None for end in ends):
            return CellView("not counted", look="not-measured")
        shown = dict.fromkeys(numbers.OPEN if end is None else numbers.count(end) for end in ends)
        return CellView(numbers.EN_DASH.join(shown))

    return text_table(
        ("source", "sent", "received", "expected", "difference", "explained by"),
        (LEFT, RIGHT, RIGHT, RIGHT, RIGHT, LEFT),
        (
            (
                CellView(row.source, state=row.state),
                counted(row.sent),
                counted(row.observed),
                counted(row.expected_low, row.expected_high),
                counted(row.difference),
                row.explained_by or "nothing to explain",
            )
            for row in rows
        ),
    )


def trials(detail: CaseDetail) -> TableView:
    """Return every trial of a case; the values of one that is not used are struck out, with the reason."""
    columns, has_notes = detail.trial_columns, any(trial.note for trial in detail.trials)
    scales = [_column_scale(c, [trial.figures[i] for trial in detail.trials]) for i, c in enumerate(columns)]
    rows = []
    for trial in detail.trials:
        used = trial.status == "complete"
        figures = [figure_cell(figure, on) for figure, on in zip(trial.figures, scales, strict=True)]
        if not used:
            figures = [replace(cell, look=cell.look or "invalid") for cell in figures]
        status = CellView(trial.status, state="ok" if used else "bad")
        note = (trial.note,) if has_notes else ()
        rows.append((trial.name, status, str(trial.position), *figures, *note))
    heads = (head(column.title, on) for column, on in zip(columns, scales, strict=True))
    return text_table(
        ("trial", "status", "position", *heads, *(["note"] if has_notes else [])),
        (LEFT, LEFT, RIGHT, *(column.align for column in columns), *([LEFT] if has_notes else [])),
        rows,
    )


def of_case(detail: CaseDetail) -> tuple[tuple[str, TableView], ...]:
    """Return the tables of a case below that of its trials, each with its heading."""
    named = (
        ("Nodes", detail.nodes),
        ("Failures by class", detail.failures),
        ("Why requests failed", detail.reasons),
        ("Checks", detail.checks),
        ("Groups of steps", detail.groups),
        ("Parts of a request", detail.phases),
        ("Time of requests by span", detail.spans),
        ("Who got the requests", detail.backends),
        ("What the fault proxy did", detail.proxies),
        ("PromQL", detail.queries),
    )
    return tuple((title, table_view(table)) for title, table in named if table is not None)
