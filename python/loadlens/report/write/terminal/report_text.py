"""A report on a terminal: the first screen of the page, the findings, and the other sections in short."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from loadlens.model.finding import Estimate
from loadlens.model.report import Cell, Chart, Report, Table
from loadlens.present import charts, terminal, words
from loadlens.report.write import cells
from loadlens.report.write.sections import MOST_REASONS, MOST_SHORT, Section, point, view
from loadlens.report.write.terminal.printing import LABEL, cut_to_width, labelled, print_lines
from loadlens.report.write.view import FindingView, Trust

BAR = 10  # columns


def print_report(report: Report, *, files: Iterable[Path] = (), quiet: bool = False) -> None:
    """Print the first screen on stdout, the findings unless `quiet`, and where the whole report is."""
    width = terminal.width()
    lines = list(report_lines(report, width, quiet=quiet))
    lines += [f"Report   {path}" for path in files]
    print_lines(lines, headings=range(len(textwrap.wrap(_headline(report), width))))


def _headline(report: Report) -> str:
    return words.plain(report.answer[0]).rstrip(".")


def report_lines(report: Report, width: int = terminal.USUAL_WIDTH, *, quiet: bool = False) -> Iterator[str]:
    """Return the lines of a report: the answer, its pictures, what to do; then each section in short."""
    shown = view(report)
    yield from textwrap.wrap(_headline(report), width)
    for sentence in report.answer[1:]:
        yield from textwrap.wrap(words.plain(sentence), width)
    for picture in shown.pictures:
        yield ""
        yield from picture_lines(picture.chart, width)
    yield ""
    for line in report.lines:
        if not line.is_command:
            yield from labelled(line.label, [line.text], width=width)
    for section in shown.sections:
        for label, lines in section.short.items() if section.leads else ():
            yield from labelled(label, lines, width=width)
    yield from labelled("trust", [_trust(shown.trust)], width=width)
    for line in report.lines:
        if line.is_command:
            yield f"{line.label:<{LABEL}}{words.plain(line.text)}"
    for section in () if quiet else shown.sections:
        if not section.leads:
            yield from section_lines(section, width)


def section_lines(section: Section, width: int) -> Iterator[str]:
    """Return the findings of a section, the first with its evidence, and its lines in short."""
    findings = [block for block in section.blocks if isinstance(block, FindingView)]
    for finding in findings:
        yield ""
        yield from _finding(finding, width, is_first=finding is findings[0])
    for label, lines in section.short.items():
        if any(lines):
            yield ""
        yield from labelled(label, lines, width=width)


def _trust(trust: Trust) -> str:
    caveats = [f"{words.GLYPHS[badge.state]} {badge.text}" for badge in trust.caveats]
    return " · ".join((*caveats, *([trust.words] if trust.words else [])))


def _finding(view: FindingView, width: int, *, is_first: bool) -> Iterator[str]:
    finding = view.finding
    title = f"{view.number} {words.plain(finding.statement)} ({finding.grade.word})"
    yield from textwrap.wrap(title, width, subsequent_indent="  ")
    excluded = [f"{part.rival}: {part.text}" for part in finding.counter if part.ruled_out]
    unknown = [f"{part.rival}: {part.text}" for part in finding.counter if part.ruled_out is None]
    unknown += [part.text for part in finding.evidence if part.passed is None]
    because = [part.text for part in finding.evidence if part.passed]
    if is_first:
        yield from labelled("because", because[:MOST_REASONS], indent="  ", width=width)
        yield from labelled("not", [" · ".join(excluded)], indent="  ", width=width)
        yield from labelled("unknown", ["; ".join((*unknown, *finding.unknown))], indent="  ", width=width)
    else:
        yield from labelled("do", [finding.advice], indent="  ", width=width)
    yield from labelled("explains", [f.finding.statement for f in view.explains], indent="  ", width=width)


# --- pictures ---------------------------------------------------------------------------------------------


def picture_lines(chart: Chart, width: int) -> Iterator[str]:
    """Return a chart as its headline and the rows of its table, with a bar for each figure."""
    yield from textwrap.wrap(words.plain(chart.headline), width)
    table = charts.table(chart)
    if table is None:
        return
    shown = Table(table.columns, _rows_that_matter(table))
    view = cells.table_view(shown)
    columns = [[head, *(row[i].text for row in view.rows)] for i, head in enumerate(view.heads)]
    bars = [_bars([row[i] for row in shown.rows]) for i in range(len(columns))]
    wide = width >= sum(max(map(len, column)) + 2 for column in columns) + sum(BAR + 1 for b in bars if b)
    for at in range(len(view.rows) + 1):
        parts = []
        for column, bar, align in zip(columns, bars, view.aligns, strict=True):
            size = min(max(map(len, column)), width // 2)
            text = words.cut(words.plain(column[at]), size)
            parts.append(f"{text:>{size}}" if align == "right" else f"{text:<{size}}")
            if bar and wide:
                parts[-1] += f" {'' if at == 0 else bar[at - 1]:<{BAR}}"
        yield cut_to_width(f"  {'  '.join(parts)}".rstrip(), width)


def _rows_that_matter(table: Table) -> tuple[tuple[Cell, ...], ...]:
    """Return the rows of a table; of many those of the group in which the last figure is largest."""
    rows = table.rows
    if len(rows) <= MOST_SHORT:
        return rows
    worst = max(rows, key=lambda row: row[-1].point if isinstance(row[-1], Estimate) else 0.0)
    return tuple(row for row in rows if row[0] == worst[0])[-MOST_SHORT:]


def _bars(column: Sequence[Cell]) -> list[str]:
    """Return a bar from zero for each cell of a column of figures; empty: its cells are none."""
    if not any(isinstance(cell, Estimate) for cell in column):
        return []
    sizes = [point(cell) for cell in column]
    most = max(sizes, default=0.0)
    return ["" if most <= 0 else words.BLOCKS[-1] * round(BAR * size / most) for size in sizes]
