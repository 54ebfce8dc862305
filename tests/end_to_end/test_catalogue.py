"""The catalogue's runner on one service: what it starts, what it keeps, and that it goes on where it was."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

from catalogue.families import FAMILIES
from catalogue.running import ROOT

from tests.calm import assert_ran, where_calm
from tests.end_to_end.hitting import environment


def catalogue(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "catalogue", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )


def kept(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "development.jsonl").read_text().splitlines()]


@where_calm
def test_a_service_is_diagnosed_once_and_its_row_says_what_was_said(tmp_path: Path) -> None:
    folder = tmp_path / secrets.token_hex(4)
    wanted = ["--families", "db-lock", "--no-twins", "--budget", "15s", "--results", str(folder)]
    wanted += ["--records", str(folder / "records")]

    first = catalogue(*wanted)
    again = catalogue(*wanted)

    assert_ran(first)
    assert "1/1 db-lock/1/flawed: " in first.stderr
    assert f"1 services from 1 of {len(FAMILIES)} families" in first.stdout
    assert again.stdout == first.stdout
    assert again.stderr == ""
    (row,) = kept(folder)
    assert row["failure"] is None
    assert row["said"]["capacity"] is not None


def test_a_service_can_be_looked_at() -> None:
    done = catalogue("show", "db-lock", "--seed", "3")

    shown = json.loads(done.stdout)
    assert shown["needs"][0] == {"A": ["downstream.serialised", "db.lock"], "C": ["db.lock"]}
    (settings,) = shown["setup"]["servers"]
    hold = next(op for op in settings["routes"]["/work"][2:] if op["do"] == "wait")["ms"]
    assert shown["numbers"]["capacity"] == f"{1e3 / hold:g} 1/s"


def test_what_is_not_there_is_named() -> None:
    for arguments, message in {
        ("show", "no-such"): "no such family: no-such",
        ("serve", "healthy-loop", "--twin"): "healthy-loop has no twin",
        ("--families", "nothing"): "no family matches nothing",
        ("--budget", "soon"): "soon",
    }.items():
        done = catalogue(*arguments)

        assert done.returncode == 2, arguments
        assert message in done.stderr
        assert "Traceback" not in done.stderr
