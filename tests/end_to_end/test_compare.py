"""`loadlens compare` on services whose difference is known: a wait of 20 ms, and one that is 30 % longer."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import loadlens
from loadlens.errors import ExitCode
from loadlens.present import words
from loadlens.record import open_run, run_id
from tests.calm import assert_ran, where_calm
from tests.end_to_end.explaining import LIMIT_S, free_port
from tests.end_to_end.hitting import environment
from tests.end_to_end.running import assert_sound
from tests.unit.ui.pages import asked, served

SERVICE = Path(__file__).with_name("timed_service.py")
STUDY = """\
services:
  web: {start: "python3 timed_service.py $port 20", ready: {get: /}}
entry: web
load: {rate: 50/s, warmup: 300ms, duration: 1s}
samples: none
"""


def compared(*arguments: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "loadlens", "compare", *arguments, "--json", "--margin", "10%"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, env=environment(), cwd=folder
    )
    if done.returncode != ExitCode.OBJECTIVE:
        assert_ran(done)
    answer: dict[str, Any] = json.loads(done.stdout) | {"code": done.returncode}
    return answer


def wait_for(ports: tuple[int, ...]) -> None:
    """Return once something listens on each port."""
    until = time.monotonic() + 30
    for port in ports:
        while time.monotonic() < until:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
                break
            time.sleep(0.02)


@where_calm
def test_a_service_is_not_slower_than_itself(tmp_path: Path) -> None:
    ports, record = (free_port(), free_port()), tmp_path / secrets.token_hex(4)  # of one attempt
    commands = [[sys.executable, str(SERVICE), str(port), "20"] for port in ports]
    with ExitStack() as stack:
        for command in commands:
            process = stack.enter_context(subprocess.Popen(command))
            stack.callback(process.terminate)
        wait_for(ports)
        urls = [f"http://127.0.0.1:{port}/" for port in ports]

        made = loadlens.compare(*urls, rate=50, budget="30s", margin="10%", out=record)

    assert made.verdict in ("equivalent", "undecided")
    assert made.exit_code == 0
    assert not made.ratio("response_time.p50") > "1.1"
    assert made.headline in made._repr_html_()
    # both trials of a pair had the same arrivals, and every request is accounted for
    assert_sound(open_run(record))


@where_calm
def test_a_commit_that_makes_a_study_thirty_percent_slower_is_found(tmp_path: Path) -> None:
    folder = tmp_path / secrets.token_hex(4)  # of one attempt
    folder.mkdir()

    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(
            ["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True
        )
        return done.stdout

    git("init", "-q")
    shutil.copy(SERVICE, folder)
    (folder / "study.yaml").write_text(STUDY)
    git("add", ".")
    git("commit", "-qm", "fast")
    slower = SERVICE.read_text().replace("int(sys.argv[2]) / 1000", "1.3 * int(sys.argv[2]) / 1000")
    (folder / SERVICE.name).write_text(slower)
    git("commit", "-qam", "slow")

    record = folder / "record"
    revisions = ("--rev", "HEAD~1", "--rev", "HEAD")

    answer = compared("study.yaml", *revisions, "--budget", "40s", "-o", str(record), folder=folder)

    assert (answer["verdict"], answer["code"]) == ("slower", 99)
    (headline,) = [effect for effect in answer["effects"] if effect["is_headline"]]
    # 26 ms and 20 ms, and what both spend besides waiting: below 1.3
    assert headline["metric"] == "response_time.p50"
    assert 1.15 < headline["ratio"]["point"] < 1.35
    assert len(git("worktree", "list").splitlines()) == 1
    assert [trial.samples().height for trial in open_run(record).trials] == [0] * 2 * answer["pairs"]
    with served(record, is_run=True) as page:  # its page begins with the same sentence
        run = asked(page, f"/api/runs/{run_id(record)}").json()
    assert run["answer"][0] == words.plain(answer["sentence"])
