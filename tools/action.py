"""Run the command of the GitHub Action, and write its result as Markdown into the job's summary.

The command comes in COMMAND and is split as a shell would, without expanding anything. A report that it made
goes into the summary; without one, its output does. The exit code is that of the command.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

MOST_BYTES = 900_000  # a summary may have 1 MiB per step


def newest_report(since_ns: int) -> Path | None:
    """Return the report that was written after a time, if any, the newest of several."""
    reports = [path for path in Path("runs").glob("*/report.md") if path.stat().st_mtime_ns >= since_ns]
    return max(reports, key=lambda path: path.stat().st_mtime_ns, default=None)


def summary(words: list[str], code: int, output: str, report: str | None) -> str:
    """Return the summary: the command and its exit code, then the report or the output."""
    head = f"### `{shlex.join(words)}`\n\n{'Done' if code == 0 else f'**Exit code {code}**'}\n\n"
    body = f"```text\n{output.rstrip()}\n```\n" if report is None else report
    text = head + body
    if len(text.encode()) > MOST_BYTES:
        return f"{head}The result is larger than a summary may be: see the log and the record.\n"
    return text


def main() -> int:
    """Return the exit code of the command."""
    words = ["loadlens", *shlex.split(os.environ["COMMAND"])]
    began_ns = time.time_ns()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    code = process.wait()
    report = newest_report(began_ns)
    with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as written:
        written.write(summary(words, code, "".join(lines), report.read_text("utf-8") if report else None))
    return code


if __name__ == "__main__":
    sys.exit(main())
