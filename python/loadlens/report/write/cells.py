"""Cells of tables as final text, for every medium with tables: one unit a column, never an empty cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided
from loadlens.model.report import (
    AccountingRow,
    CaseDetail,
    Cell,
    Column,
    Matrix,
    PredictionSection,
    PublishedRow,
    State,
    Table,
)
from loadlens.present import numbers, words
from loadlens.present.numbers import Scale, Shown


@dataclass(frozen=True, slots=True)
class CellView:
    """A cell as final text: a first line, a second line in smaller type, and how it looks."""

    text: str
    second: str = ""
    look: str = ""  # "" | "undecided" | "not-measured" | "invalid"


@dataclass(frozen=True, slots=True)
class TableView:
    """A table as final text."""

    heads: tuple[str, ...]  # with their units
    aligns: tuple[str, ...]
    rows: tuple[tuple[CellView, ...], ...]
    note: str


@dataclass(frozen=True, slots=True)
class AccountingView:
    """A row of the accounting as final text."""

    row: AccountingRow
    cells: tuple[CellView, ...]


@dataclass(frozen=True, slots=True)
class PublishedView:
    """A published figure beside ours as final text."""

    row: PublishedRow
    metric: str
    told: str
    measured: CellView
    note: str  # what the cells do not say already
    ratio: CellView
    state: State


def shown(figure: Figure, on: Scale | None = None, *, invalid: bool = False) -> Shown:
    """`numbers.show`, for templates."""
    return numbers.show(figure, on, invalid=invalid)


def figure_cell(figure: Figure, on: Scale | None = None, *, with_unit: bool = False) -> CellView:
    """A figure: its value, and under it the interval or the reason."""
    view = numbers.show(figure, on)
    if view.state in ("undecided", "not measured"):
        return CellView(view.value, view.origin, "undecided" if view.state == "undecided" else "not-measured")
    second = view.interval or ("no interval" if "no interval" in view.origin else "")
    return CellView(view.short if with_unit else view.value, second)


def table_view(table: Table) -> TableView:
    """A table of the report with one unit a column."""
    scales = [_column_scale(column, [row[i] for row in table.rows]) for i, column in enumerate(table.columns)]
    heads = tuple(head(column.title, on) for column, on in zip(table.columns, scales, strict=True))
    rows = tuple(
        tuple(
            _own_unit(value) if column.is_mixed else _cell(value, on)
            for value, on, column in zip(row, scales, table.columns, strict=True)
        )
        for row in table.rows
    )
    return TableView(heads, tuple(column.align for column in table.columns), rows, table.note)


def predictions_table(section: PredictionSection) -> Table | None:
    """Predicted figures beside measured ones with their score; none when nothing was predicted."""
    columns = (
        Column("case", align="left"),
        Column("figure", align="left"),
        Column("predicted (95 %)", is_mixed=True),
        Column("measured (95 %)", is_mixed=True),
        Column("off by"),
        Column("score", align="left"),
    )
    rows = tuple(
        (
            row.name,
            words.metric(row.metric) + (f" of {row.step}" if row.step else ""),
            row.predicted,
            row.measured,
            "not known" if row.error is None else f"{row.error * 100:+.1f} %",
            f"{words.GLYPHS[row.state]} {row.word}",
        )
        for row in section.rows
    )
    return Table(columns, rows) if rows else None


def tables_of(detail: CaseDetail) -> list[tuple[str, Table]]:
    """The tables of a case under the one of its trials, each with its heading."""
    named = (
        ("Failures by class", detail.failures),
        ("Why requests failed", detail.reasons),
        ("Checks", detail.checks),
        ("Groups of steps", detail.groups),
        ("Parts of a request", detail.phases),
        ("Who got the requests", detail.backends),
        ("What the fault proxy did", detail.proxies),
        ("PromQL", detail.queries),
    )
    return [(title, table) for title, table in named if table is not None]


def trials_view(detail: CaseDetail) -> TableView:
    """Every trial of a case, invalid ones too: their values are struck out, with their reason."""
    scales = [
        _column_scale(column, [trial.figures[i] for trial in detail.trials])
        for i, column in enumerate(detail.trial_columns)
    ]
    has_notes = any(trial.note for trial in detail.trials)
    rows = []
    for trial in detail.trials:
        used = trial.status == "complete"
        figures = tuple(
            figure_cell(figure, on) if used else _struck(figure, on)
            for figure, on in zip(trial.figures, scales, strict=True)
        )
        glyph = words.GLYPHS["ok" if used else "bad"]
        named = (CellView(trial.name), CellView(f"{glyph} {trial.status}"), CellView(str(trial.position)))
        rows.append((*named, *figures, *((CellView(trial.note or "none"),) if has_notes else ())))
    heads = [head(column.title, on) for column, on in zip(detail.trial_columns, scales, strict=True)]
    aligns = ["left", "left", "right", *(column.align for column in detail.trial_columns)]
    return TableView(
        ("trial", "status", "position", *heads, *(["note"] if has_notes else [])),
        (*aligns, *(["left"] if has_notes else [])),
        tuple(rows),
        "",
    )


def _own_unit(value: Cell) -> CellView:
    figure = _figure_of(value)
    return _cell(value, numbers.scale("")) if figure is None else figure_cell(figure, with_unit=True)


def _struck(figure: Figure, on: Scale) -> CellView:
    view = figure_cell(figure, on)
    return CellView(view.text, view.second, view.look or "invalid")


def head(title: str, on: Scale) -> str:
    """A title with its unit, unless the title says it already."""
    is_said = title == on.name or (on.name == "/s" and title.endswith("/s"))
    return title if is_said or not on.name else f"{title}, {on.name}"


def _column_scale(column: Column, values: Sequence[Cell]) -> Scale:
    figures = [figure for value in values if (figure := _figure_of(value)) is not None]
    if column.is_mixed:
        return numbers.scale("")
    if figures:
        on = numbers.scale_of(figures)
        # a count needs no unit in its head: the column's title says what is counted
        return on if on.name != column.title else Scale("", on.factor, on.digits)
    return numbers.scale(column.unit, _numbers(values))


def _figure_of(value: Cell) -> Figure | None:
    """The figure in a cell; none where there is plain text or a number."""
    return value if isinstance(value, Estimate | Undecided | NotMeasured) else None


def _numbers(values: Iterable[Cell]) -> list[float]:
    return [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]


def _cell(value: Cell, on: Scale) -> CellView:
    match value:
        case None:
            return CellView("not measured", look="not-measured")
        case Estimate() | Undecided() | NotMeasured():
            return figure_cell(value, on)
        case str():
            return CellView(value or "none")
        case int() if on.factor == 1.0:
            return CellView(numbers.count(value))
        case _:
            return CellView(numbers.value(float(value), on))


def metric_scale(matrix: Matrix, key: str, unit: str) -> Scale:
    """The unit of one metric in a matrix."""
    figures = [cell.figures.get(key) for cell in matrix.cells.values()]
    if any(isinstance(figure, Estimate) for figure in figures):
        return numbers.scale_of(figures)
    return numbers.scale(unit)


def published_view(row: PublishedRow) -> PublishedView:
    """A published figure beside ours, in one unit."""
    on = _published_scale(row)
    states: dict[str, State] = {"agrees": "ok", "differs": "caution", "reference": "ok", "impossible": "bad"}
    ratio = CellView("not judged", look="not-measured")
    if row.ratio is not None:
        ratio = CellView(numbers.value(row.ratio, Scale("", 1.0)))
    told = f"{numbers.value(row.published * _base(row.unit), on)} {on.name}".rstrip()
    measured = figure_cell(row.measured, on, with_unit=True)
    note = row.note.removeprefix(measured.second).lstrip("; ") if measured.look else row.note
    return PublishedView(
        row,
        words.metric(row.metric),
        told,
        measured,
        note,
        ratio,
        states.get(row.shape, "unknown"),
    )


_TO_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3}


def _base(unit: str) -> float:
    """What one of a published unit is in base units: figures are published in ms as often as in s."""
    return _TO_SECONDS.get(unit, 0.01 if unit == "%" else 1.0)


def _published_scale(row: PublishedRow) -> Scale:
    unit = "s" if row.unit in _TO_SECONDS else "share" if row.unit == "%" else row.unit
    return numbers.scale(unit, [row.published * _base(row.unit)])


def accounting_view(row: AccountingRow) -> AccountingView:
    """Sent, received, expected and difference as counts; expected is a range where it is one."""

    def counted(number: int | None) -> CellView:
        return (
            CellView("not counted", look="not-measured")
            if number is None
            else CellView(numbers.count(number))
        )

    low, high = row.expected_low, row.expected_high
    if low is None and high is None:
        expected = counted(None)
    elif low == high and low is not None:
        expected = CellView(numbers.count(low))
    else:
        ends = (numbers.OPEN if end is None else numbers.count(end) for end in (low, high))
        expected = CellView(numbers.EN_DASH.join(ends))
    return AccountingView(row, (counted(row.sent), counted(row.observed), expected, counted(row.difference)))
