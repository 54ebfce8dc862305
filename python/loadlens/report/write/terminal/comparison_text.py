"""The answer of `compare` on a terminal: the verdict, then failures and counts, effects, the pairs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from functools import partial

from loadlens.model.comparison import Comparison, Effect
from loadlens.present import comparison_text, numbers, terminal, words
from loadlens.report.write.terminal.printing import cut_to_width, labelled, print_lines


def print_comparison(answer: Comparison, *, quiet: bool = False) -> None:
    """Print the answer on stdout; quietly only its first lines."""
    width = terminal.width()
    head = len(textwrap.wrap(words.plain(answer.sentence), width))
    print_lines(list(comparison_lines(answer, quiet=quiet, width=width)), headings=range(head))


def comparison_lines(
    answer: Comparison, *, quiet: bool = False, width: int = terminal.USUAL_WIDTH
) -> Iterator[str]:
    """Yield the lines of an answer."""
    yield from textwrap.wrap(words.plain(answer.sentence), width)
    if quiet:
        return
    yield ""
    rows = partial(labelled, width=width)
    yield from rows("versions", answer.versions)
    yield from rows("failures", answer.failures)
    yield from rows("counts", answer.accounting)
    yield from rows("load", [answer.load])
    yield from rows("decides", [answer.decides])
    yield from rows("from", [answer.method])
    yield from rows("note", answer.cautions)
    yield from rows("record", [answer.record])
    yield ""
    yield from _table(answer, width)
    drawn = list(comparison_text.picture(answer))
    if drawn:
        yield ""
        yield from (cut_to_width(line, width) for line in map(words.plain, drawn))


def _table(answer: Comparison, width: int) -> Iterator[str]:
    names = [words.cut(words.plain(name), 10) for name in (answer.first, answer.second)]
    yield cut_to_width(f"{'':<20}{names[0]:>11}{names[1]:>11}  change", width)
    case = ""
    for effect in answer.effects:
        if effect.case != case:
            case = effect.case
            yield cut_to_width(f"{words.plain(case)}:", width)
        yield from _row(effect, width)


def _row(effect: Effect, width: int) -> Iterator[str]:
    figures = "".join(f"{numbers.short(figure):>11}" for figure in (effect.before, effect.after))
    text = f"{comparison_text.change_in_words(effect):<24} {effect.change}"
    name = words.metric(effect.metric).removesuffix(" of response time")
    yield cut_to_width(f"{name:<20}{figures}  {text}", width)
