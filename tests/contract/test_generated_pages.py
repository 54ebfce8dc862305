"""Generated pages say what the code says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "docs.py"


def test_no_generated_page_is_stale() -> None:
    spec = importlib.util.spec_from_file_location("docs_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    assert tool.stale() == [], "run `make docs`"
