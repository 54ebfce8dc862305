"""A report as sections of blocks: the one list that the page, Markdown and the terminal render.

The report is walked here and nowhere else. A block is one thing to show as final text; each writer renders
every kind of block and knows no section, so a section that is added here shows in all of them. A terminal has
room for little: of a section it shows the findings and the lines of `short`, and the rest is in the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from loadlens.model.finding import Absent, Estimate, Grade, NotAssessed
from loadlens.model.report import CaseDetail, Cell, Flame, Report, State, Table
from loadlens.present import numbers, objective_text, words
from loadlens.report.write import cells
from loadlens.report.write.cells import TableView
from loadlens.report.write.view import (
    FigureView,
    FindingView,
    Link,
    MatrixView,
    Trust,
    anchor,
    figure,
    findings_of,
    matrix_view,
    trust_of,
)

DRAWN_CASES = 8  # details whose charts are drawn; of the others only the tables are shown
MOST_SHORT = 8  # rows of a table on a terminal
MOST_REASONS = 3  # of failures and of limits on a terminal
LEAST_SHARE = 0.05  # of the samples of a flame graph, where it is text
SHORT_NAME = 40  # columns of a case's name on a terminal
SHORT_PREDICTIONS = ("throughput", "response_time.mean")
PREDICTED = (
    "held-out cases: predicted by simulation from the other cases and written down before they ran · "
    "off by: predicted over measured"
)
PUBLISHED = (
    "ratio: measured over published, both as multiples of the reference · a figure that cannot be true is "
    "struck out and counts in no agreement"
)

# --- kinds of blocks --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence, or a note in smaller type."""

    kind: ClassVar = "text"
    text: str
    is_note: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading below that of the section."""

    kind: ClassVar = "heading"
    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """Sentences below each other."""

    kind: ClassVar = "items"
    lines: tuple[str, ...]
    state: State | None = None  # of each: its glyph precedes it
    look: str = ""  # class on the page


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names with their values."""

    kind: ClassVar = "pairs"
    rows: tuple[tuple[str, str], ...]
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules without a finding, with the reason."""

    kind: ClassVar = "rules"
    rules: tuple[Absent | NotAssessed, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """A table."""

    kind: ClassVar = "rows"
    table: TableView
    label: str  # for a screen reader


@dataclass(frozen=True, slots=True)
class Code:
    """Lines as they are."""

    kind: ClassVar = "code"
    text: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A flame graph; where it cannot be drawn, its widest functions below their callers."""

    kind: ClassVar = "flame"
    flame: Flame
    note: str = ""

    @property
    def text(self) -> str:
        """The functions with at least 5 % of the samples, each with its share."""
        bars = sorted(self.flame.bars, key=lambda bar: (bar.begin, bar.depth))
        return "\n".join(
            f"{'  ' * bar.depth}{f'{bar.name} {bar.place}'.rstrip()}: {numbers.with_unit(bar.width, 'share')}"
            for bar in bars
            if bar.width >= LEAST_SHARE
        )


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks behind their title."""

    kind: ClassVar = "fold"
    title: str
    blocks: tuple[Block, ...]
    note: str = ""  # after the title
    is_open: bool = False
    state: State | None = None
    id: str = ""  # of a case: the title is a heading
    look: str = "plain"  # class on the page


Block = (
    Text
    | Heading
    | Items
    | Pairs
    | Rules
    | Rows
    | Code
    | Graph
    | Fold
    | FigureView
    | FindingView
    | MatrixView
)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report with a heading."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    nav: str | None = None  # in the page's list of sections; none: its title; empty: not there
    short: Mapping[str, Sequence[str]] = field(default_factory=dict)  # label -> lines, on a terminal
    leads: bool = False  # its short lines are on the first screen of a terminal
    is_long: bool = False  # in a file of its own where there are many cases


@dataclass(frozen=True, slots=True)
class View:
    """The whole report in order: its first screen, then the sections."""

    trust: Trust
    pictures: tuple[FigureView, ...]
    sections: tuple[Section, ...]

    @property
    def nav(self) -> tuple[Link, ...]:
        """The page's list of sections."""
        named = (
            (section.title if section.nav is None else section.nav, section.id) for section in self.sections
        )
        return tuple(Link(title, f"#{name}") for title, name in named if title)

    @property
    def summary(self) -> Link | None:
        """The worst verdict on the record."""
        return next(iter((*self.trust.caveats, *self.trust.rest)), None)

    @property
    def figures(self) -> tuple[FigureView, ...]:
        """Charts outside folds."""
        blocks = (block for section in self.sections for block in section.blocks)
        return (*self.pictures, *(block for block in blocks if isinstance(block, FigureView)))


