"""The step of the GitHub Action: what it runs, what it writes into the summary, and its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts import ROOT

# In the place of Loadlens: prints its words but those that name the page, writes the page, ends as asked.
PROGRAM = """
import pathlib, sys
words = sys.argv[1:]
if "--out" in words:
    at = words.index("--out")
    _, page = words[at : at + 2]
    words[at : at + 2] = []
    if "--refused" not in words:
        pathlib.Path(page.removeprefix("md=")).write_text("## The answer\\n")
print("heard", words)
sys.exit(99 if "--missed" in words else 2 if "--refused" in words else 0)
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


def test_the_page_of_a_result_goes_into_the_summary(tmp_path: Path) -> None:
    _, _, summary = step(tmp_path, "hit URL")

    assert summary == "before\n### `loadlens hit URL`\n\nDone\n\n## The answer\n"


@pytest.mark.parametrize("command", ["wrk URL", "hit URL --refused"])
def test_without_a_page_the_output_does(command: str, tmp_path: Path) -> None:
    _, output, summary = step(tmp_path, command)

    assert summary.endswith(f"\n\n```text\n{output}```\n")


def test_a_missed_objective_fails_the_step_and_is_in_the_summary(tmp_path: Path) -> None:
    code, _, summary = step(tmp_path, "hit URL --missed")

    assert code == 99
    assert "**Exit code 99**" in summary
