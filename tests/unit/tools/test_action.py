"""The step of the GitHub Action: what it runs, what it writes into the summary, and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from tests.scripts import ROOT

# In the place of Loadlens: prints its words but those that name the page, writes the page, ends as asked.
PROGRAM = """
import json, os, pathlib, sys
words = sys.argv[1:]
if words[0] == "doctor":
    print(json.dumps({"untrusted": [text for text in [os.environ.get("NOISE")] if text]}))
    sys.exit(0)
if "--out" in words:
    at = words.index("--out")
    _, page = words[at : at + 2]
    words[at : at + 2] = []
    if "--refused" not in words:
        pathlib.Path(page.removeprefix("md=")).write_text("## The answer\\n")
print("heard", words)
sys.exit(99 if "--missed" in words else 2 if "--refused" in words else 0)
"""


def step(folder: Path, command: str, **settings: str) -> tuple[int, str, str]:
    """Run the step with a command and variables; return its exit code, its output and the summary."""
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
            **settings,
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


def test_a_machine_that_doctor_does_not_trust_judges_nothing_and_says_why(tmp_path: Path) -> None:
    noise = "others use 40.0 % of the CPUs"
    code, output, summary = step(tmp_path, "compare A B", NOISE=noise)

    assert code == 4
    assert "heard" not in output
    assert f"Not judged: this machine cannot be trusted now.\n\n- {noise}\n" in summary
    assert step(tmp_path, "compare A B", NOISE=noise, UNTRUSTED="run")[0] == 0
    assert step(tmp_path, "check study.yaml", NOISE=noise)[0] == 0


class Comments(BaseHTTPRequestHandler):
    """The part of GitHub's API that holds the comments of a pull request."""

    texts: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        url = f"http://{self.headers['Host']}/comments"
        held = [{"body": text, "url": f"{url}/{at}"} for at, text in enumerate(self.texts)]
        self.answer(held)

    def do_POST(self) -> None:
        self.texts.append(self.body())
        self.answer({})

    def do_PATCH(self) -> None:
        self.texts[int(self.path.rpartition("/")[2])] = self.body()
        self.answer({})

    def body(self) -> str:
        assert self.headers["Authorization"] == "Bearer t"
        return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

    def answer(self, content: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_: object) -> None: ...


def test_a_pull_request_has_one_comment_for_each_command_and_the_next_run_replaces_it(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text('{"pull_request": {"number": 7}}')
    Comments.texts.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Comments) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        settings = {
            "COMMENT": "true",
            "GITHUB_API_URL": f"http://127.0.0.1:{server.server_address[1]}",
            "GITHUB_REPOSITORY": "a/b",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_TOKEN": "t",
        }
        for command in ("hit URL", "compare A B", "hit URL"):
            code, output, _ = step(tmp_path, command, **settings)
            assert (code, "warning" in output) == (0, False)
        event.write_text("{}")
        _, outside, _ = step(tmp_path, "hit URL", **settings)
        server.shutdown()

    assert [text.split("\n")[1] for text in Comments.texts] == [
        "### `loadlens hit URL`",
        "### `loadlens compare A B`",
    ]
    assert all("## The answer" in text for text in Comments.texts)
    assert "::warning::no comment was written: this is no run of a pull request" in outside