def view(report: Report) -> View:
    """Return everything that the writers place."""
    drawn = _drawn(report)
    ids = {anchor(chart.anchor) for chart in report.charts}
    ids |= {anchor("case", detail.slug, chart.anchor) for detail in drawn for chart in detail.charts}
    findings = findings_of(report, ids)
    cited: dict[str, list[Link]] = {}
    for f in findings:
        for chart in dict.fromkeys(e.chart for e in f.finding.evidence if e.chart):
            cited.setdefault(chart, []).append(Link(f"finding {f.number}", f"#{f.id}"))
    sections = tuple(part for part in _sections(report, findings, drawn, cited) if part.blocks)
    return View(
        trust=trust_of(report, ids | {section.id for section in sections}),
        pictures=tuple(
            figure(c, cited) for name in report.pictures for c in report.charts if c.anchor == name
        ),
        sections=sections,
    )


# --- the sections -----------------------------------------------------------------------------------------


def _sections(
    report: Report,
    findings: Sequence[FindingView],
    drawn: Sequence[CaseDetail],
    cited: Mapping[str, Sequence[Link]],
) -> Iterator[Section]:
    effects, foretold, published = report.effects, report.predictions, report.published
    of_effects, of_published, others = _figures(report, cited)
    yield Section(
        "objectives",
        "Objectives",
        (Rows(cells.objectives(report.objectives), "objectives"),) if report.objectives else (),
        nav="",
        short={"objectives": _objectives(report)},
        leads=True,
    )
    if effects is not None:
        table = Rows(cells.table_view(effects.table), "effects")
        new = [line for line in effects.lines if f"{line}." not in report.answer]
        yield Section(
            "effects",
            "What each factor changes",
            (Items(effects.lines), *of_effects, Fold("All effects", (table,))),
            nav="Effects",
            short={"effects": new},
        )
    yield _findings(report, findings)
    if report.flame is not None:
        cost = f"{report.code.cost[:1].upper()}{report.code.cost[1:]}." if report.code.cost else ""
        yield Section("code", "Code at the highest level", (Graph(report.flame, cost),), nav="Code")
    matrices = tuple(matrix_view(matrix, i, report) for i, matrix in enumerate(report.matrices))
    count = sum(len(matrix.cells) for matrix in report.matrices)
    legend = Text(words.GLYPH_LEGEND, is_note=True)
    is_single = any(matrix.single for matrix in matrices)
    yield Section(
        "cases",
        "Cases",
        (*matrices, *(() if is_single or not matrices else (legend,))),
        nav=f"Cases {count}" if count else "Cases",
    )
    yield Section("charts", "Charts", others)
    if foretold is not None:
        rows = Rows(cells.predictions(foretold.rows), "predictions")
        models = () if foretold.models is None else (Rows(cells.table_view(foretold.models), "models"),)
        yield Section(
            "predictions",
            "Predictions",
            (
                Items(foretold.lines, look="agreement"),
                *((rows, Text(PREDICTED, is_note=True)) if foretold.rows else ()),
                *((Fold("What the predictions rest on", models),) if models else ()),
            ),
            short={"predicted": (*foretold.lines, *_predictions(report))},
            is_long=True,
        )
    yield Section(
        "details",
        "Per case",
        tuple(
            _detail(each, cited, is_drawn=any(each is other for other in drawn)) for each in report.details
        ),
        short={"checks": _checks(report), "failed": _failures(report), "proxy": _proxies(report)},
        is_long=True,
    )
    balances = all(row.state != "bad" for row in report.accounting)
    title = "The books balance: every request is accounted for" if balances else "The books do not balance"
    counts = (Rows(cells.accounting(report.accounting), "accounting"),)
    fold = Fold(title, counts, is_open=not balances, state="ok" if balances else "bad")
    yield Section("accounting", "Accounting", (fold,) if report.accounting else ())
    setup = () if report.setup is None else (Rows(cells.table_view(report.setup), "set-up"),)
    yield Section("setup", "Set-up", setup, is_long=True)
    yield Section("environment", "Environment", tuple(_environment(report)))
    more = len(report.limits) - MOST_REASONS
    yield Section(
        "limits",
        "Limits",
        (Items(report.limits or ("No limit was recorded.",)),),
        short={
            "limits": (
                *report.limits[:MOST_REASONS],
                *([f"and {more} more in the report"] if more > 0 else ()),
            )
        },
    )
    if published is not None:
        claims = (Rows(cells.claims(published.claims), "claims"),)
        figures = (Rows(cells.published(published.rows), "published figures"), Text(PUBLISHED, is_note=True))
        yield Section(
            "published",
            "Published",
            (
                Items(published.agreement, look="agreement"),
                *((Heading("Claims"), *claims) if published.claims else ()),
                *((Heading("Figures"), *figures) if published.rows else ()),
                *of_published,
            ),
        )
    glossary = tuple((term.word, term.meaning) for term in words.GLOSSARY)
    origin = (Pairs(report.versions), Pairs(report.digests, is_code=True))
    yield Section(
        "appendix",
        "Appendix",
        (
            *((Code("\n".join(report.commands)),) if report.commands else ()),
            Fold("Versions and digests", tuple(pairs for pairs in origin if pairs.rows)),
            Fold("Glossary", (Pairs(glossary),)),
        ),
        is_long=True,
    )


