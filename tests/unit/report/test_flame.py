"""The flame graph, from samples that are made by hand: shares of boxes by count, and the page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.model.report import FlameBar
from loadlens.model.stacks import Frame
from loadlens.report.build.flame import flame
from loadlens.report.write.html.page import page
from tests.unit.diagnose.test_code_places import AT_REST, MOMENTS, own, sampled, working
from tests.unit.report.write.parsed import parse
from tests.unit.report.write.sample_report import sample

LIBRARY = Frame("get", "requests.api", "/lib/requests/api.py", 73)
SLEEPS = working(own("view", 12), own("query", 41), wait="timer")
ASKS = working(own("view", 13), LIBRARY, wait="socket")
# Three of four threads sleep and one asks; with one user both take half of the time.
TOP = sampled(lambda moment, thread: ASKS if thread == 0 else SLEEPS, 4)
LIGHT = replace(sampled(lambda moment, thread: ASKS if moment % 2 else SLEEPS, 1), load=1.0)


def bar(bars: tuple[FlameBar, ...], name: str) -> FlameBar:
    (only,) = [each for each in bars if each.name == name]
    return only


def test_a_box_is_as_wide_as_its_share_of_the_samples_and_lies_below_its_caller() -> None:
    made = flame([LIGHT, TOP])
    assert made is not None

    view, query, get = (bar(made.bars, name) for name in ("view", "query", "get"))

    assert made.samples == 4 * MOMENTS
    assert (view.depth, view.begin, view.width, view.samples) == (0, 0.0, 1.0, 4 * MOMENTS)
    assert (query.depth, query.begin, query.width) == (1, 0.0, 0.75)
    assert (get.depth, get.begin, get.width) == (1, 0.75, 0.25)
    assert (query.is_own, query.place, get.is_own, get.place) == (True, "orders.py:41", False, "requests.api")
    assert bar(made.bars, "sleeps").depth == 2


def test_the_change_is_the_share_less_that_at_the_lightest_level() -> None:
    made = flame([LIGHT, TOP])
    alone = flame([TOP])
    assert made is not None
    assert alone is not None

    assert bar(made.bars, "query").change == pytest.approx(0.75 - 0.5)
    assert bar(made.bars, "get").change == pytest.approx(0.25 - 0.5)
    assert (made.load, made.light) == ("8 users", "1 user")
    assert (bar(alone.bars, "query").change, alone.light) == (None, "")


def test_threads_at_rest_are_left_out_and_without_work_there_is_no_graph() -> None:
    resting = sampled(lambda moment, thread: AT_REST if thread else SLEEPS, 4)
    made = flame([resting])
    assert made is not None

    assert made.samples == MOMENTS
    assert flame([sampled(lambda moment, thread: AT_REST, 4)]) is None
    assert flame([]) is None


def test_the_page_shows_each_box_in_its_place_and_names_as_text() -> None:
    hostile = working(own("<script>alert(1)</script>", 41), wait="timer")
    made = flame([LIGHT, sampled(lambda moment, thread: hostile, 4)])

    text = page(replace(sample(), flame=made))

    assert "alert(1)</script>" not in text
    (graph,) = [node for node in parse(text).all("div") if node.attributes.get("class") == "flame"]
    _, first, *_ = graph.all("div")
    assert first.text == "<script>alert(1)</script>"
    assert first.attributes["style"] == "left:0.000%;width:100.000%;top:0px"
    assert first.attributes["class"] == "own more-much"
