"""The names in a record directory that others rely on."""

from __future__ import annotations

import os
from pathlib import Path

from loadlens.record.layout import run_id


def test_runs_in_folders_of_one_name_have_different_ids(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "run", tmp_path / "b" / "run"

    assert run_id(first) != run_id(second)
    assert run_id(first).startswith("run-")


def test_a_run_has_one_id_however_its_path_is_written(tmp_path: Path) -> None:
    run = tmp_path / "run"

    assert run_id(Path(os.path.relpath(run))) == run_id(run) == run_id(tmp_path / "x" / ".." / "run")
