"""The page of a comparison as a tree: pairs, the effect on its axis, the table; names are text."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from loadlens.model.comparison import Comparison, Effect, Pair
from loadlens.model.finding import Estimate, Undecided
from loadlens.report.write.html.comparison import comparison_page
from tests.unit.report.write.parsed import Node, parse


def estimate(point: float, low: float, high: float, unit: str = "s") -> Estimate:
    return Estimate("response_time.p50", unit, point, low, high, 3, 900, "by hand")


EFFECT = Effect(
    case="",
    metric="response_time.p50",
    unit="s",
    before=estimate(0.020, 0.019, 0.021),
    after=estimate(0.022, 0.021, 0.023),
    ratio=estimate(1.10, 1.05, 1.15, "ratio"),
    change="worse",
    is_beyond=True,
    is_headline=True,
    pairs=(Pair(0.020, 0.022), Pair(0.019, 0.021), Pair(0.021, 0.023)),
)
ANSWER = Comparison(
    verdict="slower",
    sentence="Slower by more than 3.0 %",
    first="A",
    second="B",
    load="50/s poisson",
    margin=0.03,
    pairs=3,
    is_paired=True,
    failures=("none of 900 requests",),
    accounting=(),
    effects=(EFFECT,),
    decides="",
    method="3 pairs",
)


def page(answer: Comparison) -> Node:
    return parse(comparison_page(answer))


def number(node: Node, name: str) -> float:
    return float(node.attributes[name])


def test_each_pair_is_a_line_that_rises_with_its_figures() -> None:
    lines = page(ANSWER).all("line", class_="pair")

    # from 19 ms to 23 ms: the axis goes down as pixels go up, and 1 ms is everywhere as long
    drawn = sorted(
        [(pair.before, number(line, "y1")) for pair, line in zip(EFFECT.pairs, lines, strict=True)]
        + [(pair.after, number(line, "y2")) for pair, line in zip(EFFECT.pairs, lines, strict=True)]
    )
    lengths = [
        (y - other_y) / (other - value) for (value, y), (other, other_y) in pairwise(drawn) if other > value
    ]
    assert lengths == pytest.approx([lengths[0]] * len(lengths), rel=0.01)
    assert lengths[0] > 0


def test_the_effect_is_placed_by_its_logarithm_and_beyond_the_shaded_margin() -> None:
    (bar,) = page(ANSWER).all("line", class_="effect")
    (shade,) = page(ANSWER).all("rect", class_="margin")
    middle = number(shade, "x") + number(shade, "width") / 2

    # the margin is drawn as ln 1.03 on either side, and so is its scale
    scale = number(shade, "width") / 2 / math.log(1.03)
    assert number(bar, "x1") - middle == pytest.approx(scale * math.log(1.05), abs=0.2)
    assert number(bar, "x2") - middle == pytest.approx(scale * math.log(1.15), abs=0.2)


def test_every_effect_has_a_row_with_its_verdict() -> None:
    memory = replace(EFFECT, metric="memory", unit="bytes", change="same", is_beyond=False, is_headline=False)

    rows = page(replace(ANSWER, effects=(EFFECT, memory))).all("tr")

    assert "worse, beyond the margin" in rows[1].text
    assert "within the margin" in rows[2].text


def test_without_an_interval_the_pairs_are_drawn_alone_and_without_pairs_nothing_is() -> None:
    few = replace(
        EFFECT, ratio=Undecided("response_time.p50", "ratio", "needs 3 pairs"), pairs=EFFECT.pairs[:2]
    )
    alone = page(replace(ANSWER, effects=(few,)))

    assert (len(alone.all("line", class_="pair")), len(alone.all(class_="effect"))) == (2, 0)
    assert not page(replace(ANSWER, effects=(replace(EFFECT, pairs=()),))).all("svg")


def test_names_from_outside_are_text_and_the_page_loads_nothing() -> None:
    tree = page(replace(ANSWER, first="<script>x</script>", versions=('A: "><img src=//evil>',)))

    assert not tree.all("script", "img", "link")
    assert tree.all("meta", **{"http-equiv": "Content-Security-Policy"})
