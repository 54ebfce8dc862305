"""Check of what reaches a terminal and a pipe under NO_COLOR, FORCE_COLOR and TERM: colours, a picture."""

from __future__ import annotations

import itertools
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from loadlens.report.write.terminal.explanation_text import print_explanation
from loadlens.report.write.terminal.report_text import print_report
from tests.scripts import ROOT
from tests.unit.report.write import sample_explanation, sample_report

BOLD_OR_COLOUR = ("\x1b[1m", "\x1b[1;", "\x1b[3", "\x1b[9", "\x1b[38;")
HIDES_CURSOR = "\x1b[?25l"
LISTENS = """
import socket, threading
listening = socket.create_server(("127.0.0.1", 0))
def serve():
    while True:
        client = listening.accept()[0]
        while client.recv(4096):
            client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
threading.Thread(target=serve, daemon=True).start()
"""
HIT = f"""{LISTENS}
import sys
from loadlens.cli import main
sys.argv = ["loadlens", "hit", f"http://127.0.0.1:{{listening.getsockname()[1]}}/", "-c", "1", "-d", "300ms"]
main()
"""
DOCTOR = """
import sys
from loadlens.cli import main
sys.argv = ["loadlens", "doctor", "--no-measure"]
main()
"""
HELP = DOCTOR.replace('"--no-measure"', '"--help"')


def environment(variables: dict[str, str], cache: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    places = {"PYTHONPATH": str(ROOT / "python"), "XDG_CACHE_HOME": str(cache)}
    return {**kept, "TERM": "xterm", **places, **variables}


def on_a_terminal(code: str, variables: dict[str, str], cache: Path) -> str:
    """Run Python code on a terminal; return everything that reached it."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment(variables, cache),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        written = b""
        while chunk := _read(ours):
            written += chunk
    os.close(ours)
    return written.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other side is closed
        return b""


def in_a_pipe(code: str, variables: dict[str, str], cache: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(variables, cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    )
    return done.stdout.decode()


def has_colour(written: str) -> bool:
    return any(code in written for code in BOLD_OR_COLOUR)


# Variables; colours on a terminal, colours in a pipe, a picture on a terminal.
CASES = [
    ({}, True, False, True),
    ({"NO_COLOR": "1"}, False, False, True),
    ({"FORCE_COLOR": "1"}, True, True, True),
    ({"TERM": "dumb"}, False, False, False),
    ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True, False),
]


@pytest.mark.parametrize(("variables", "coloured", "piped", "drawn"), CASES, ids=str)
def test_a_load_is_shown_as_the_terminal_can(
    variables: dict[str, str], coloured: bool, piped: bool, drawn: bool, tmp_path: Path
) -> None:
    shown, sent = on_a_terminal(HIT, variables, tmp_path), in_a_pipe(HIT, variables, tmp_path)

    assert "requests/s" in shown
    assert (has_colour(shown), has_colour(sent)) == (coloured, piped)
    assert (HIDES_CURSOR in shown, HIDES_CURSOR in sent) == (drawn, False)
    if variables == {"TERM": "dumb"}:
        assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("code", "variables", "coloured", "piped", "_"),
    [*((HELP, *case) for case in CASES), *((DOCTOR, *case) for case in CASES[:2])],
    ids=map(str, itertools.count()),
)
def test_a_list_is_coloured_as_asked(
    code: str, variables: dict[str, str], coloured: bool, piped: bool, _: bool, tmp_path: Path
) -> None:
    assert has_colour(on_a_terminal(code, variables, tmp_path)) == coloured
    assert has_colour(in_a_pipe(code, variables, tmp_path)) == piped


@pytest.mark.parametrize(("variables", "_", "piped", "__"), CASES, ids=str)
def test_an_answer_and_a_report_are_coloured_in_a_pipe_only_if_asked(
    variables: dict[str, str],
    _: bool,
    piped: bool,
    __: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **variables}.items():
        monkeypatch.setenv(name, value)

    print_explanation(sample_explanation.sample())
    answer = capsys.readouterr().out
    print_report(sample_report.sample())
    report = capsys.readouterr().out

    assert (has_colour(answer), has_colour(report)) == (piped, piped)
