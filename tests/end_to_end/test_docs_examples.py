"""The marked commands of the documentation do what the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import examples


@pytest.mark.parametrize("page", examples.pages(), ids=lambda page: str(page.relative_to(examples.ROOT)))
def test_the_commands_of_a_page_end_as_it_says(page: Path) -> None:
    outcome = examples.run_page(page.read_text(encoding="utf-8"))

    assert outcome.faults == []
    assert outcome.stale == []
