"""A report on a terminal: the answer, the verdicts, then each finding in at most eleven lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from loadlens.model.finding import Estimate
from loadlens.model.report import CaseDetail, Cell, Report, Table
from loadlens.present import numbers, words
from loadlens.report.write.terminal.printing import LABEL, WIDTH, cut_to_width, labelled, print_lines
from loadlens.report.write.view import FindingView, findings_of

NO_BREAK = "\u00a0"  # keeps a figure on one line while others are wrapped; printed as a blank
SHOWN_PREDICTIONS = ("throughput", "response_time.mean")
MOST_ROWS = 8  # of a table; the report has them all
MOST_REASONS = 3  # of a finding, of failures, of limits


def print_report(report: Report, *, files: Iterable[Path] = ()) -> None:
    """Print the answer and the findings on stdout, and where the whole report is."""
    lines = list(report_lines(report))
    lines += [f"Report   {path}" for path in files]
    print_lines(lines, headings=[0])


def report_lines(report: Report) -> Iterator[str]:
    """Return the lines of a report: question, answer, badges, findings, limits."""
    yield words.plain(report.question)
    for sentence in report.answer:
        yield from textwrap.wrap(words.plain(sentence), WIDTH)
    yield ""
    yield from _badges(report)
    if report.effects is not None:
        yield ""
        yield from labelled("effects", report.effects.lines, most=3)
    findings = findings_of(report, ids=set())
    for finding in findings:
        yield ""
        yield from finding_lines(finding)
        for other in finding.explains:
            yield cut_to_width(f"  explains   {words.plain(other.finding.statement)}")
    if not findings:
        yield ""
        yield "No finding. " + words.grade_counts([], len(report.absent), len(report.not_assessed))
    yield from _predictions(report)
    yield from _checks(report)
    yield from _phases(report)
    yield from _failures(report)
    yield from _proxies(report)
    if report.limits:
        yield ""
        yield from labelled("limits", report.limits[:MOST_REASONS])
        if len(report.limits) > MOST_REASONS:
            yield f"{'':<{LABEL}}and {len(report.limits) - MOST_REASONS} more in the report"


def _badges(report: Report) -> list[str]:
    # a badge is never broken over two lines
    badges = (f"{words.GLYPHS[b.state]} {words.plain(b.text)}".replace(" ", NO_BREAK) for b in report.badges)
    lines = textwrap.wrap("  ".join(badges), WIDTH, break_long_words=False, break_on_hyphens=False)
    return [line.replace(NO_BREAK, " ") for line in lines]


def finding_lines(view: FindingView) -> list[str]:
    """Return one finding in at most eleven lines."""
    finding = view.finding
    excluded = [f"{part.rival}: {part.text}" for part in finding.counter if part.ruled_out]
    unknown = [f"{part.rival}: {part.text}" for part in finding.counter if part.ruled_out is None]
    unknown += [part.text for part in finding.evidence if part.passed is None]
    predicted = (
        f"{p.words} {numbers.show(p.before).short} → {numbers.show(p.after).with_interval}"
        for p in finding.predictions
    )
    lines = [
        cut_to_width(f"{view.number} {words.plain(finding.statement)}"),
        cut_to_width(f"  {finding.grade.word} · {finding.rule} · {words.plain(finding.scope)}"),
    ]
    because = [part.text for part in finding.evidence if part.passed]
    for label, parts, most in (
        ("because", because[:MOST_REASONS], 1),
        ("not", [" · ".join(excluded)], 1),
        ("unknown", ["; ".join((*unknown, *finding.unknown))], 1),
        ("do", [finding.advice], 2),
        ("predicted", ["; ".join(predicted)], 1),
        ("check", [finding.confirm], 1),
    ):
        lines += labelled(label, parts, indent="  ", most=most)
    return lines


def _predictions(report: Report) -> Iterator[str]:
    """Return the score of the predictions, throughputs and mean times, and what was not predicted."""
    if report.predictions is None:
        return
    yield ""
    rows = [row for row in report.predictions.rows if row.metric in SHOWN_PREDICTIONS]
    lines = [
        f"{words.GLYPHS[row.state]} {row.name}: {words.metric(row.metric)}"
        f"{f' of {row.step}' if row.step else ''} "
        f"{numbers.show(row.predicted).with_interval}, measured {numbers.show(row.measured).short}"
        for row in rows[:MOST_ROWS]
    ]
    if len(rows) > MOST_ROWS:
        lines.append(f"{words.plural(len(rows) - MOST_ROWS, 'more prediction')} in the report")
    yield from labelled("predicted", (*report.predictions.lines, *lines))


def _named_rows(table: Table | None) -> list[dict[str, Cell]]:
    """Return the rows of a table by the titles of its columns."""
    if table is None:
        return []
    titles = [column.title for column in table.columns]
    return [dict(zip(titles, row, strict=True)) for row in table.rows]


def _checks(report: Report) -> Iterator[str]:
    """Return the checks that most answers failed, over all cases; one line where all passed."""
    rows = [(detail.name, row) for detail in report.details for row in _named_rows(detail.checks)]
    if not rows:
        return
    failed = [(case, row) for case, row in rows if row["failed"]]
    yield ""
    if not failed:
        judged = sum(int(str(row["passed"])) for _, row in rows)
        checks = f"{words.plural(len(rows), 'check')} of all cases passed by every answer judged"
        yield from labelled("checks", [f"{checks} ({numbers.count(judged)} verdicts)"])
        return
    failed.sort(key=lambda pair: -_share(pair[1]["share failed"]))
    yield f"{'checks':<{LABEL}}{'passed':>9}{'failed':>9}{'share':>8}   what, where"
    for case, row in failed[:MOST_ROWS]:
        counts = "".join(f"{numbers.count(int(str(row[key]))):>9}" for key in ("passed", "failed"))
        share = numbers.with_unit(_share(row["share failed"]), "share")
        what = words.cut(words.plain(f"{row['check']} · {row['step']} · {case}"), WIDTH - LABEL - 29)
        yield f"{'':<{LABEL}}{counts}{share:>8}   {what}"
        yield cut_to_width(f"{'':<{LABEL + 4}}{words.plain(str(row['first that failed']))}")
    if len(failed) > MOST_ROWS:
        yield f"{'':<{LABEL}}and {len(failed) - MOST_ROWS} more in the report"


def _share(cell: Cell) -> float:
    return cell.point if isinstance(cell, Estimate) else 0.0


def _by_case(label: str, cases: Sequence[tuple[CaseDetail, Sequence[str]]]) -> Iterator[str]:
    """Return a line for each of the first cases, under one label, and the number of the others."""
    if not cases:
        return
    yield ""
    lines = []
    for detail, parts in cases[:MOST_ROWS]:
        kept = " · ".join(part.replace(" ", NO_BREAK) for part in parts)
        lines.append(f"{words.cut(words.plain(detail.name), WIDTH // 2)}: {kept}")
    if len(cases) > MOST_ROWS:
        lines.append(f"{words.plural(len(cases) - MOST_ROWS, 'more case')} in the report")
    yield from (line.replace(NO_BREAK, " ") for line in labelled(label, lines))


def _phases(report: Report) -> Iterator[str]:
    """Return p50 and p99 of each part of a request, by case: `first byte 0.31 / 4.20 ms`."""
    cases = []
    for detail in report.details:
        if detail.phases is not None:
            row = next(iter(_named_rows(detail.phases)), {})
            parts = [text for part in words.PHASES.values() if (text := _part(row, part))]
            cases.append((detail, parts or ["undecided"]))
    yield from _by_case("p50 / p99", cases)


def _part(row: dict[str, Cell], part: str) -> str:
    figures = [row[title] for title in (part, f"{part} p50", f"{part} p99") if title in row]
    points = [figure.point for figure in figures if isinstance(figure, Estimate)]
    if not points:
        return ""
    on = numbers.scale("s", points)
    shown = " / ".join(numbers.value(point, on) for point in points)
    return f"{part} {shown} {on.name}" + ("" if len(points) == len(figures) else " (p99 undecided)")


def _failures(report: Report) -> Iterator[str]:
    """Return why requests failed where the class does not show it, each reason once, with what to try."""
    reasons = dict.fromkeys(
        f"{row[0]}: {row[1]}" + (f"; try {row[4]}" if row[4] else "")
        for detail in report.details
        if detail.reasons is not None
        for row in detail.reasons.rows
    )
    if reasons:
        yield ""
        yield from labelled("failed", list(reasons)[:MOST_REASONS])


def _proxies(report: Report) -> Iterator[str]:
    """Return how many requests each fault proxy got, and the shares of them that it treated in some way."""
    cases = []
    for detail in report.details:
        if detail.proxies is None:
            continue
        parts, last = [], ""
        for proxy, what, count, share in detail.proxies.rows:
            if proxy != last and isinstance(count, Estimate):
                parts.append(f"{words.plain(str(proxy))}: {numbers.show(count).short}")
            elif isinstance(share, Estimate):
                # the words after the share may be wrapped
                parts.append(f"{numbers.with_unit(share.point, 'share')} {what}")
            last = str(proxy)
        cases.append((detail, parts))
    yield from _by_case("proxy", cases)
