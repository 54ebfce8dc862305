"""The Markdown twin: the same sections, short, and text from outside stays text."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlens.report.write import escaping as md
from loadlens.report.write import html, markdown
from tests.golden import assert_as_reviewed
from tests.unit.report.write import sample_report
from tests.unit.report.write.parsed import parse


@cache
def files(name: str) -> dict[str, str]:
    report = (
        sample_report.hostile(sample_report.sample()) if name == "hostile" else getattr(sample_report, name)()
    )
    return dict(markdown.files(report))


def test_report_is_as_reviewed() -> None:
    assert_as_reviewed("report.md", files("sample")["report.md"])


def test_sections_are_those_of_the_page() -> None:
    here = re.findall(r"^## (.*)$", files("sample")["report.md"], re.MULTILINE)
    page = [h.text for h in parse(html.page(sample_report.sample())).all("h2")]

    assert here == page


def test_36_cases_take_at_most_300_lines_and_the_rest_stands_apart() -> None:
    found = files("many")

    assert len(found["report.md"].splitlines()) <= 300
    assert found["cases.md"].count("<details") >= 36
    assert "(cases.md)" in found["report.md"]


def test_every_picture_is_beside_the_report_with_its_headline_as_alternative() -> None:
    found = files("sample")
    shown = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", found["report.md"])

    assert {path for _, path in shown} == set(found) - {"report.md"}
    assert all(found[path].startswith("<svg") for _, path in shown)
    assert "One request in ten waits 500 ms longer than the rest." in [alt for alt, _ in shown]


def test_no_date_stands_inside_a_table() -> None:
    rows = [line for line in files("sample")["report.md"].splitlines() if line.startswith("|")]

    assert not [row for row in rows if re.search(r"\b20\d\d\b", row)]


@pytest.mark.parametrize("name", ["sample", "many", "one", "hostile"])
def test_every_row_of_a_table_has_as_many_cells_as_its_head(name: str) -> None:
    for content in files(name).values():
        block: list[int] = []
        for line in [*content.splitlines(), ""]:
            if line.startswith("|"):
                block.append(len(re.findall(r"(?<!\\)\|", line)))
            else:
                assert len(set(block)) <= 1
                block = []


def test_hostile_text_is_neither_markup_nor_link() -> None:
    report = files("hostile")["report.md"]

    blocks = re.sub(r"^(`{3,})\n.*?\n\1$", "", report, flags=re.MULTILINE | re.DOTALL)
    blocks = re.sub(r"^<details.*$", "", blocks, flags=re.MULTILINE)  # a line of HTML: no Markdown in it
    bare = re.sub(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", "", blocks)  # code shows what it holds
    assert "<script" not in bare
    assert "<img" not in bare
    assert "\x1b" not in report
    assert "\u202e" not in report
    assert not re.search(r"(?<!\\)\]\(javascript", bare)


@given(st.text(max_size=40))
def test_escaped_text_never_breaks_a_cell_nor_opens_a_tag(text: str) -> None:
    shown = md.cell(text)

    assert shown
    assert "\n" not in shown
    assert "<" not in shown
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1. not a list", "1\\. not a list"),
        ("4.20 s", "4.20 s"),
        ("- not a list", "\\- not a list"),
        ("a_b and _c_", "a_b and \\_c\\_"),
        ("a|b", "a\\|b"),
        ("<b>", "&lt;b\\>"),
        ("workers=1", "workers=1"),
        ("@someone", "@\u2060someone"),
        ("http://x", "http:\u2060//x"),
        ("![x](y)", "\\!\\[x\\](y)"),
    ],
)
def test_marks_are_escaped_where_they_act(text: str, shown: str) -> None:
    assert md.escaped(text) == shown


def test_code_can_hold_ticks() -> None:
    assert md.code("a`b") == "``a`b``"
    assert md.block("```\nx") == ["````", "```", "x", "````"]


def test_summary_of_a_fold_is_escaped_as_html() -> None:
    assert md.folded("<b>&", ["x"])[0] == "<details><summary>&lt;b&gt;&amp;</summary>"
