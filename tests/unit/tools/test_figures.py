"""Pages that `tools/figures.py` puts into a study's folder, from a record that an earlier version wrote."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from loadlens.errors import UsageError
from loadlens.record import open_run
from loadlens.report import build
from tests.scripts import loaded

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "tests" / "data" / "records" / "version-1"
PLACE = "before\n<!-- figures: how -->\nold\n<!-- end of figures -->\nbehind\n"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return loaded("tools/figures.py")


def test_what_stood_between_the_marks_is_replaced_and_nothing_else(tool: ModuleType) -> None:
    once = tool.filled(PLACE, r"new \1" + "\n")

    assert once == "before\n<!-- figures: how -->\n\nnew \\1\n\n<!-- end of figures -->\nbehind\n"
    assert tool.filled(once, r"new \1" + "\n") == once


@pytest.mark.parametrize("readme", ["no place\n", PLACE + PLACE])
def test_a_readme_without_one_place_is_refused(tool: ModuleType, readme: str) -> None:
    with pytest.raises(UsageError, match="no place for figures, or several"):
        tool.filled(readme, "new\n")


def test_the_figures_say_when_where_and_what_was_answered(tool: ModuleType) -> None:
    record = open_run(RECORD)
    report = build.report(record)

    everything, short = "\n".join(tool.lines(record, report)), "\n".join(tool.summary(record, report))

    for text in (everything, short):
        assert text.startswith("A full run of 2 cases on ")
        assert all(f"> {sentence[:20]}" in text for sentence in report.answer)
    assert "3 of 4 trials valid" in everything
    assert "[Every result](results.md)." in " ".join(short.split())


@pytest.mark.parametrize("study", ["balance", "items", "register", "sso", "sum"])
def test_a_study_is_read_in_two_minutes_and_keeps_its_tables_elsewhere(study: str) -> None:
    folder = ROOT / "studies" / study

    assert len((folder / "README.md").read_text().splitlines()) <= 120
    assert (folder / "results.md").read_text().startswith(f"<!-- made by `python tools/figures.py {study} ")
