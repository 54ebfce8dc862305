"""Generated pages and drawings say what the code says."""

from __future__ import annotations

from tests.scripts import loaded


def test_no_generated_page_is_stale() -> None:
    assert loaded("tools/docs.py").stale() == [], "run `make docs`"


def test_no_drawing_is_stale() -> None:
    drawings = loaded("tools/drawings.py").drawings()

    stale = [path.name for path, svg in drawings.items() if path.read_text(encoding="utf-8") != svg]

    assert stale == [], "run `make docs`"
