"""Every kind of block has a rendering in each writer, and a section reaches the terminal that shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from loadlens.model.finding import Absent
from loadlens.model.report import Column, Flame, FlameBar, Table
from loadlens.report.write import cells, html, markdown, sections
from loadlens.report.write.sections import (
    Block,
    Code,
    Fold,
    Graph,
    Heading,
    Items,
    Pairs,
    Rows,
    Rules,
    Section,
    Text,
)
from loadlens.report.write.terminal.report_text import section_lines
from loadlens.report.write.view import FindingView, MatrixView
from tests.unit.report.write import sample_report

VIEW = sections.view(sample_report.sample())
NEW = "something new"
MADE: tuple[Block, ...] = (
    Text(NEW),
    Heading(NEW),
    Items((NEW,)),
    Pairs(((NEW, "1"),)),
    Rules((Absent("a.rule", NEW, "none"),)),
    Rows(cells.table_view(Table((Column("name"),), ((NEW,),))), "a table"),
    Code(NEW),
    Graph(Flame((FlameBar(0, 0.0, 1.0, NEW, "a.py:1", True, 9, None),), 9, "8 users", "")),
    Fold(NEW, (Text("inside"),)),
    replace(VIEW.figures[0], chart=replace(VIEW.figures[0].chart, headline=NEW)),
    *(
        replace(block, finding=replace(block.finding, statement=NEW))
        for block in VIEW.sections[1].blocks[1:2]
        if isinstance(block, FindingView)
    ),
    *(
        replace(block, matrix=replace(block.matrix, title=NEW))
        for section in VIEW.sections
        for block in section.blocks
        if isinstance(block, MatrixView)
    ),
)


def with_section(monkeypatch: pytest.MonkeyPatch, section: Section) -> None:
    monkeypatch.setattr(sections, "_sections", lambda *_: iter([section]))


def test_the_example_has_every_kind() -> None:
    assert {type(block) for block in MADE} == set(get_args(Block))


@pytest.mark.parametrize("block", MADE, ids=lambda block: block.kind)
@pytest.mark.parametrize("write", [html.page, markdown.page])
def test_every_kind_shows_in_page_and_markdown(
    block: Block, write: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = replace(sample_report.minimal(), charts=())
    with_section(monkeypatch, Section("new", "A section", (block,)))

    shown = write(bare)

    assert "A section" in shown
    assert NEW in shown


def test_what_a_section_says_in_short_shows_on_a_terminal() -> None:
    section = Section("new", "A section", (Text("long"),), short={"new": [NEW], "more": ["this too"]})

    assert list(section_lines(section, 80)) == ["", f"new        {NEW}", "", "more       this too"]


def test_findings_show_on_a_terminal() -> None:
    lines = list(section_lines(Section("new", "A section", MADE), 80))

    assert any(NEW in line for line in lines)
