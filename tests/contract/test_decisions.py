"""Every decision record has one page of the same shape and one line in the index, under its own title."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "adr"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))
SECTIONS = ["## Context", "## Decision", "## Consequences"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_decision_has_a_context_a_decision_and_consequences(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()

    assert [line for line in lines if line.startswith("## ")] == SECTIONS
    assert all(len(line) <= 100 for line in lines)


def test_the_index_names_every_decision_once_by_its_title() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    titles = {path.name: path.read_text(encoding="utf-8").splitlines()[0] for path in PAGES}

    listed = re.findall(r"^- \[(\d{4})\]\((\S+)\) (.+)$", index, re.MULTILINE)

    assert sorted((name, f"# {number}. {title}") for number, name, title in listed) == sorted(titles.items())


def test_no_number_is_used_twice() -> None:
    numbers = [path.name[:4] for path in PAGES]

    assert all(first < second for first, second in pairwise(numbers))
