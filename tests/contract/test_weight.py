"""Check of what a short command may cost: heavy libraries load only where they are needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests import records

from loadlens.record import create_run

HEAVY = {"numpy", "scipy", "polars", "altair", "vl_convert", "pydantic", "httpx"}


def whole_names_after(code: str) -> set[str]:
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def modules_after(code: str) -> set[str]:
    return {name.partition(".")[0] for name in whole_names_after(code)}


def test_the_package_itself_loads_nothing_but_itself() -> None:
    code = "import __future__, sys\nold = set(sys.modules)\nimport loadlens\nprint(set(sys.modules) - old)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "{'loadlens'}\n"


def test_the_command_line_loads_nothing_heavy_before_a_verb_runs() -> None:
    assert not modules_after("import loadlens.cli") & HEAVY


# Takes every connection and closes it, so that a load gets past its first connection and ends at once.
CLOSING_SERVER = """
import socket, threading
listening = socket.create_server(("127.0.0.1", 0))
def serve():
    while True:
        listening.accept()[0].close()
threading.Thread(target=serve, daemon=True).start()
URL = f"http://127.0.0.1:{listening.getsockname()[1]}/"
"""


@pytest.mark.parametrize("more", [[], ["--json"], ["-q"]], ids=["summary", "json", "quiet"])
def test_a_hit_loads_nothing_heavy(more: list[str]) -> None:
    code = (
        f"{CLOSING_SERVER}import sys\nfrom loadlens.cli import app\n"
        f"sys.argv = ['loadlens', 'hit', URL, '-n', '1', '-c', '1', *{more!r}]\n"
        "try:\n    app(standalone_mode=False)\nexcept SystemExit:\n    pass"
    )

    assert not modules_after(code) & HEAVY


def test_a_hit_from_python_loads_nothing_heavy() -> None:
    code = (
        f"{CLOSING_SERVER}import loadlens\nassert not loadlens.hit(URL, requests=1, connections=1).p99 < '1h'"
    )

    assert not modules_after(code) & HEAVY


@pytest.mark.parametrize(
    "words",
    [
        ["ab", "-q", "-g", "/dev/null"],
        ["hey", "-n", "1", "-c", "1"],
        ["wrk", "-d", "1"],
        ["hit", "--driver", "ab", "-n", "10", "-r", "5"],
    ],
    ids=["ab", "hey", "wrk", "driver"],
)
def test_a_load_in_the_layout_or_by_the_hand_of_another_tool_loads_nothing_heavy(words: list[str]) -> None:
    code = (
        f"{CLOSING_SERVER}import sys\nfrom loadlens.cli import app\n"
        f"sys.argv = ['loadlens', *{words!r}, URL]\n"
        "try:\n    app(standalone_mode=False)\nexcept (SystemExit, Exception):\n    pass"
    )

    assert not modules_after(code) & HEAVY


# What a verb works with once its input is accepted; each takes longer to load than the command line itself.
OF_WORK = HEAVY | {
    "loadlens.measure", "loadlens.run.external", "loadlens.search", "loadlens.testbed",
}  # fmt: skip
CLOSED = "http://127.0.0.1:1/"


@pytest.mark.parametrize(
    "words",
    [
        ["version"],
        ["frobnicate"],
        ["hit", CLOSED, "-d", "5x"],
        ["explain", CLOSED],
        ["capacity", CLOSED],
        ["capacity", CLOSED, "--objective", "p99<1s"],
        ["compare", CLOSED, CLOSED + "a"],
        ["check", "study.yaml"],
        ["run", "study.yaml"],
        ["show", "nope"],
    ],
    ids=" ".join,
)
def test_a_refusal_loads_nothing_that_its_verb_works_with(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("key: 1\n")
    code = (
        f"import os, sys\nos.chdir({str(tmp_path)!r})\nfrom loadlens.cli import run_verb\n"
        f"sys.argv = ['loadlens', *{words!r}]\nrun_verb()"
    )

    assert not whole_names_after(code) & OF_WORK


@pytest.mark.parametrize("levels", [["users=9"], ["users=1", "users=9"], ["a=1", "b=2"]], ids=" ".join)
def test_levels_that_a_record_has_not_are_refused_before_anything_is_measured(
    levels: list[str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with create_run(run, records.study(), (), {"cores": 2}):
        pass
    code = (
        "import sys\nfrom loadlens.cli import run_verb\n"
        f"sys.argv = ['loadlens', 'compare', {str(run)!r}, *{levels!r}]\nassert run_verb() == 2"
    )

    assert not whole_names_after(code) & {"loadlens.measure", "scipy", "polars"}
