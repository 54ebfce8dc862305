"""The tables of the Markdown report: the same cells as on the page."""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.model.finding import Estimate
from loadlens.model.report import (
    AccountingRow,
    CaseDetail,
    ClaimRow,
    Matrix,
    MatrixCell,
    ObjectiveRow,
    PublishedRow,
    Table,
)
from loadlens.present import numbers, words
from loadlens.report.write.cells import (
    CellView,
    TableView,
    accounting_view,
    figure_cell,
    head,
    metric_scale,
    published_view,
    table_view,
    trials_view,
)
from loadlens.report.write.markdown.escaping import cell, escaped, figure, folded, table

_SHOWN_METRICS = 2  # of a matrix; the rest is folded


def with_table(content: Table) -> list[str]:
    """A table of the report."""
    return _drawn(table_view(content))


def trials(detail: CaseDetail) -> list[str]:
    """Every trial of a case, invalid ones too."""
    return _drawn(trials_view(detail)) if detail.trials else ["No trial was run.", ""]


def _drawn(view: TableView) -> list[str]:
    lines = table(
        [cell(head) for head in view.heads],
        view.aligns,
        [[_both(c) for c in row] for row in view.rows],
    )
    return [*lines, *([escaped(view.note), ""] if view.note else [])]


def _both(view: CellView) -> str:
    """Value and interval on one line; a value that is not used is struck out."""
    value = f"~~{cell(view.text)}~~" if view.look == "invalid" else cell(view.text)
    if not view.second:
        return value
    joined = ": " if view.look in ("undecided", "not-measured") else " ("
    return f"{value}{joined}{escaped(view.second)}{')' if joined == ' (' else ''}"


def objectives(rows: Sequence[ObjectiveRow]) -> list[str]:
    """Limit, value, interval and verdict on one row."""
    return table(
        ["objective", "limit", "measured (95 %)", "verdict", "case"],
        ["left", "left", "right", "left", "left"],
        [
            [
                cell(row.objective),
                cell(row.limit),
                figure(numbers.show(row.figure)),
                f"{words.GLYPHS[row.state]} {cell(row.word)}",
                cell(row.case or "all"),
            ]
            for row in rows
        ],
    )


def claims(rows: Sequence[ClaimRow]) -> list[str]:
    """Published claims and whether ours uphold them."""
    if not rows:
        return []
    verdicts = {True: "● holds", False: "▲ does not hold", None: "○ undecided"}
    return table(
        ["claim", "published", "ours (95 %)", "tolerance", "verdict"],
        ["left", "right", "right", "left", "left"],
        [
            [
                cell(row.claim),
                cell(row.published),
                figure(numbers.show(row.ours)),
                cell(row.tolerance),
                f"{verdicts[row.holds]}{': ' + escaped(row.note) if row.note else ''}",
            ]
            for row in rows
        ],
    )


def figures(rows: Sequence[PublishedRow]) -> list[str]:
    """Published figures beside ours; one that cannot be true is struck out."""
    if not rows:
        return []
    drawn = []
    for row in rows:
        view = published_view(row)
        told = f"~~{cell(view.told)}~~" if row.shape == "impossible" else cell(view.told)
        shape = (
            f"{words.GLYPHS[view.state]} {cell(row.shape)}{': ' + escaped(view.note) if view.note else ''}"
        )
        names = [cell(row.case), cell(row.step or "all"), cell(view.metric)]
        drawn.append([*names, told, _both(view.measured), _both(view.ratio), shape])
    heads = ["case", "step", "metric", "published", "measured (95 %)", "ratio", "shape"]
    return table(heads, ["left", "left", "left", "right", "right", "right", "left"], drawn)


def accounting(rows: Sequence[AccountingRow]) -> list[str]:
    """Who counted how many requests."""
    return table(
        ["source", "sent", "received", "expected", "difference", "explained by"],
        ["left", "right", "right", "right", "right", "left"],
        [
            [
                f"{words.GLYPHS[row.state]} {cell(row.source)}",
                *(cell(c.text) for c in accounting_view(row).cells),
                cell(row.explained_by or "nothing to explain"),
            ]
            for row in rows
        ],
    )


def matrix(content: Matrix, *, whole: bool) -> list[str]:
    """A matrix as one table a metric: the first two open, the others folded, or left out unless `whole`."""
    lines = [f"### {escaped(content.title)}", ""]
    for number, (key, label, unit) in enumerate(content.metrics):
        on = metric_scale(content, key, unit)
        title = head(label, on)
        rows = [
            [
                _level(content.row_factor, row),
                *(_case(content, row, column, key, unit) for column in content.columns),
            ]
            for row in content.rows
        ]
        heads = [
            escaped(content.row_factor),
            *(cell(_level(content.column_factor, c)) for c in content.columns),
        ]
        drawn = table(heads, ["left", *("right" for _ in content.columns)], rows)
        if number < _SHOWN_METRICS:
            lines += [f"**{escaped(title)}** (95 % interval)", "", *drawn]
        elif whole:
            lines += folded(title, drawn)
    knees = [
        f"{_level(content.row_factor, row)}: {escaped(column)}" for row, column in content.knee_after.items()
    ]
    if knees:
        lines += [f"Knee after {escaped(content.column_factor)}: {', '.join(knees)}.", ""]
    return [*lines, escaped(words.GLYPH_LEGEND), ""]


def _level(factor: str, level: str) -> str:
    return cell(f"{factor}={level}" if factor and level else level or "case")


def _case(content: Matrix, row: str, column: str, key: str, unit: str) -> str:
    found = content.cells.get((row, column)) or MatrixCell("", {}, "unknown", "not run")
    figure_ = found.figures.get(key)
    if found.state == "bad" or not found.figures:
        mark = "■" if found.state == "bad" else "▨"
        return f"{mark} {cell(found.word or ('invalid' if found.state == 'bad' else 'not run'))}"
    if figure_ is None:
        return "not measured"
    value = _both(figure_cell(figure_, metric_scale(content, key, unit)))
    if not found.judged:
        is_predicted = isinstance(figure_, Estimate) and numbers.is_predicted(figure_)
        return f"△ {value}" if is_predicted else f"{value}, not judged"
    return f"{value} {words.GLYPHS[found.state]} {escaped(found.word)}" if found.word else value
