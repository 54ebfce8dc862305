"""Reviewed snapshots. A change of a snapshot is read like a change of code.

`UPDATE_GOLDEN=1 pytest tests/golden tests/unit/report` writes them anew; `git diff` then shows what changed.
"""

from __future__ import annotations

import os
from pathlib import Path

_HERE = Path(__file__).parent


def assert_as_reviewed(name: str, text: str) -> None:
    """Compare a text with the reviewed one."""
    path = _HERE / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    reviewed = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text == reviewed, f"{path} differs; review it, then UPDATE_GOLDEN=1"
