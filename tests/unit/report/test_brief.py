"""The parts of a study that its report answers, as records have them."""

from __future__ import annotations

from typing import Any

from loadlens.model.study import Edge, Window
from loadlens.report.build.brief import brief_of


def test_a_record_of_one_load_asks_for_nothing_and_its_window_is_the_whole() -> None:
    report: dict[str, Any] = {"charts": [], "compare": [], "window": None, "promql": []}  # as `hit` writes it

    brief = brief_of({"name": "hit", "question": "?", "published": None, "report": report})

    assert brief.window == Window()
    assert (brief.quoted, brief.claims, brief.report.promql) == ((), (), ())


def test_a_window_is_read_with_its_edges() -> None:
    report = {"window": {"begin": {"seconds": None, "share": 0.25}, "end": None}}

    assert brief_of({"name": "a", "question": "?", "report": report}).window == Window(Edge(share=0.25))
