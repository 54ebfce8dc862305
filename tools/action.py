"""Run the command of the GitHub Action, and write its result as Markdown into the job's summary.

The command comes in COMMAND and is split as a shell would, without expanding anything. A verb that writes its
result as Markdown does so; without that, what was printed goes into the summary. The exit code is that of the
command.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 900_000  # a summary may have 1 MiB per step
WRITING: Final = ("hit", "explain", "run", "report")  # verbs with --out md=FILE


def summary(words: list[str], code: int, output: str, page: str) -> str:
    """Return the summary: the command and its exit code, then the page, or the output if there is none."""
    head = f"### `{shlex.join(words)}`\n\n{'Done' if code == 0 else f'**Exit code {code}**'}\n\n"
    text = head + (page or f"```text\n{output.rstrip()}\n```\n")
    if len(text.encode()) > MOST_BYTES:
        return f"{head}The result is larger than a summary may be: see the log and the record.\n"
    return text


def main() -> int:
    """Return the exit code of the command."""
    words = shlex.split(os.environ["COMMAND"])
    with tempfile.TemporaryDirectory(prefix="loadlens-") as folder:
        written = Path(folder) / "page.md"
        # Before the options that were given, which may name another file for the page.
        more = ["--out", f"md={written}"] if words and words[0] in WRITING else []
        process = subprocess.Popen(
            ["loadlens", *words[:1], *more, *words[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
        code = process.wait()
        page = written.read_text("utf-8") if written.exists() else ""
    with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as shown:
        shown.write(summary(["loadlens", *words], code, "".join(lines), page))
    return code


if __name__ == "__main__":
    sys.exit(main())
