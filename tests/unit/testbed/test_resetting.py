"""Files that a reset removes."""

from __future__ import annotations

from pathlib import Path

from loadlens.testbed.replica_names import Names
from loadlens.testbed.resetting import remove_files


def test_a_pattern_holds_below_a_folder_whose_name_looks_like_one(tmp_path: Path) -> None:
    base, other = tmp_path / "app[1]", tmp_path / "app1"
    for folder in (base, other):
        folder.mkdir()
        (folder / "data.db").touch()

    removed = remove_files(["*.db"], Names({}), allowed=(base, other), base=base)

    assert removed == (base / "data.db",)
    assert (other / "data.db").exists()
