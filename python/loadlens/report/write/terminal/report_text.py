"""A report on a terminal: the answer, the verdicts, then each finding in at most eleven lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from loadlens.model.finding import Estimate, Finding
from loadlens.model.report import CaseDetail, Cell, Report
from loadlens.present import numbers, words
from loadlens.report.write.terminal.printing import print_lines

WIDTH = 80
LABEL = 11  # columns of "because", "not" ...
NO_BREAK = "\u00a0"  # keeps a figure on one line while others are wrapped; printed as a blank
SHOWN_PREDICTIONS = ("throughput", "response_time.mean")
MOST_ROWS = 8  # of a table; the report has them all


def print_report(report: Report, *, files: Iterable[Path] = ()) -> None:
    """Print the answer and the findings on stdout, and where the whole report is."""
    lines = list(report_lines(report))
    lines += [f"Report   {path}" for path in files]
    print_lines(lines, headings=[0])


def report_lines(report: Report) -> Iterator[str]:
    """The lines of a report: question, answer, badges, findings, limits."""
    yield words.plain(report.question)
    for sentence in report.answer:
        yield from textwrap.wrap(words.plain(sentence), WIDTH)
    yield ""
    yield from _wrapped_badges(report)
    roots = [finding for finding in report.findings if finding.explained_by is None]
    folded = [finding for finding in report.findings if finding.explained_by is not None]
    for number, finding in enumerate(roots, 1):
        yield ""
        yield from finding_lines(finding, number)
        for other in folded:
            if other.explained_by == finding.rule:
                yield from _cut_to_width(f"  explains   {words.plain(other.statement)}")
    if not roots:
        yield ""
        yield "No finding. " + words.grade_counts([], len(report.absent), len(report.not_assessed))
    yield from _predictions(report)
    yield from _checks(report)
    yield from _phases(report)
    yield from _reasons(report)
    yield from _proxies(report)
    if report.limits:
        yield ""
        yield from _labelled("limits", [words.plain(limit) for limit in report.limits[:3]], indent="")
        if len(report.limits) > 3:
            yield f"{'':<{LABEL}}and {len(report.limits) - 3} more in the report"


def _predictions(report: Report) -> Iterator[str]:
    """The score of the predictions, the throughputs and mean times among them, and what was not predicted."""
    if report.predictions is None:
        return
    yield ""
    rows = [row for row in report.predictions.rows if row.metric in SHOWN_PREDICTIONS]
    said = [
        f"{words.GLYPHS[row.state]} {row.name}: {words.metric(row.metric)}"
        f"{f' of {row.step}' if row.step else ''} "
        f"{numbers.show(row.predicted).with_interval}, measured {numbers.show(row.measured).short}"
        for row in rows[:MOST_ROWS]
    ]
    if len(rows) > MOST_ROWS:
        said.append(f"{words.plural(len(rows) - MOST_ROWS, 'more prediction')} in the report")
    yield from _labelled(
        "predicted", [words.plain(line) for line in (*report.predictions.lines, *said)], indent=""
    )


def _checks(report: Report) -> Iterator[str]:
    """The checks that most answers failed, over all cases; one line where all passed."""
    rows = [
        (detail.name, dict(zip((c.title for c in detail.checks.columns), row, strict=True)))
        for detail in report.details
        if detail.checks is not None
        for row in detail.checks.rows
    ]
    if not rows:
        return
    failed = [(case, row) for case, row in rows if row["failed"]]
    yield ""
    if not failed:
        judged = sum(int(str(row["passed"])) for _, row in rows)
        said = f"{words.plural(len(rows), 'check')} of all cases passed by every answer judged"
        yield from _labelled("checks", [f"{said} ({numbers.count(judged)} verdicts)"], indent="")
        return
    failed.sort(key=lambda pair: -_share(pair[1]["share failed"]))
    yield f"{'checks':<{LABEL}}{'passed':>9}{'failed':>9}{'share':>8}   what, where"
    for case, row in failed[:MOST_ROWS]:
        counts = "".join(f"{numbers.count(int(str(row[key]))):>9}" for key in ("passed", "failed"))
        share = numbers.with_unit(_share(row["share failed"]), "share")
        what = words.cut(words.plain(f"{row['check']} · {row['step']} · {case}"), WIDTH - LABEL - 29)
        yield f"{'':<{LABEL}}{counts}{share:>8}   {what}"
        yield from _cut_to_width(f"{'':<{LABEL + 4}}{words.plain(str(row['first that failed']))}")
    if len(failed) > MOST_ROWS:
        yield f"{'':<{LABEL}}and {len(failed) - MOST_ROWS} more in the report"


def _share(cell: Cell) -> float:
    return cell.point if isinstance(cell, Estimate) else 0.0


def _phases(report: Report) -> Iterator[str]:
    """p50 and p99 of each part of a request, by case; what was not made or is undecided has its word."""
    shown = [detail for detail in report.details if detail.phases is not None]
    yield from _by_case("p50 / p99", [(detail, _parts(detail) or ["undecided"]) for detail in shown])


def _by_case(label: str, said: Sequence[tuple[CaseDetail, list[str]]]) -> Iterator[str]:
    """A line for each of the first cases, under one label; how many more there are stands below."""
    if not said:
        return
    yield ""
    lines = [
        f"{words.cut(words.plain(detail.name), WIDTH // 2)}: {' · '.join(parts)}"
        for detail, parts in said[:MOST_ROWS]
    ]
    if len(said) > MOST_ROWS:
        lines.append(f"{words.plural(len(said) - MOST_ROWS, 'more case')} in the report")
    yield from (line.replace(NO_BREAK, " ") for line in _labelled(label, lines, indent=""))


def _parts(detail: CaseDetail) -> list[str]:
    return [
        f"{part} {said}".replace(" ", NO_BREAK)
        for part in words.PHASES.values()
        if (said := _part(detail, part))
    ]


def _part(detail: CaseDetail, part: str) -> str:
    """`0.31 / 4.20 ms` of all steps of a case; empty when it was not seen."""
    if detail.phases is None or not detail.phases.rows:
        return ""
    cells = dict(zip((column.title for column in detail.phases.columns), detail.phases.rows[0], strict=True))
    figures = [cells[title] for title in (part, f"{part} p50", f"{part} p99") if title in cells]
    known = [figure.point for figure in figures if isinstance(figure, Estimate)]
    if not known:
        return ""
    on = numbers.scale("s", known)
    said = " / ".join(numbers.value(point, on) for point in known)
    return f"{said} {on.name}" + ("" if len(known) == len(figures) else " (p99 undecided)")


def _reasons(report: Report) -> Iterator[str]:
    """Why requests failed where the class does not say it, each reason once, with what to try."""
    found = dict.fromkeys(
        (str(row[0]), str(row[1]), str(row[4]))
        for detail in report.details
        if detail.reasons is not None
        for row in detail.reasons.rows
    )
    if found:
        yield ""
        said = [f"{outcome}: {why}" + (f"; try {advice}" if advice else "") for outcome, why, advice in found]
        yield from _labelled("failed", [words.plain(text) for text in said[:3]], indent="")


def _proxies(report: Report) -> Iterator[str]:
    """What came to the fault proxies of each case, and what became of it."""
    shown = [detail for detail in report.details if detail.proxies is not None]
    yield from _by_case("proxy", [(detail, _done(detail)) for detail in shown])


def _done(detail: CaseDetail) -> list[str]:
    """`gate: 15,000 requests`, `40 % answered by the service`: the rows that are shares of its requests."""
    said: list[str] = []
    last = ""
    for proxy, what, count, share in detail.proxies.rows if detail.proxies is not None else ():
        if proxy != last and isinstance(count, Estimate):
            said.append(f"{words.plain(str(proxy))}: {numbers.show(count).short}".replace(" ", NO_BREAK))
        elif isinstance(share, Estimate):
            said.append(f"{numbers.with_unit(share.point, 'share')}{NO_BREAK}{what}")
        last = str(proxy)
    return said


def finding_lines(finding: Finding, number: int) -> list[str]:
    """One finding in at most eleven lines."""
    head = [
        *_cut_to_width(f"{number} {words.plain(finding.statement)}"),
        *_cut_to_width(f"  {finding.grade.word} · {finding.rule} · {words.plain(finding.scope)}"),
    ]
    because = [words.plain(part.text) for part in finding.evidence if part.passed]
    missing = [words.plain(part.text) for part in finding.evidence if part.passed is None]
    excluded = [f"{part.rival}: {part.text}" for part in finding.counter if part.ruled_out]
    unknown = [f"{part.rival}: {part.text}" for part in finding.counter if part.ruled_out is None]
    predicted = [
        f"{p.words} {numbers.show(p.before).short} → {numbers.show(p.after).with_interval}"
        for p in finding.predictions
    ]
    body: list[str] = []
    for label, parts, most in (
        ("because", because[:3], 1),
        ("not", [" · ".join(map(words.plain, excluded))], 1),
        ("unknown", ["; ".join(words.plain(part) for part in (*unknown, *missing, *finding.unknown))], 1),
        ("do", [words.plain(finding.advice)], 2),
        ("predicted", ["; ".join(map(words.plain, predicted))], 1),
        ("check", [words.plain(finding.confirm)], 1),
    ):
        body += _labelled(label, [part for part in parts if part], indent="  ", most=most)
    return [*head, *body]


def _labelled(label: str, parts: list[str], *, indent: str, most: int | None = None) -> list[str]:
    """Parts under one label, each wrapped over at most so many lines and cut there."""
    room = WIDTH - len(indent) - LABEL
    lines: list[str] = []
    for part in parts:
        wrapped = textwrap.wrap(part, room) or [""]
        if most is not None and len(wrapped) > most:
            last = textwrap.wrap(" ".join(wrapped[most - 1 :]), room - 1)[0]
            wrapped = [*wrapped[: most - 1], f"{last}…"]
        for line in wrapped:
            lines.append(f"{indent}{label if not lines else '':<{LABEL}}{line}")
    return lines


def _cut_to_width(text: str) -> list[str]:
    return [text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"]


def _wrapped_badges(report: Report) -> Iterator[str]:
    line = ""
    for badge in report.badges:
        text = f"{words.GLYPHS[badge.state]} {words.plain(badge.text)}"
        if line and len(line) + 2 + len(text) > WIDTH:
            yield line
            line = text
        else:
            line = f"{line}  {text}" if line else text
    if line:
        yield line
