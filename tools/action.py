"""Run the command of the GitHub Action, and show its result in the job's summary and on the pull request.

The command comes in COMMAND and is split as a shell would, without expanding anything. A verb that writes its
result as Markdown does so; without that, what was printed goes into the summary. Before a verb that judges,
the machine is looked at: if `doctor` does not trust it, nothing runs, the reason is shown, and the step ends
with exit code 4 (UNTRUSTED=run goes on). Otherwise the exit code is that of the command. With COMMENT=true
the page is also a comment of the pull request, which the next run replaces.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

MOST_BYTES: Final = 900_000  # a summary may have 1 MiB per step
MOST_IN_COMMENT: Final = 60_000  # characters; GitHub takes 65,536
WRITING: Final = ("hit", "explain", "capacity", "compare", "run", "report")  # verbs with --out md=FILE
JUDGING: Final = ("hit", "explain", "capacity", "compare", "run")
INVALID: Final = 4  # exit code of a measurement that says nothing


def summary(words: list[str], code: int, output: str, page: str) -> str:
    """Return the summary: the command and its exit code, then the page, or the output if there is none."""
    head = f"### `{shlex.join(words)}`\n\n{'Done' if code == 0 else f'**Exit code {code}**'}\n\n"
    text = head + (page or f"```text\n{output.rstrip()}\n```\n")
    if len(text.encode()) > MOST_BYTES:
        return f"{head}The result is larger than a summary may be: see the log and the record.\n"
    return text


def untrusted() -> list[str]:
    """Return why `doctor` does not trust this machine; empty if nothing speaks against it."""
    done = subprocess.run(
        ["loadlens", "doctor", "--no-measure", "--json"], capture_output=True, text=True, check=False
    )
    try:
        reasons = json.loads(done.stdout)["untrusted"]
    except (ValueError, KeyError, TypeError):
        return [f"loadlens doctor failed: {done.stderr.strip() or done.stdout.strip()}"]
    return [str(reason) for reason in reasons]


def run(words: list[str]) -> tuple[int, str, str]:
    """Run the command; return its exit code, its output and its page, empty without one."""
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
        return code, "".join(lines), written.read_text("utf-8") if written.exists() else ""


def post(text: str, words: list[str], environment: Mapping[str, str]) -> str:
    """Write the comment of the pull request, or replace an earlier one; return why not, or nothing."""
    event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text("utf-8"))
    number = event.get("pull_request", {}).get("number")
    if number is None:
        return "this is no run of a pull request"
    mark = f"<!-- loadlens {hashlib.sha256(shlex.join(words).encode()).hexdigest()[:12]} -->"
    shown = (
        text if len(text) <= MOST_IN_COMMENT else f"{text[:MOST_IN_COMMENT]}\n\n… cut: see the job's summary"
    )
    base = f"{environment['GITHUB_API_URL']}/repos/{environment['GITHUB_REPOSITORY']}/issues"
    try:
        earlier = _asked(f"{base}/{number}/comments?per_page=100", environment)
        own = next((each["url"] for each in earlier if str(each["body"]).startswith(mark)), None)
        body = {"body": f"{mark}\n{shown}"}
        if own is None:
            _asked(f"{base}/{number}/comments", environment, "POST", body)
        else:
            _asked(own, environment, "PATCH", body)
    except urllib.error.URLError as fault:
        return f"{fault}; the job needs `permissions: pull-requests: write`"
    return ""


def _asked(url: str, environment: Mapping[str, str], method: str = "GET", body: object = None) -> Any:
    request = urllib.request.Request(
        url,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {environment['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def main() -> int:
    """Return the exit code of the command, or 4 on a machine that is not trusted."""
    words = shlex.split(os.environ["COMMAND"])
    reasons: list[str] = []
    if words and words[0] in JUDGING and os.environ.get("UNTRUSTED", "refuse") != "run":
        reasons = untrusted()
    if reasons:
        listed = "\n".join(f"- {reason}" for reason in reasons)
        code, output = INVALID, ""
        page = f"Not judged: this machine cannot be trusted now.\n\n{listed}\n"
        print(page)
    else:
        code, output, page = run(words)
    text = summary(["loadlens", *words], code, output, page)
    with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as shown:
        shown.write(text)
    if os.environ.get("COMMENT") == "true" and (why := post(text, words, os.environ)):
        print(f"::warning::no comment was written: {why}")
    return code


if __name__ == "__main__":
    sys.exit(main())
