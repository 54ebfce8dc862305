"""A report on a terminal: the first screen of the page, then the other findings, a line each."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from loadlens.model.finding import Estimate, Grade
from loadlens.model.report import CaseDetail, Cell, Chart, Report, Table
from loadlens.present import charts, numbers, terminal, words
from loadlens.report.write import cells
from loadlens.report.write.terminal.hit_summary import objective_lines
from loadlens.report.write.terminal.printing import (
    LABEL,
    cut_to_width,
    labelled,
    print_lines,
)
from loadlens.report.write.view import FindingView, findings_of, trust_of

NO_BREAK = "\u00a0"  # keeps a figure on one line while others are wrapped; printed as a blank
SHOWN_PREDICTIONS = ("throughput", "response_time.mean")
MOST_ROWS = 8  # of a table; the report has them all
MOST_REASONS = 3  # of a finding, of failures, of limits
BAR = 10  # columns


def print_report(report: Report, *, files: Iterable[Path] = ()) -> None:
    """Print the first screen and the findings on stdout, and where the whole report is."""
    width = terminal.width()
    lines = list(report_lines(report, width))
    lines += [f"Report   {path}" for path in files]
    print_lines(lines, headings=range(len(textwrap.wrap(_headline(report), width))))


def _headline(report: Report) -> str:
    return words.plain(report.answer[0]).rstrip(".")


def report_lines(report: Report, width: int = terminal.USUAL_WIDTH) -> Iterator[str]:
    """Return the lines of a report: the answer, its pictures, what to do; other findings, limits."""
    yield from textwrap.wrap(_headline(report), width)
    for sentence in report.answer[1:]:
        yield from textwrap.wrap(words.plain(sentence), width)
    drawn = {chart.anchor: chart for chart in report.charts}
    for name in report.pictures:
        yield ""
        yield from picture_lines(drawn[name], width)
    yield ""
    for line in report.lines:
        if not line.is_command:
            yield from labelled(line.label, [line.text], width=width)
    yield from labelled("objectives", _objectives(report), width=width)
    yield from labelled("trust", [_trust(report)], width=width)
    for line in report.lines:
        if line.is_command:
            yield f"{line.label:<{LABEL}}{words.plain(line.text)}"
    yield from _effects(report, width)
    yield from _findings(report, width)
    yield from _predictions(report, width)
    yield from _checks(report, width)
    yield from _failures(report, width)
    yield from _proxies(report, width)
    if report.limits:
        yield ""
        yield from labelled("limits", report.limits[:MOST_REASONS], width=width)
        if len(report.limits) > MOST_REASONS:
            yield f"{'':<{LABEL}}and {len(report.limits) - MOST_REASONS} more in the report"


def _objectives(report: Report) -> Iterator[str]:
    """Return a sentence for each objective and case, the missed ones first: they are the exit code."""
    rows = sorted(report.objectives, key=lambda row: {"bad": 0, "unknown": 1}.get(row.state, 2))
    for row, line in list(zip(rows, objective_lines(rows), strict=True))[:MOST_ROWS]:
        yield f"{line} ({row.case})" if row.case else line
    if len(rows) > MOST_ROWS:
        yield f"and {len(rows) - MOST_ROWS} more in the report"


def _effects(report: Report, width: int) -> Iterator[str]:
    """Yield the effects that the answer does not name."""
    lines = () if report.effects is None else report.effects.lines
    others = [line for line in lines if f"{line}." not in report.answer]
    if others:
        yield ""
        yield from labelled("effects", others, width=width)


def _trust(report: Report) -> str:
    trust = trust_of(report, ids=set())
    caveats = [f"{words.GLYPHS[badge.state]} {badge.text}" for badge in trust.caveats]
    return " · ".join((*caveats, *([trust.words] if trust.words else [])))


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
    if len(rows) <= MOST_ROWS:
        return rows
    worst = max(rows, key=lambda row: row[-1].point if isinstance(row[-1], Estimate) else 0.0)
    return tuple(row for row in rows if row[0] == worst[0])[-MOST_ROWS:]


def _bars(column: Sequence[Cell]) -> list[str]:
    """Return a bar from zero for each cell of a column of figures; empty: its cells are none."""
    if not any(isinstance(cell, Estimate) for cell in column):
        return []
    sizes = [_point(cell) for cell in column]
    most = max(sizes, default=0.0)
    return ["" if most <= 0 else words.BLOCKS[-1] * round(BAR * size / most) for size in sizes]


# --- findings ---------------------------------------------------------------------------------------------


def _findings(report: Report, width: int) -> Iterator[str]:
    """Yield the first finding with its evidence, a line for each other one, and what is not confirmed."""
    findings = findings_of(report, ids=set())
    if not findings:
        yield ""
        yield "No finding. " + words.grade_counts([], len(report.absent), len(report.not_assessed))
        return
    shown = [view for view in findings if view.finding.grade > Grade.SUSPECTED]
    for at, view in enumerate(shown):
        yield ""
        yield from _finding(view, width, is_first=at == 0)
    suspected = [view.finding.statement for view in findings if view.finding.grade == Grade.SUSPECTED]
    if suspected:
        yield ""
        yield from labelled("suspected", suspected[:MOST_REASONS], width=width)


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


def _predictions(report: Report, width: int) -> Iterator[str]:
    """Return the score of the predictions, throughputs and mean times, and what was not predicted."""
    if report.predictions is None:
        return
    yield ""
    rows = [row for row in report.predictions.rows if row.metric in SHOWN_PREDICTIONS]
    lines = [
        f"{words.GLYPHS[row.state]} {row.name}: {words.metric(row.metric)}"
        f"{f' of {row.step}' if row.step else ''} "
        f"{numbers.show(row.predicted, on).with_interval}, measured {numbers.show(row.measured, on).short}"
        for row in rows[:MOST_ROWS]
        for on in [numbers.scale_of([row.predicted, row.measured])]
    ]
    if len(rows) > MOST_ROWS:
        lines.append(f"{words.plural(len(rows) - MOST_ROWS, 'more prediction')} in the report")
    yield from labelled("predicted", (*report.predictions.lines, *lines), width=width)


def _checks(report: Report, width: int) -> Iterator[str]:
    """Return the checks that most answers failed, over all cases; one line where all passed."""
    rows = [
        (detail.name, row)
        for detail in report.details
        for row in (() if detail.checks is None else detail.checks.rows)
    ]
    if not rows:
        return
    failed = [
        (_point(share), f"{check} · {step} · {case}", (passed, count), first)
        for case, (step, check, passed, count, share, _, first) in rows
        if count
    ]
    yield ""
    if not failed:
        judged = sum(int(_point(passed)) for _, (_, _, passed, *_) in rows)
        checks = f"{words.plural(len(rows), 'check')} of all cases passed by every answer judged"
        yield from labelled("checks", [f"{checks} ({numbers.count(judged)} verdicts)"], width=width)
        return
    failed.sort(key=lambda entry: -entry[0])
    yield f"{'checks':<{LABEL}}{'passed':>9}{'failed':>9}{'share':>8}   what, where"
    for share, what, verdicts, first in failed[:MOST_ROWS]:
        counts = "".join(f"{numbers.count(int(_point(count))):>9}" for count in verdicts)
        named = words.cut(words.plain(what), width - LABEL - 29)
        yield f"{'':<{LABEL}}{counts}{numbers.with_unit(share, 'share'):>8}   {named}"
        yield cut_to_width(f"{'':<{LABEL + 4}}{words.plain(str(first))}", width)
    if len(failed) > MOST_ROWS:
        yield f"{'':<{LABEL}}and {len(failed) - MOST_ROWS} more in the report"


def _point(cell: Cell) -> float:
    """Return the number in a cell; 0 for one without."""
    value = cell.point if isinstance(cell, Estimate) else cell
    return float(value) if isinstance(value, float | int) else 0.0


def _failures(report: Report, width: int) -> Iterator[str]:
    """Return why requests failed where the class does not show it, each reason once, with what to try."""
    reasons = dict.fromkeys(
        f"{row[0]}: {row[1]}" + (f"; try {row[4]}" if row[4] else "")
        for detail in report.details
        if detail.reasons is not None
        for row in detail.reasons.rows
    )
    if reasons:
        yield ""
        yield from labelled("failed", list(reasons)[:MOST_REASONS], width=width)


def _proxies(report: Report, width: int) -> Iterator[str]:
    """Return how many requests each fault proxy got, and the shares of them that it treated in some way."""
    lines = [_proxy(detail, width) for detail in report.details if detail.proxies is not None]
    if not lines:
        return
    yield ""
    if len(lines) > MOST_ROWS:
        lines[MOST_ROWS:] = [f"{words.plural(len(lines) - MOST_ROWS, 'more case')} in the report"]
    yield from (line.replace(NO_BREAK, " ") for line in labelled("proxy", lines, width=width))


def _proxy(detail: CaseDetail, width: int) -> str:
    parts, last = [], ""
    for proxy, what, count, share in () if detail.proxies is None else detail.proxies.rows:
        if proxy != last and isinstance(count, Estimate):
            parts.append(f"{words.plain(str(proxy))}: {numbers.show(count).short}".replace(" ", NO_BREAK))
        elif isinstance(share, Estimate):
            # the words after the share may be wrapped
            parts.append(f"{numbers.with_unit(share.point, 'share')} {what}".replace(" ", NO_BREAK))
        last = str(proxy)
    return f"{words.cut(words.plain(detail.name), width // 2)}: {' · '.join(parts)}"
