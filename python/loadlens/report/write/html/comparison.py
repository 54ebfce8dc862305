"""The page of a comparison: the verdict, pairs as lines next to the effect with its interval, the table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from loadlens.model.comparison import Comparison, Effect
from loadlens.model.finding import Estimate
from loadlens.present import comparison_text, numbers, words
from loadlens.report.write.html.short_page import RULES, short_page, text, themes

WIDTH: Final = 720
HEIGHT: Final = 300
TOP, BOTTOM = 30, 40  # px above and below the panels
FIRST_X, SECOND_X = 130, 330  # of the lines
EFFECT_LEFT, EFFECT_RIGHT = 430, 690
HALF_TEXT: Final = 85  # px of the words above the effect


def comparison_page(answer: Comparison) -> str:
    """Return the whole page; it loads nothing and runs no script."""
    notes = [
        *answer.versions,
        *(f"failures: {line}" for line in answer.failures),
        *(f"counts: {line}" for line in answer.accounting),
        f"load: {answer.load}",
        *([f"decides: {answer.decides}"] if answer.decides else []),
        answer.method,
        *answer.cautions,
    ]
    items = "".join(f"<li>{text(note)}</li>" for note in notes)
    title = text(f"{answer.second} against {answer.first}")
    body = f"{''.join(_picture(answer))}<ul>{items}</ul>{''.join(_table(answer))}"
    return short_page(title, text(answer.sentence), body)


def drawing(answer: Comparison) -> str:
    """Return the picture as a file of its own; empty where there are no pairs to draw."""
    head, space, rest = "".join(_picture(answer)).partition(" ")
    if not head:
        return ""
    size = f'xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
    rules = f"{themes()}{RULES}svg{{width:{WIDTH}px;height:{HEIGHT}px;color:var(--ink)}}"
    opening, end, shapes = rest.partition(">")
    return f"{head}{space}{size} {opening}{end}<style>{rules}</style>{shapes}\n"


def _picture(answer: Comparison) -> Iterator[str]:
    effect = comparison_text.headline(answer)
    if effect is None:
        return
    yield f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text(answer.sentence)}">'
    yield from _lines(answer, effect)
    yield from _effect(answer, effect)
    yield "</svg>"


def _lines(answer: Comparison, effect: Effect) -> Iterator[str]:
    """Draw each pair as a line from the figure of the first version to that of the second."""
    values = [value for pair in effect.pairs for value in (pair.before, pair.after)]
    low, high = min(values), max(values)
    room = HEIGHT - TOP - BOTTOM

    def y(value: float) -> float:
        return TOP + room * (1 - (value - low) / (high - low)) if high > low else TOP + room / 2

    yield f'<text x="10" y="16">{text(words.metric(effect.metric))}, a line for each pair</text>'
    for value in {low, high}:
        yield f'<text x="{FIRST_X - 10}" y="{y(value) + 4:.1f}" text-anchor="end">'
        yield f"{text(numbers.with_unit(value, effect.unit))}</text>"
    for x, name in ((FIRST_X, answer.first), (SECOND_X, answer.second)):
        yield f'<line class="rule" x1="{x}" x2="{x}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        yield f'<text x="{x}" y="{HEIGHT - 16}" text-anchor="middle">{text(words.cut(name, 22))}</text>'
    for pair in effect.pairs:
        yield f'<line class="pair" x1="{FIRST_X}" x2="{SECOND_X}" '
        yield f'y1="{y(pair.before):.1f}" y2="{y(pair.after):.1f}"/>'
        for x, value in ((FIRST_X, pair.before), (SECOND_X, pair.after)):
            yield f'<circle cx="{x}" cy="{y(value):.1f}" r="3" fill="currentColor"/>'


def _effect(answer: Comparison, effect: Effect) -> Iterator[str]:
    """Draw the effect with its interval on an axis in percent, the margin shaded."""
    ratio = effect.ratio
    if not isinstance(ratio, Estimate) or not ratio.low or not ratio.high:
        return
    ends = [math.log(end) for end in (ratio.low, ratio.point, ratio.high)]
    edge = math.log1p(answer.margin)
    most = 1.15 * max(edge, *map(abs, ends))
    middle, y = (EFFECT_LEFT + EFFECT_RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2

    def x(change: float) -> float:
        return middle + change / most * (EFFECT_RIGHT - EFFECT_LEFT) / 2

    yield f'<text x="{EFFECT_LEFT}" y="16">effect with its interval</text>'
    yield f'<rect class="margin" x="{x(-edge):.1f}" width="{x(edge) - x(-edge):.1f}" y="{TOP}" '
    yield f'height="{HEIGHT - TOP - BOTTOM}"/>'
    yield f'<line class="rule" x1="{middle}" x2="{middle}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
    yield f'<line class="effect" x1="{x(ends[0]):.1f}" x2="{x(ends[2]):.1f}" y1="{y}" y2="{y}"/>'
    yield f'<circle cx="{x(ends[1]):.1f}" cy="{y}" r="6" fill="currentColor"/>'
    above = min(max(x(ends[1]), EFFECT_LEFT + HALF_TEXT), EFFECT_RIGHT - HALF_TEXT)
    yield f'<text x="{above:.1f}" y="{y - 16}" text-anchor="middle">'
    yield f"{text(comparison_text.change_in_words(effect))}</text>"
    yield f'<text x="{middle}" y="{HEIGHT - 16}" text-anchor="middle">'
    yield f"line: no change; shaded: less than {text(numbers.percent(answer.margin))}</text>"


def _table(answer: Comparison) -> Iterator[str]:
    has_cases = any(effect.case for effect in answer.effects)
    head = (*(["load"] if has_cases else []), "metric", answer.first, answer.second, "change", "")
    yield f"<table><tr>{''.join(f'<th>{text(name)}</th>' for name in head)}</tr>"
    for effect in answer.effects:
        cells = (
            *([effect.case] if has_cases else []),
            words.metric(effect.metric),
            numbers.shown(effect.before),
            numbers.shown(effect.after),
            comparison_text.change_in_words(effect),
            comparison_text.verdict_of(effect),
        )
        yield f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in cells)}</tr>"
    yield "</table>"