def _figures(report: Report, cited: Mapping[str, Sequence[Link]]) -> tuple[tuple[FigureView, ...], ...]:
    """Return the charts of the effects, of published figures, and those without a section of their own."""
    placed: tuple[list[FigureView], ...] = ([], [], [])
    for chart in report.charts:
        if chart.kind == "published" and report.published is not None:
            placed[1].append(figure(chart, cited))
        elif chart.anchor not in report.pictures:
            is_effect = report.effects is not None and chart.anchor == report.effects.chart
            placed[0 if is_effect else 2].append(figure(chart, cited))
    return tuple(map(tuple, placed))


def _findings(report: Report, findings: Sequence[FindingView]) -> Section:
    shown = [f for f in findings if f.finding.grade > Grade.SUSPECTED]
    suspected = [f for f in findings if f.finding.grade == Grade.SUSPECTED]
    roots = (finding.grade for finding in report.findings if finding.explained_by is None)
    counts = words.grade_counts(roots, len(report.absent), len(report.not_assessed))
    blocks: list[Block] = [Text(counts or "none", is_note=True), *shown]
    if not shown:
        why = "" if report.absent or report.not_assessed else ", because nothing could be assessed"
        blocks.append(Text(f"No finding: no rule saw a cause that its evidence supports{why}."))
    if suspected:
        title = f"Not confirmed: {words.plural(len(suspected), 'suspected finding')}"
        blocks.append(Fold(title, tuple(suspected)))
    if report.findings:
        grades = tuple((grade.word, meaning) for grade, meaning in words.GRADE_MEANINGS.items())
        blocks.append(Fold("What the grades mean", (Pairs(grades),)))
    for rules, what, why in (
        (report.absent, "Ruled out", "looked and stayed silent"),
        (report.not_assessed, "Not assessed", "could not look"),
    ):
        if rules:
            blocks.append(Fold(f"{what}: {words.plural(len(rules), 'rule')} {why}", (Rules(tuple(rules)),)))
    return Section(
        "findings",
        "Findings",
        tuple(blocks),
        nav=f"Findings {len(shown)}" if shown else "Findings",
        short={
            "findings": () if findings else [f"none · {counts}" if counts else "none"],
            "suspected": [f.finding.statement for f in suspected[:MOST_REASONS]],
        },
    )


def _drawn(report: Report) -> list[CaseDetail]:
    """Return the details whose charts are drawn: first open ones, then those that findings name."""
    scopes = " ".join(finding.scope for finding in report.findings)
    with_charts = [detail for detail in report.details if detail.charts]
    ranked = sorted(with_charts, key=lambda d: (not d.open, d.slug not in scopes and d.name not in scopes))
    return ranked[:DRAWN_CASES]


def _detail(detail: CaseDetail, cited: Mapping[str, Sequence[Link]], *, is_drawn: bool) -> Fold:
    unused = sum(trial.status != "complete" for trial in detail.trials)
    blocks: list[Block] = [Text(detail.plan)]
    trials = Rows(cells.trials(detail), f"trials of {detail.name}")
    blocks.append(trials if detail.trials else Text("No trial was run."))
    for title, table in cells.of_case(detail):
        blocks += [Heading(title), Rows(table, f"{title.lower()} of {detail.name}")]
    if detail.inside is not None:
        title = f"Seen from inside: {words.plural(len(detail.inside.rows), 'line')}"
        seen = Rows(cells.table_view(detail.inside), f"seen inside {detail.name}")
        blocks.append(Fold(title, (seen,)))
    if is_drawn:
        blocks += [figure(chart, cited, detail.slug) for chart in detail.charts]
    elif detail.charts:
        left_out = words.plural(len(detail.charts), "chart")
        note = f"{left_out} of this case not drawn, to keep the page small; the record holds the rows."
        blocks.append(Text(note, is_note=True))
    if detail.log_tail:
        blocks.append(Fold("end of the log", (Code(detail.log_tail),), look="log"))
    return Fold(
        detail.name,
        tuple(blocks),
        note=words.plural(len(detail.trials), "trial") + (f", {unused} not used" if unused else ""),
        is_open=detail.open,
        id=anchor("case", detail.slug),
        look="plain case-detail",
    )


