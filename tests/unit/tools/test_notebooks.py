"""The runner of the documentation's notebooks: one namespace, and the last value of each cell."""

from __future__ import annotations

from typing import Any

import pytest
from tools import notebooks


def executed(*sources: str) -> list[dict[str, Any]]:
    """Code cells after they ran."""
    cells = [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources]
    run: list[dict[str, Any]] = notebooks.executed({"cells": cells})["cells"]
    return run


def test_cells_share_a_namespace_and_show_what_they_print_and_their_last_value() -> None:
    first, second = executed("n = 2", "print('n is', n)\n1\nn + 1")

    assert (first["execution_count"], first["outputs"]) == (1, [])
    printed, value = second["outputs"]
    assert printed["text"] == ["n is 2\n"]
    assert value["data"] == {"text/plain": ["3"]}


def test_a_cell_that_ends_in_a_statement_shows_no_value() -> None:
    (cell,) = executed("1 + 1\nn = 3")

    assert cell["outputs"] == []


def test_a_value_that_has_html_is_shown_with_it() -> None:
    (cell,) = executed("class Bold:\n    def _repr_html_(self): return '<b>1</b>'\nBold()")

    assert cell["outputs"][0]["data"]["text/html"] == ["<b>1</b>"]


def test_what_a_cell_raises_ends_the_run() -> None:
    with pytest.raises(ZeroDivisionError):
        executed("1 / 0", "2")
