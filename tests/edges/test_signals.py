"""Ctrl-C at any moment: no traceback; twice always ends soon."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import tiny
from tests.edges.commands import MARK, WITHIN_S, marked
from tests.edges.test_table import VERBS

# One command of each verb.
EACH = (
    "version", "help", "schema", "completion", "hit", "explain a record", "run", "check", "show", "report",
    "init", "demo", "doctor", "fleet certs", "wrk", "ab", "hey",
)  # fmt: skip
PROGRAM = Path(__file__).parents[2] / "wheel" / "scripts" / "loadlens"
# Python's start, up to the line of the program that takes the signal over, is not ours to keep quiet.
FRAME = re.compile(r'File "([^"]*/loadlens(?:/[^"]*)?)", line (\d+)')
OURS_FROM = 8  # line of the program
MOMENTS_S = [0.01 + 0.02 * number for number in range(20)]
SOON_S = 2.0


@pytest.mark.parametrize("name", EACH)
def test_ctrl_c_in_the_first_moments_shows_no_traceback(
    name: str, settings: dict[str, str], tmp_path: Path
) -> None:
    """Each moment is that of four verbs, which import the same until they begin."""
    words = ["exec " + VERBS[name].command.replace("$L", f"{sys.executable} {PROGRAM}")]
    for moment_s in MOMENTS_S[EACH.index(name) % 4 :: 4]:
        folder = tmp_path / f"{moment_s:.2f}"
        folder.mkdir()
        process = subprocess.Popen(
            ["bash", "-c", *words],
            cwd=folder,
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        time.sleep(moment_s)
        process.send_signal(signal.SIGINT)
        _, raw = process.communicate(timeout=WITHIN_S)
        shown = raw.decode(errors="replace")
        frames = [(file, int(line)) for file, line in FRAME.findall(shown)]
        ours = [place for place in frames if place[0] != str(PROGRAM) or place[1] >= OURS_FROM]
        assert not ours, f"after {moment_s:.2f} s: {shown}"
        assert "internal error" not in shown, f"after {moment_s:.2f} s: {shown}"


def second_ctrl_c(command: str, folder: Path, mark: str, wait_for: Path | None, after_s: float) -> float:
    """Interrupt a command twice at a moment; return the seconds from the second to its end."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        cwd=folder,
        env={**os.environ, MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until = time.monotonic() + WITHIN_S
    while wait_for is not None and not wait_for.exists():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(timeout=WITHIN_S)
    took_s = time.monotonic() - began
    while marked(mark) and time.monotonic() < began + WITHIN_S:
        time.sleep(0.02)
    assert marked(mark) == []
    return took_s


STUBBORN = """\
import os, pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path("started").touch()
time.sleep(60)
"""


def test_two_interrupts_end_a_run_while_a_stubborn_service_starts(tmp_path: Path) -> None:
    study = tiny.write_study(tmp_path)
    (tmp_path / "server.py").write_text(STUBBORN)

    took_s = second_ctrl_c(
        f"{sys.executable} -m loadlens run {study} -o r", tmp_path, str(tmp_path), tmp_path / "started", 0.1
    )

    assert took_s < SOON_S


@pytest.mark.parametrize("after_s", [0.05, 0.3, 0.6, 1.0])
def test_two_interrupts_end_the_writing_of_a_report(
    after_s: float, settings: dict[str, str], tmp_path: Path
) -> None:
    command = f"{sys.executable} -m loadlens report {settings['R']}"

    assert second_ctrl_c(command, tmp_path, str(tmp_path), None, after_s) < SOON_S