def _environment(report: Report) -> Iterator[Block]:
    if report.environment_differences:
        yield Items(report.environment_differences, state="caution", look="differences")
    if report.environment or report.environment_differences:
        entries = words.plural(len(report.environment), "entry", "entries")
        same = "" if report.environment_differences else ", the same in every trial"
        yield Fold(entries + same, (Pairs(report.environment),))


# --- in short ---------------------------------------------------------------------------------------------


def _cut(lines: Sequence[str], what: str = "") -> list[str]:
    """Return as many lines as a terminal shows, and how many are left out."""
    more = len(lines) - MOST_SHORT
    named = words.plural(more, f"more {what}") if what else f"and {more} more"
    return [*lines[:MOST_SHORT], *([f"{named} in the report"] if more > 0 else [])]


def _objectives(report: Report) -> list[str]:
    """Return a sentence for each objective and case, the missed ones first: they are the exit code."""
    rows = sorted(report.objectives, key=lambda row: {"bad": 0, "unknown": 1}.get(row.state, 2))
    return _cut([objective_text.line(row) + (f" ({row.case})" if row.case else "") for row in rows])


def _predictions(report: Report) -> list[str]:
    """Return predicted and measured throughputs and mean times."""
    rows = () if report.predictions is None else report.predictions.rows
    lines = [
        f"{words.GLYPHS[row.state]} {row.name}: {words.metric(row.metric)}"
        f"{f' of {row.step}' if row.step else ''} "
        f"{numbers.show(row.predicted, on).with_interval}, measured {numbers.show(row.measured, on).short}"
        for row in rows
        if row.metric in SHORT_PREDICTIONS
        for on in [numbers.scale_of([row.predicted, row.measured])]
    ]
    return _cut(lines, "prediction")


def _checks(report: Report) -> list[str]:
    """Return the checks that most answers failed, over all cases; one line where all passed."""
    rows = [(detail.name, *row) for detail in report.details for row in _rows(detail.checks)]
    failed = [row for row in rows if row[4]]
    if not failed:
        verdicts = numbers.count(sum(int(point(row[3])) for row in rows))
        checks = f"{words.plural(len(rows), 'check')} of all cases passed by every answer judged"
        return [f"{checks} ({verdicts} verdicts)"] if rows else []
    failed.sort(key=lambda row: -point(row[5]))
    lines = [f"{'passed':>9}{'failed':>9}{'share':>8}   what, where"]
    for case, step, check, passed, count, share, _, first in failed[:MOST_SHORT]:
        counts = "".join(f"{numbers.count(int(point(each))):>9}" for each in (passed, count))
        of_all = numbers.with_unit(point(share), "share")
        lines += [
            f"{counts}{of_all:>8}   {words.cut(f'{check} · {step} · {case}', SHORT_NAME)}",
            f"    {first}",
        ]
    more = len(failed) - MOST_SHORT
    return [*lines, *([f"and {more} more in the report"] if more > 0 else [])]


def _rows(table: Table | None) -> tuple[tuple[Cell, ...], ...]:
    return () if table is None else table.rows


def point(cell: Cell) -> float:
    """Return the number in a cell; 0 for one without."""
    value = cell.point if isinstance(cell, Estimate) else cell
    return float(value) if isinstance(value, float | int) else 0.0


def _failures(report: Report) -> list[str]:
    """Return why requests failed where the class does not show it, each reason once, with what to try."""
    rows = (row for detail in report.details for row in _rows(detail.reasons))
    reasons = dict.fromkeys(f"{row[0]}: {row[1]}" + (f"; try {row[4]}" if row[4] else "") for row in rows)
    return list(reasons)[:MOST_REASONS]


def _proxies(report: Report) -> list[str]:
    """Return how many requests each fault proxy got, and the shares of them that it treated in some way."""
    return _cut([_proxy(detail) for detail in report.details if detail.proxies is not None], "case")


def _proxy(detail: CaseDetail) -> str:
    parts, last = [], ""
    for proxy, what, count, share in _rows(detail.proxies):
        if proxy != last and isinstance(count, Estimate):
            parts.append(words.unbroken(f"{proxy}: {numbers.show(count).short}"))
        elif isinstance(share, Estimate):
            # the words after the share may be wrapped
            parts.append(words.unbroken(f"{numbers.with_unit(share.point, 'share')} {what}"))
        last = str(proxy)
    return f"{words.cut(detail.name, SHORT_NAME)}: {' · '.join(parts)}"
