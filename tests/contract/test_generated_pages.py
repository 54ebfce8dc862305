"""Generated pages say what the code says."""

from __future__ import annotations

from tests.scripts import loaded


def test_no_generated_page_is_stale() -> None:
    assert loaded("tools/docs.py").stale() == [], "run `make docs`"
