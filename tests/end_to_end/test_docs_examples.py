"""The marked commands of the documentation do what the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import examples

# Minutes each: `python tools/examples.py` runs them and refreshes their output.
LONG = ("ci.md", "five-minutes.md", "read-the-output.md", "recipes.md", "compare.md")
PAGES = [page for page in examples.pages() if page.name not in LONG]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(examples.ROOT)))
def test_the_commands_of_a_page_end_as_it_says(page: Path) -> None:
    outcome = examples.run_page(page.read_text(encoding="utf-8"))

    assert outcome.faults == []
    assert outcome.stale == []
