"""The step of the GitHub Action: what it runs, what it writes into the summary, and its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.scripts import ROOT

# A program in the place of Loadlens: it prints its arguments, and ends or reports as these say.
PROGRAM = """
import pathlib, sys
print("heard", sys.argv[1:])
if "--report" in sys.argv:
    pathlib.Path("runs/new").mkdir(parents=True)
    pathlib.Path("runs/new/report.md").write_text("# The answer\\n")
sys.exit(99 if "--missed" in sys.argv else 0)
"""


def step(folder: Path, command: str) -> tuple[int, str, str]:
    """Run the step with a command; return its exit code, its output and the summary."""
    program = folder / "loadlens"
    program.write_text(f"#!{sys.executable}\n{PROGRAM}")
    program.chmod(0o755)
    summary = folder / "summary.md"
    summary.write_text("before\n")
    done = subprocess.run(
        [sys.executable, ROOT / "tools/action.py"],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{folder}:{os.environ['PATH']}",
            "COMMAND": command,
            "GITHUB_STEP_SUMMARY": str(summary),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, summary.read_text()


def test_words_are_split_as_a_shell_does_and_never_expanded(tmp_path: Path) -> None:
    code, output, _ = step(tmp_path, "hit URL --objective 'p99 < 200ms' $HOME")

    assert code == 0
    assert output == "heard ['hit', 'URL', '--objective', 'p99 < 200ms', '$HOME']\n"


def test_output_goes_into_the_summary(tmp_path: Path) -> None:
    _, output, summary = step(tmp_path, "hit URL")

    assert summary == f"before\n### `loadlens hit URL`\n\nDone\n\n```text\n{output}```\n"


def test_a_new_report_takes_the_place_of_the_output(tmp_path: Path) -> None:
    old = tmp_path / "runs" / "old" / "report.md"
    old.parent.mkdir(parents=True)
    old.write_text("# An older answer\n")
    os.utime(old, (0, 0))

    _, _, summary = step(tmp_path, "run study --report")

    assert summary == "before\n### `loadlens run study --report`\n\nDone\n\n# The answer\n"


def test_a_missed_objective_fails_the_step_and_is_in_the_summary(tmp_path: Path) -> None:
    code, _, summary = step(tmp_path, "hit URL --missed")

    assert code == 99
    assert "**Exit code 99**" in summary
