"""A report on a terminal: the answer, the verdicts, then each finding in at most eleven lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from loadlens.looks import numbers, words
from loadlens.model.finding import Finding
from loadlens.model.report import Report
from loadlens.render.terminal.printing import print_lines

WIDTH = 80
LABEL = 11  # columns of "because", "not" ...


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
    if report.limits:
        yield ""
        yield from _labelled("limits", [words.plain(limit) for limit in report.limits[:3]], indent="")
        if len(report.limits) > 3:
            yield f"{'':<{LABEL}}and {len(report.limits) - 3} more in the report"


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
        f"{p.what} {numbers.show(p.before).short} → {numbers.show(p.after).with_interval}"
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
