"""Run the notebooks of the documentation and write their output into them.

    python tools/notebooks.py [NOTEBOOK ...]     every notebook of docs/notebooks, or these

No Jupyter is used: the code cells run in order, in one namespace, in a new folder with the files of
docs/examples. A cell shows what it prints and the value of its last expression, as HTML where the value has
it. Magics (`%`) and shell lines (`!`) are no Python, and fail.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tools.examples import EXAMPLES, ROOT

FOLDER: Final = ROOT / "docs" / "notebooks"


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook with the output of its code cells; what a cell raises is raised."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            outputs = _outputs("".join(cell["source"]), namespace, count)
            cell = cell | {"execution_count": count, "outputs": outputs}
        cells.append(cell)
    return notebook | {"cells": cells}


def _outputs(source: str, namespace: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Run a cell, and return what it printed and the value of its last expression."""
    place, statements = f"cell {count}", ast.parse(source).body
    value = None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for statement in statements:
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), place, "eval"), namespace)
            else:
                value = None
                exec(compile(ast.Module([statement], []), place, "exec"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        shown = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            shown["text/html"] = _lines(value._repr_html_())
        outputs.append(
            {"data": shown, "execution_count": count, "metadata": {}, "output_type": "execute_result"}
        )
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def read(path: Path) -> dict[str, Any]:
    """Return a notebook as it is stored."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def run(path: Path) -> dict[str, Any]:
    """Run a notebook in a folder of its own, and return it with its output."""
    with tempfile.TemporaryDirectory(prefix="loadlens-docs-") as folder, contextlib.chdir(folder):
        shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
        return executed(read(path))


def main() -> int:
    """Run notebooks, and write them with their output."""
    for path in [Path(word).resolve() for word in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        text = json.dumps(run(path), indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        print(f"{os.path.relpath(path)}: written", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
