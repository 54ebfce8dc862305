"""The sections of the Markdown report and the files beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from loadlens.model.finding import Figure, Finding, Grade
from loadlens.model.report import CaseDetail, Chart, Report
from loadlens.present import charts, numbers, words
from loadlens.report.write.cells import predictions_table, tables_of
from loadlens.report.write.markdown.escaping import block, code, escaped, folded
from loadlens.report.write.markdown.markdown_tables import (
    accounting,
    claims,
    figures,
    matrix,
    objectives,
    trials,
    with_table,
)

MAIN = "report.md"
CASES = "cases.md"
PICTURES = "charts"
_CASES_INLINE = 16  # so many cases stand in the report itself


def page(report: Report) -> str:
    """`report.md`: at most about 300 lines for 36 cases, because cases beyond that stand in `cases.md`."""
    return "\n".join([*_lines(report)]).rstrip() + "\n"


def files(report: Report) -> Mapping[str, str]:
    """Every file by its name, relative to the report: the report, its pictures, and the cases where many."""
    found = {MAIN: page(report)}
    for chart in filter(charts.has_rows, report.charts):
        found[_picture_name(chart)] = charts.svg(chart)
    if _are_apart(report):
        found[CASES] = "\n".join(_cases_apart(report)).rstrip() + "\n"
    return found


def _cases_apart(report: Report) -> Iterator[str]:
    """What would make the report long: every metric of the matrices, the set-up, every case, the glossary."""
    yield from (f"# {escaped(report.study)}: cases", "", f"Part of [the report]({MAIN}).", "")
    for one in report.matrices:
        yield from matrix(one, whole=True)
    yield from _predictions(report)
    yield from _setup(report)
    yield from _details(report.details)
    yield from _glossary()


def _are_apart(report: Report) -> bool:
    return len(report.details) > _CASES_INLINE


def _picture_name(chart: Chart) -> str:
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in chart.anchor).strip(
        ".-"
    )
    return f"{PICTURES}/{safe or 'chart'}.svg"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {escaped(report.question)}"
    yield ""
    for sentence in report.answer:
        yield escaped(sentence)
        yield ""
    for badge in report.badges:
        yield f"- {words.GLYPHS[badge.state]} {escaped(badge.text)}"
    yield ""
    if report.conditions:
        yield " · ".join(map(escaped, report.conditions))
        yield ""
    if report.objectives:
        yield from ("## Objectives", "", *objectives(report.objectives))
    yield from _findings(report)
    if report.matrices:
        yield from ("## Cases", "")
        for one in report.matrices:
            yield from matrix(one, whole=not _are_apart(report))
    if report.predictions is not None and _are_apart(report):
        score = f"{escaped(report.predictions.lines[0])}. " if report.predictions.lines else ""
        yield from (f"Predictions: {score}All of them stand in [{CASES}]({CASES}).", "")
    else:
        yield from _predictions(report)
    yield from _published(report)
    others = [c for c in report.charts if c.kind != "published" or report.published is None]
    if others:
        yield from ("## Charts", "")
        for chart in others:
            yield from _chart(chart)
    if report.details:
        yield from ("## Per case", "")
        if _are_apart(report):
            said = f"{words.plural(len(report.details), 'case')}, all metrics, the set-up and the glossary"
            yield from (f"{said} in [{CASES}]({CASES}).", "")
        else:
            yield from _details(report.details)
    yield from _rest(report)


def _findings(report: Report) -> Iterator[str]:
    yield "## Findings"
    yield ""
    shown = [f.grade for f in report.findings if f.explained_by is None]
    yield escaped(words.grade_counts(shown, len(report.absent), len(report.not_assessed)) or "none")
    yield ""
    rules = {finding.rule for finding in report.findings}
    roots = [f for f in report.findings if f.explained_by is None or f.explained_by not in rules]
    for number, finding in enumerate(roots, 1):
        yield from _finding(finding, number)
        for other in report.findings:
            if other.explained_by == finding.rule and other is not finding and finding.explained_by is None:
                yield from folded(f"explains: {other.statement} ({other.grade.word})", list(_reasons(other)))
    if report.findings:
        meanings = [f"- {grade.word}: {words.GRADE_MEANINGS[grade]}" for grade in sorted(Grade, reverse=True)]
        yield from folded("What the grades mean", [*meanings, ""])
    if report.absent:
        silent = [f"- {escaped(a.title)} ({code(a.rule)}): {escaped(a.reason)}" for a in report.absent]
        yield from folded(
            f"Ruled out: {words.plural(len(silent), 'rule')} looked and stayed silent", [*silent, ""]
        )
    if report.not_assessed:
        blind = [f"- {escaped(a.title)} ({code(a.rule)}): {escaped(a.reason)}" for a in report.not_assessed]
        yield from folded(f"Not assessed: {words.plural(len(blind), 'rule')} could not look", [*blind, ""])


def _finding(finding: Finding, number: int) -> Iterator[str]:
    yield f"### {number}. {escaped(finding.statement)}"
    yield ""
    yield f"**{finding.grade.word}** · {code(finding.rule)} · {escaped(finding.scope)}"
    yield ""
    yield from _reasons(finding)


def _reasons(finding: Finding) -> Iterator[str]:
    yield escaped(finding.explanation)
    yield ""
    marks = {True: "●", False: "■", None: "○"}
    for evidence in finding.evidence:
        yield f"- {marks[evidence.passed]} {escaped(evidence.text)}"
    for said, verdict in (("ruled out", True), ("could not be excluded", None), ("not ruled out", False)):
        rivals = [f"{c.rival} ({c.text})" for c in finding.counter if c.ruled_out is verdict]
        if rivals:
            yield f"- {said}: {escaped(' · '.join(rivals))}"
    for text in finding.unknown:
        yield f"- not known: {escaped(text)}"
    if finding.advice:
        yield f"- do: {escaped(finding.advice)}"
    for p in finding.predictions:
        yield f"- predicted: {escaped(p.words)}: {_said(p.before)} → {_said(p.after)}"
    if finding.confirm:
        yield f"- to confirm: {code(finding.confirm)}"
    yield ""


def _said(figure: Figure) -> str:
    return escaped(numbers.show(figure).with_interval)


def _predictions(report: Report) -> Iterator[str]:
    if report.predictions is None:
        return
    yield from ("## Predictions", "")
    yield from (f"- {escaped(line)}" for line in report.predictions.lines)
    yield ""
    told = predictions_table(report.predictions)
    if told is not None:
        yield from with_table(told)
    if report.predictions.models is not None:
        yield from folded("What the predictions rest on", with_table(report.predictions.models))


def _published(report: Report) -> Iterator[str]:
    if report.published is None:
        return
    yield "## Published"
    yield ""
    for line in report.published.agreement:
        yield f"- {escaped(line)}"
    yield ""
    yield from claims(report.published.claims)
    yield from figures(report.published.rows)
    for chart in report.charts:
        if chart.kind == "published":
            yield from _chart(chart)


def _chart(chart: Chart) -> Iterator[str]:
    alt = escaped(chart.headline)
    yield f"### {alt}"
    yield ""
    if not charts.has_rows(chart):
        yield from ("Not drawn: nothing was measured for it.", "")
        return
    notes = charts.draw(chart).notes
    yield f"![{alt}]({_picture_name(chart)})"
    yield ""
    yield escaped(charts.caption(chart, notes))
    yield ""
    rows = charts.table(chart)
    if rows:
        yield from folded("table", with_table(rows))


def _details(details: Iterable[CaseDetail]) -> Iterator[str]:
    for detail in details:
        unused = [trial for trial in detail.trials if trial.status != "complete"]
        summary = f"{detail.name}: {words.plural(len(detail.trials), 'trial')}"
        summary += f", {len(unused)} not used" if unused else ""
        body = [escaped(detail.plan), "", *trials(detail)]
        for title, content in tables_of(detail):
            body += [f"{title}:", "", *with_table(content)]
        if detail.inside:
            body += ["Seen from inside:", "", *with_table(detail.inside)]
        if detail.log_tail:
            body += ["End of the log:", "", *block(detail.log_tail), ""]
        yield from folded(summary, body, is_open=detail.open)


def _rest(report: Report) -> Iterator[str]:
    if report.accounting:
        balanced = all(row.state != "bad" for row in report.accounting)
        said = "The books balance: every request is accounted for" if balanced else "The books do not balance"
        yield from ("## Accounting", "", *folded(said, accounting(report.accounting), is_open=not balanced))
    if not _are_apart(report):
        yield from _setup(report)
    if report.environment or report.environment_differences:
        yield from ("## Environment", "")
        for line in report.environment_differences:
            yield f"- ▲ {escaped(line)}"
        yield ""
        pairs = [f"- {escaped(name)}: {escaped(value)}" for name, value in report.environment]
        yield from folded(words.plural(len(pairs), "entry", "entries"), [*pairs, ""])
    yield from ("## Limits", "")
    yield from (f"- {escaped(line)}" for line in report.limits or ("No limit was recorded.",))
    yield ""
    yield from ("## Appendix", "")
    for command in report.commands:
        yield from block(command)
        yield ""
    versions = [f"- {escaped(name)} {escaped(value)}" for name, value in report.versions]
    digests = [f"- {escaped(name)} {code(value)}" for name, value in report.digests]
    yield from folded("Versions and digests", [*versions, *digests, ""])
    if not _are_apart(report):
        yield from _glossary()
    if report.record_digest:
        yield f"Record {code(report.record_digest)}"


def _setup(report: Report) -> Iterator[str]:
    if report.setup is not None:
        yield from ("## Set-up", "", *with_table(report.setup))


def _glossary() -> list[str]:
    terms = [f"- {escaped(term.word)}: {escaped(term.meaning)}" for term in words.GLOSSARY]
    return folded("Glossary", [*terms, ""])
