"""Effects of a comparison in words and as rows of characters, the same in every medium."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from loadlens.model.comparison import Comparison, Effect
from loadlens.model.finding import Estimate
from loadlens.present import numbers, words

COLUMNS: Final = 49  # of a picture on a terminal
HEAD: Final = "{}, {} over {}"


def change_in_words(effect: Effect) -> str:
    """Return `+5.1 % (+4.0 to +6.2)`, `2.1 times (1.9–2.3)`, or why it is not known."""
    ratio = effect.ratio
    if not isinstance(ratio, Estimate):
        return f"undecided: {ratio.reason}"
    if not 0.5 < ratio.point < 2:
        return f"{numbers.show(ratio).value} times ({numbers.show(ratio).interval})"
    low, high = ("open" if end is None else f"{(end - 1) * 100:+.1f}" for end in (ratio.low, ratio.high))
    return f"{numbers.signed_percent(ratio.point - 1)} ({low} to {high})"


def verdict_of(effect: Effect) -> str:
    """Return the verdict on one effect: `worse`, `worse, beyond the margin`, `within the margin` ..."""
    if effect.change == "same":
        return "within the margin"
    return f"{effect.change}, beyond the margin" if effect.is_beyond else effect.change


def headline(answer: Comparison) -> Effect | None:
    """Return the effect that is drawn: the first headline with pairs."""
    return next((effect for effect in answer.effects if effect.is_headline and effect.pairs), None)


def picture(answer: Comparison) -> Iterator[str]:
    """Yield a row for each pair and one for the effect with its interval, on an axis in percent.

    `|` stands at no change, `:` at the margins.
    """
    effect = headline(answer)
    if effect is None:
        return
    changes = [math.log(pair.after / pair.before) for pair in effect.pairs]
    ratio = effect.ratio
    ends: Sequence[float] = ()
    if isinstance(ratio, Estimate) and ratio.low and ratio.high:
        ends = (math.log(ratio.low), math.log(ratio.point), math.log(ratio.high))
    edge = math.log1p(answer.margin)
    shown = ends if max(map(abs, ends), default=0.0) < 1 else ()  # a wide interval leaves room for pairs
    most = 1.1 * max(abs(each) for each in (edge, *changes, *shown))

    def place(change: float) -> int:
        return round((min(max(change / most, -1.0), 1.0) + 1) / 2 * (COLUMNS - 1))

    def row(label: str, marks: Sequence[tuple[float, str]], text: str, dash: bool = False) -> str:
        line = [" "] * COLUMNS
        if dash:
            for at in range(place(marks[0][0]), place(marks[-1][0]) + 1):
                line[at] = "-"
        for guide, sign in ((-edge, ":"), (0.0, "|"), (edge, ":")):
            line[place(guide)] = sign if line[place(guide)] == " " else line[place(guide)]
        for change, sign in marks:
            line[place(change)] = sign
        return f"{label:>8} {''.join(line)} {text}".rstrip()

    yield HEAD.format(words.metric(effect.metric), answer.second, answer.first)
    for number, (change, pair) in enumerate(zip(changes, effect.pairs, strict=True), 1):
        yield row(f"pair {number}", [(change, "o")], numbers.signed_percent(pair.after / pair.before - 1))
    if ends:
        marks = list(zip(ends, "[o]", strict=True))
        yield row("effect", marks, change_in_words(effect), dash=True)
