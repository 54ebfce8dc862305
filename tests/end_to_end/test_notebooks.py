"""The notebooks of the documentation run from their first cell to their last, and show what they promise."""

from __future__ import annotations

from typing import Any

import pytest
from tools import notebooks


def shown(notebook: dict[str, Any]) -> list[list[str]]:
    """The kinds of output of each code cell, in order."""
    return [
        [kind for output in cell["outputs"] for kind in output.get("data", {"stdout": ""})]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.parametrize("path", sorted(notebooks.FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_and_every_cell_shows_what_its_stored_output_shows(path: Any) -> None:
    stored = notebooks.read(path)

    now = notebooks.run(path)

    assert shown(now) == shown(stored)
    assert any("text/html" in kinds for kinds in shown(now))
