"""The answer of `explain` on a terminal: the limit, then why, what to do, what is not known, the ladder."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from loadlens.model.explanation import Explanation, Rung
from loadlens.model.finding import Estimate, Figure, Finding
from loadlens.model.notes import NOTES
from loadlens.model.rates import RateAnswer
from loadlens.model.report import ObjectiveRow
from loadlens.present import numbers, terminal, words
from loadlens.report.write.terminal.printing import cut_to_width, labelled, print_lines

MOST_RUNGS = 10
MOST_QUOTES = 3
LEAST_PROBE = 12  # columns: a narrower terminal does not show the probe
MOST_CAUTIONS = 5
MOST_UNKNOWN = 3


def print_explanation(answer: Explanation, *, quiet: bool = False) -> None:
    """Print the answer on stdout; quietly only its first lines."""
    width = terminal.width()
    head = sum(len(textwrap.wrap(words.plain(sentence), width)) for sentence in _first(answer))
    print_lines(list(explanation_lines(answer, quiet=quiet, width=width)), headings=range(head))


def explanation_lines(
    answer: Explanation, *, quiet: bool = False, width: int = terminal.USUAL_WIDTH
) -> Iterator[str]:
    """The lines of an answer."""
    for sentence in _first(answer):
        yield from textwrap.wrap(words.plain(sentence), width)
    if quiet:
        return
    if answer.rates is not None and answer.rates.trials:
        yield ""
        yield from _rate_lines(answer.rates, width)
    yield ""
    rows = partial(labelled, width=width)
    if answer.rates is None:
        yield from rows("objective", [_objective(row) for row in answer.objectives])
    root = next((f for f in answer.findings if f.rule == answer.limit), None)
    if root is not None:
        yield from rows("because", [part.text for part in root.evidence if part.passed])
        excluded = [f"{part.rival}: {part.text}" for part in root.counter if part.ruled_out]
        yield from rows("not", [" · ".join(excluded)])
    yield from rows("code", answer.code.lines)
    yield from rows("setting", answer.code.setting_lines)
    yield from rows("answers", answer.quotes[:MOST_QUOTES])
    yield from rows("capacity", [capacity_in_words(answer)])
    yield from rows("time", [answer.time])
    yield from rows("others", [answer.others])
    yield from rows("do", [answer.do])
    yield from rows("brings", [answer.brings])
    yield from rows("unknown", [gap.what for gap in answer.unknown[:MOST_UNKNOWN]])
    decided_by = next((gap.decided_by for gap in answer.unknown if gap.decided_by), "")
    yield from rows("decides", [decided_by])
    others = [f for f in answer.findings if f.rule != answer.limit]
    if others:
        yield ""
    for finding in others:
        yield from rows(*_other(finding))
    if answer.ladder:
        yield ""
        yield from ladder_lines(answer.ladder, width)
    yield ""
    yield from rows("found", ["; ".join(answer.found)])
    yield from rows("missing", ["; ".join(answer.missing)])
    yield from _cautions(answer.cautions, width)
    yield from _end(answer, width)


def _first(answer: Explanation) -> Iterator[str]:
    """Return what was asked: the rate that meets objectives, then the limit; or the limit alone."""
    if answer.rates is not None:
        yield answer.rates.sentence
    yield answer.sentence


def _rate_lines(rates: RateAnswer, width: int) -> Iterator[str]:
    """Return the rates in ascending order, each with its trials and what decided the last one."""
    yield f"{'rate, /s':>10}  {'trials':<17}  last trial"
    for rate in sorted({trial.rate_per_s for trial in rates.trials}):
        of = [trial for trial in rates.trials if trial.rate_per_s == rate]
        counts = Counter("met" if trial.is_met else "missed" for trial in of)
        verdict = ", ".join(f"{count} {word}" if len(of) > 1 else word for word, count in counts.items())
        yield cut_to_width(f"{rate:>10g}  {verdict:<17}  {words.plain(of[-1].words)}", width)
    if rates.next:
        yield from labelled("narrower", [rates.next], width=width)


def _objective(row: ObjectiveRow) -> str:
    """Return an objective with its verdict, its figure and the load that was judged."""
    verdict, _, reason = row.word.partition(": ")
    text = f"{words.GLYPHS[row.state]} {row.objective} {row.limit}: {verdict}"
    if isinstance(row.figure, Estimate):
        text += f", {numbers.shown(row.figure)} {row.case}".rstrip()
    return f"{text} ({reason})" if reason else text


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


def _other(finding: Finding) -> tuple[str, list[str]]:
    """Return the label and the text of a finding that is not the limit."""
    if finding.rule in NOTES and finding.explained_by is None:
        return "note", [finding.statement]
    folded = f", explained by {finding.explained_by}" if finding.explained_by else ""
    return "also", [f"{finding.statement} ({finding.grade.word}{folded})"]


def ladder_lines(ladder: Sequence[Rung], width: int) -> Iterator[str]:
    """One row for each level; of many the last ones."""
    shown = ladder[-MOST_RUNGS:]
    probe = next((rung.probe.request for rung in reversed(shown) if rung.probe is not None), None)
    head = f"{'users':>7}{'/s':>10}{'mean':>11}{'p99':>11}{'failed':>9}{'CPU':>7}"
    room = width - len(head) - 2
    yield f"{head}  {words.cut(words.plain(probe), room)}" if probe and room >= LEAST_PROBE else head
    curve = shown[0].curve
    for rung in shown:
        if rung.curve != curve:
            curve = rung.curve
            yield cut_to_width(f"{'':>7}  {words.plain(curve)}:", width)
        if rung.ended_early:
            yield cut_to_width(f"{rung.users:>7g}  {words.plain(rung.ended_early)}", width)
            continue
        cpu = "" if rung.cpu_cores is None else f"{rung.cpu_cores:.2f}"
        paid = "" if rung.probe is None or room < LEAST_PROBE else f"  {_short(rung.probe.mean)}"
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
    for text in cautions[:MOST_CAUTIONS]:
        yield from textwrap.wrap(f"{words.CAUTION} {words.plain(text)}", width, subsequent_indent="  ")
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
        "fails_beyond": "requests fail well beyond the knee",
        "budget": "the budget was used up",
        "rate_cap": "of the rate cap",
        "most_users": "of the most users",
        "other_answers": "more users get other answers",
        "harm": "requests failed",
        "fails_alone": "requests fail alone",
        "refused": "requests are refused",
        "no_answer": "nothing came back",
        "service_ended": "the service ended",
        "broken": "a level could not be measured",
        "generator": "the generator was the limit",
        "interrupted": "it was interrupted",
    }.get(answer.stopped_because, answer.stopped_because)
