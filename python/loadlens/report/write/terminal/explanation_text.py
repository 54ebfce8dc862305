"""The answer of `explain` on a terminal: the limit, then why, what to do, what is not known, the ladder."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from loadlens.model.explanation import Explanation, Rung
from loadlens.model.finding import Estimate, Figure, Finding
from loadlens.model.notes import NOTES
from loadlens.model.report import ObjectiveRow
from loadlens.present import numbers, terminal, words
from loadlens.report.write.terminal.printing import WIDTH, cut_to_width, labelled, print_lines

MOST_RUNGS = 10
MOST_QUOTES = 3
MOST_CAUTIONS = 5
MOST_UNKNOWN = 3


def print_explanation(answer: Explanation, *, quiet: bool = False) -> None:
    """Print the answer on stdout; quietly only its first lines."""
    width = terminal.width()
    head = len(textwrap.wrap(words.plain(answer.sentence), width))
    print_lines(list(explanation_lines(answer, quiet=quiet, width=width)), headings=range(head))


def explanation_lines(answer: Explanation, *, quiet: bool = False, width: int = WIDTH) -> Iterator[str]:
    """The lines of an answer."""
    yield from textwrap.wrap(words.plain(answer.sentence), width)
    if quiet:
        return
    yield ""
    root = next((f for f in answer.findings if f.rule == answer.limit), None)
    yield from labelled("objective", [_objective(row) for row in answer.objectives], width=width)
    yield from _evidence(root, width)
    yield from labelled("code", answer.code.lines, width=width)
    yield from labelled("answers", answer.quotes[:MOST_QUOTES], width=width)
    yield from labelled("capacity", [capacity_in_words(answer)], width=width)
    yield from labelled("others", [answer.others], width=width)
    yield from labelled("do", [answer.do], width=width)
    yield from labelled("brings", [answer.brings], width=width)
    yield from labelled("unknown", [gap.what for gap in answer.unknown[:MOST_UNKNOWN]], width=width)
    decided_by = next((gap.decided_by for gap in answer.unknown if gap.decided_by), "")
    yield from labelled("decides", [decided_by], width=width)
    yield from _others_found(answer, width)
    if answer.ladder:
        yield ""
        yield from ladder_lines(answer.ladder, width)
    yield ""
    yield from labelled("found", ["; ".join(answer.found)], width=width)
    yield from labelled("missing", ["; ".join(answer.missing)], width=width)
    yield from _cautions(answer.cautions, width)
    yield from _end(answer, width)


def _objective(row: ObjectiveRow) -> str:
    """Return an objective with its verdict, its figure and the load that was judged."""
    verdict, _, reason = row.word.partition(": ")
    text = f"{words.GLYPHS[row.state]} {row.objective} {row.limit}: {verdict}"
    if isinstance(row.figure, Estimate):
        text += f", {numbers.shown(row.figure)} {row.case}".rstrip()
    return f"{text} ({reason})" if reason else text


def _evidence(root: Finding | None, width: int) -> Iterator[str]:
    if root is None:
        return
    yield from labelled("because", [part.text for part in root.evidence if part.passed], width=width)
    excluded = [f"{part.rival}: {part.text}" for part in root.counter if part.ruled_out]
    yield from labelled("not", [" · ".join(excluded)], width=width)


def capacity_in_words(answer: Explanation) -> str:
    """Return the capacity with its interval and the knee, or why it is not known."""
    if isinstance(answer.capacity, Estimate):
        is_bound = numbers.is_lower_bound(answer.capacity)
        more = " or more" if is_bound else ""
        knee = "" if answer.knee_users is None else f"; the knee is at {words.users(answer.knee_users)}{more}"
        return f"{_least(answer.capacity) if is_bound else numbers.show(answer.capacity).text}{knee}"
    reached = "" if answer.at_least is None else f"; {numbers.with_unit(answer.at_least, '1/s')} were reached"
    return f"{numbers.show(answer.capacity).with_interval}{reached}"


def _least(capacity: Estimate) -> str:
    """A lower bound and what it is from."""
    return f"{numbers.at_least(capacity)} ({numbers.origin_of(capacity)})"


def _others_found(answer: Explanation, width: int) -> Iterator[str]:
    rest = [f for f in answer.findings if f.rule != answer.limit]
    if not rest:
        return
    yield ""
    for finding in rest:
        if finding.rule in NOTES and finding.explained_by is None:
            yield from labelled("note", [finding.statement], width=width)
            continue
        folded = f", explained by {finding.explained_by}" if finding.explained_by else ""
        yield from labelled("also", [f"{finding.statement} ({finding.grade.word}{folded})"], width=width)


def ladder_lines(ladder: Sequence[Rung], width: int = WIDTH) -> Iterator[str]:
    """One row for each level; of many the last ones."""
    shown = ladder[-MOST_RUNGS:]
    probe = next((rung.probe.request for rung in reversed(shown) if rung.probe is not None), None)
    beside = f"  {words.cut(words.plain(probe), 23)}" if probe else ""
    yield f"{'users':>7}{'/s':>10}{'mean':>11}{'p99':>11}{'failed':>9}{'CPU':>7}{beside}"
    curve = shown[0].curve
    for rung in shown:
        if rung.curve != curve:
            curve = rung.curve
            yield f"{'':>7}  {words.plain(curve)}:"
        if rung.ended_early:
            yield cut_to_width(f"{rung.users:>7g}  {words.plain(rung.ended_early)}", width)
            continue
        cpu = "" if rung.cpu_cores is None else f"{rung.cpu_cores:.2f}"
        paid = "" if rung.probe is None else f"  {_short(rung.probe.mean)}"
        yield (
            f"{rung.users:>7g}{_rate(rung.throughput):>10}{_short(rung.mean):>11}{_short(rung.p99):>11}"
            f"{_short(rung.failed):>9}{cpu:>7}{paid}"
        )
    if len(ladder) > len(shown):
        yield f"{'':>7}  and {len(ladder) - len(shown)} lower levels in the record"


def _rate(figure: Figure) -> str:
    return numbers.value(figure.point, numbers.scale("1/s")) if isinstance(figure, Estimate) else "?"


def _short(figure: Figure) -> str:
    return numbers.show(figure).short if isinstance(figure, Estimate) else "?"


def _cautions(cautions: Sequence[str], width: int) -> Iterator[str]:
    mark = words.GLYPHS["caution"]
    for text in cautions[:MOST_CAUTIONS]:
        yield from textwrap.wrap(f"{mark} {words.plain(text)}", width, subsequent_indent="  ")
    if len(cautions) > MOST_CAUTIONS:
        yield f"  and {len(cautions) - MOST_CAUTIONS} more (--json)"


def _end(answer: Explanation, width: int) -> Iterator[str]:
    if answer.budget_s is not None and answer.used_s is not None:
        more = f": {words.plain(answer.stopped_words)}" if answer.stopped_words else ""
        used = f"{answer.used_s:.0f} of {answer.budget_s:.0f} s used"
        yield from textwrap.wrap(f"{used}; ended because {_because(answer)}{more}.", width)
    if answer.record is not None:
        yield f"Record   {answer.record}"


def _because(answer: Explanation) -> str:
    return {
        "saturated": "the ladder went well beyond the knee",
        "budget": "the budget was used up",
        "rate_cap": "of the rate cap",
        "most_users": "of the most users",
        "harm": "requests failed",
        "fails_alone": "requests fail alone",
        "refused": "requests are refused",
        "no_answer": "nothing came back",
        "broken": "a level could not be measured",
        "generator": "the generator was the limit",
        "interrupted": "it was interrupted",
    }.get(answer.stopped_because, answer.stopped_because)
