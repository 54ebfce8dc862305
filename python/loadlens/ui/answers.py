"""The answer of a run that is over, from its record: the sentences of its verb, and the report."""

from __future__ import annotations

from pathlib import Path

from loadlens.model.comparison import DEFAULT_MARGIN, Comparison
from loadlens.present import words
from loadlens.record import open_run


def sentences_of(run: Path, kind: str) -> list[str]:
    """Return the sentences of an answer, its headline first.

    Args:
        run: The record.
        kind: The verb that made it.

    Raises:
        LoadlensError: The record has nothing to answer from.
    """
    if kind == "compare":
        answer = _compared(run)
        decides = f"What would decide: {answer.decides}." if answer.decides else ""
        sentences = [answer.sentence, *answer.versions, decides]
    elif kind == "study":
        from loadlens.report import build

        sentences = list(build.report(open_run(run)).answer)
    else:
        from loadlens.search import explanation

        searched = explanation(open_run(run), is_kept=True)
        sentences = ["" if searched.rates is None else searched.rates.sentence, searched.sentence]
    return [words.plain(sentence) for sentence in sentences if sentence]


def report_of(run: Path, kind: str) -> str:
    """Return the report of a run as HTML; that of a comparison is its page.

    Args:
        run: The record.
        kind: The verb that made it.

    Raises:
        LoadlensError: The record has nothing to report.
    """
    if kind == "compare":
        from loadlens.report.write.html.comparison import comparison_page

        return comparison_page(_compared(run))
    from loadlens.report import build
    from loadlens.report.write import html

    return html.page(build.report(open_run(run)))


def _compared(run: Path) -> Comparison:
    from loadlens.compare import records

    held = open_run(run)
    return records.of_levels(held, (), records.begun_of(held).margin or DEFAULT_MARGIN)
