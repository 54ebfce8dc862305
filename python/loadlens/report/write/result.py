"""A result in the forms that other programs read: CSV, Markdown for the summary of a CI job, JUnit XML.

Loads, answers of `explain` and reports become a `Result` in `result_of.py`; here it becomes text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree

from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided
from loadlens.model.report import Column, ObjectiveRow, Table
from loadlens.present import numbers, words
from loadlens.report.write import cells
from loadlens.report.write.escaping import escaped, table

HEAD: Final = ("case", "step", "metric", "unit", "value", "low", "high", "trials", "samples", "note")
MOST_CASES: Final = 100  # rows of the Markdown table; CSV has all of them


@dataclass(frozen=True, slots=True)
class Row:
    """One figure, or one bare number such as a count."""

    metric: str
    value: Figure | float
    unit: str = ""  # of a bare number and of a figure that was not measured
    case: str = ""  # empty: the whole
    step: str = ""  # of a case: a request, step or probe; empty: all of them
    note: str = ""
    label: str = ""  # in Markdown; empty: CSV only

    @property
    def figure(self) -> Figure | None:
        """The figure; `None` for a bare number."""
        return None if isinstance(self.value, int | float) else self.value


@dataclass(frozen=True, slots=True)
class Result:
    """An outcome that all three forms show."""

    title: str
    lines: tuple[str, ...]  # the answer, then what belongs to it
    objectives: tuple[ObjectiveRow, ...]
    rows: tuple[Row, ...]
    subject: str  # the first test in JUnit: "load"
    seconds: float | None = None
    failure: str = ""  # the reason if the service failed as a whole
    error: str = ""  # the reason if nothing can be judged
    picture: str = ""  # of the curve or the pairs, as a block of Markdown


def as_csv(result: Result) -> str:
    """Return one row for each figure, with its 95 % interval, and each count."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows(map(cells_of, result.rows))
    return text.getvalue()


def cells_of(row: Row) -> tuple[object, ...]:
    """Return a row under the columns of HEAD; what is not known is empty."""
    return row.case, row.step, row.metric, *_fields(row)


def _fields(row: Row) -> tuple[object, ...]:
    match row.value:
        case Estimate() as figure:
            low, high = ("" if bound is None else bound for bound in (figure.low, figure.high))
            return figure.unit, figure.point, low, high, figure.trials, figure.samples, row.note
        case Undecided() | NotMeasured() as figure:
            unit = figure.unit if isinstance(figure, Undecided) else row.unit
            return unit, "", "", "", "", "", row.note or figure.reason
        case number:
            return row.unit, number, "", "", "", "", row.note


def as_markdown(result: Result) -> str:
    """Return a short page: the answer, objectives, figures of the whole, a row for each case."""
    head, *others = result.lines
    text = [f"## {escaped(result.title)}", "", f"**{escaped(head)}**", ""]
    text += [f"- {escaped(line)}" for line in others] + ([""] if others else [])
    text += [result.picture, ""] if result.picture else []
    if result.objectives:
        text += table(cells.objectives(result.objectives))
    whole = [(row.label, row.figure) for row in result.rows if row.label and not (row.case or row.step)]
    if whole:
        text += ["| | value | 95 % interval |", "| --- | ---: | ---: |"]
    for label, figure in whole:
        if figure is not None:
            shown = numbers.show(figure)
            text.append(f"| {escaped(label)} | {escaped(shown.short)} | {escaped(shown.interval)} |")
    text += [""] if whole else []
    text += _cases([row for row in result.rows if row.label and (row.case or row.step)])
    return "\n".join(text).rstrip() + "\n"


def _cases(rows: Iterable[Row]) -> list[str]:
    """Return a table with a row for each case, or for each step of the only one."""
    lines: dict[str, dict[str, Row]] = {}
    title = "request"
    for row in rows:
        title = "case" if row.case else title
        lines.setdefault(row.case or row.step, {})[row.label] = row
    if not lines:
        return []
    labels = list(dict.fromkeys(label for line in lines.values() for label in line))
    shown = list(lines.items())[:MOST_CASES]
    view = cells.table_view(
        Table(
            (Column(title, align="left"), *(Column(label) for label in labels)),
            tuple(
                (name, *(line[label].figure if label in line else None for label in labels))
                for name, line in shown
            ),
            f"and {len(lines) - len(shown)} more in the CSV" if len(lines) > len(shown) else "",
        )
    )
    return table(view)


def as_junit(result: Result) -> str:
    """Return a test for the subject and one for each objective.

    Met passes, missed is a failure. What cannot be judged, undecided or not measured, is an error.
    """
    suite = ElementTree.Element("testsuite", name=words.plain(result.title))
    first = ElementTree.SubElement(suite, "testcase", classname="loadlens", name=result.subject)
    if result.seconds is not None:
        for timed in (suite, first):
            timed.set("time", f"{result.seconds:.3f}")
    for kind, reason in (("failure", result.failure), ("error", result.error)):
        if reason:
            ElementTree.SubElement(first, kind, message=words.plain(reason))
    for row in result.objectives:
        title = " · ".join(part for part in (row.case, f"{row.objective} {row.limit}") if part)
        test = ElementTree.SubElement(suite, "testcase", classname="loadlens", name=words.plain(title))
        shown = numbers.show(row.figure)
        value = f": {shown.with_interval}" if shown.state == "measured" else ""
        if row.state != "ok":
            kind = "failure" if row.state == "bad" else "error"
            ElementTree.SubElement(test, kind, message=words.plain(f"{row.word}{value}"))
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall(".//failure"))))
    suite.set("errors", str(len(suite.findall(".//error"))))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
