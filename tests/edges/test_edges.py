"""Edges around the process: streams, bytes, files, limits and signals, one command per line.

A shell runs each command as a user would type it. Checked are the exit code, the message, and that what was
measured is shown or kept.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import loadlens
from tests.edges.commands import PROGRAM, WITHIN_S, possible

ROWS = 5_000  # of 64 bytes: 312.5 KiB


@dataclass(frozen=True)
class Edge:
    """A command with $L for the program and $U for a URL that answers, and how it must end."""

    command: str
    code: int
    stderr: tuple[str, ...] = ()  # each is part of it
    stdout: tuple[str, ...] = ()


STREAMS = (
    Edge("$L version >/dev/full", 6, ("the output could not be written: no space left on device",)),
    Edge("$L version >&-", 6, ("the output could not be written: bad file descriptor",)),
    Edge("set -o pipefail; $L version | true", 0),
    Edge("$L --help >/dev/full", 6, ("no space left",)),
    Edge("$L schema >/dev/full", 6, ("no space left",)),
    Edge("$L hit $U -n 5 -q >/dev/full", 6, ("no space left",)),
    Edge("$L hit $U -n 5 -q >&-", 6, ("bad file descriptor",)),
    Edge("$L hit $U -n 5 -q 2>&-", 0, (), ("errors 0",)),
    Edge("$L hit $U -n 5 -q <&-", 0, (), ("errors 0",)),
    Edge("$L hit $U -n 5 -q <&- 2>&- -o r && $L show r >/dev/null", 0),
    # the verdict of the load is not lost with its reader
    Edge("set -o pipefail; $L hit $U -n 500 -q --objective 'rate>1000000000/s' | true", 99),
    Edge("$L hit $U -n 500 -q --objective 'rate>1000000000/s' >/dev/full", 99, ("no space left",)),
    Edge("LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 $L hit $U -n 5", 0, (), ("errors 0",)),
    # without its URL a page cannot be opened: it ends
    Edge("$L ui . >/dev/full", 6, ("no space left",)),
    Edge("set -o pipefail; $L ui . | true", 0),
)
BYTES = (
    Edge("$L hit $'http://127.0.0.1:8080/\\xff'", 2, ("not UTF-8", "%FF")),
    Edge("$L hit $U -n 1 -H $'X: \\xff'", 2, ("not UTF-8", "--header")),
    Edge("$L hit $'http://127.0.0.1:8080/a\\tb'", 2, ("control character", "%09")),
    Edge("$L hit $'http://127.0.0.1:8080/a\\nb'", 2, ("control character", "%0A")),
    Edge("$L hit $'http://127.0.0.1:8080/a\\rb'", 2, ("control character", "%0D")),
    Edge("$L check $'\\x1b[31m'", 2, ("\\x1b[31m",)),
    Edge("$L $'\\x1b[31m'", 2, ("\\x1b[31m",)),
    Edge("$L hit $U -n 5 -q -o $'r\\xff'", 2, ("not UTF-8", "--out")),
    Edge("mkdir $'r\\xff'; cd $'r\\xff'; $L hit $U -n 5 -q", 0, (), ("errors 0",)),
    Edge("mkdir $'r\\xff'; cd $'r\\xff'; $L hit $U -n 5 -q -o r", 2, ("not UTF-8", "--out")),
    Edge("mkdir $'t\\xff'; TMPDIR=$PWD/$'t\\xff' $L explain $U -q", 2, ("not UTF-8", "TMPDIR")),
    Edge("mkdir gone; cd gone; rmdir ../gone; $L check study.yaml", 2, ("study.yaml",)),
    Edge(f"$L show {'a' * 300}", 2, ("file name too long",)),
    Edge(f"$L check {'a' * 300}", 2, ("file name too long",)),
)
BOUNDS = (
    Edge("$L hit $U -n 2 -f /dev/zero", 2, ("longer than 1 MiB", "--body-file")),
    Edge("$L hit $U -n 2 -b @/dev/zero", 2, ("longer than 1 MiB", "--body")),
    Edge("mkfifo pipe; $L hit $U -n 2 --replay pipe", 2, ("not a regular file", "--replay")),
    Edge('mkfifo pipe.csv; $L hit "$U?{{f.a}}" -n 2 --feed f=pipe.csv', 2, ("not a regular file",)),
    Edge("$L hit $U -n 2 -q -f <(echo hello)", 0, (), ("errors 0",)),
    Edge("$L hit $U -d 0s", 2, ("above 0", "--duration")),
    Edge("$L ui nowhere", 5, ("there is no record nowhere",)),
    Edge("$L ui . --port 99999", 2, ("--port",)),
    Edge("$L ui . --origin load.example.com", 2, ("not an origin", "--origin")),
    Edge("ulimit -n 256; $L hit $U -c 1000 -n 1000", 2, ("file descriptors", "256")),
    Edge("ulimit -n 14; $L fleet doctor --fleet local:1 --no-measure", 2, ("needs 40 open files", "14")),
    Edge("$L hit $U -n 5 -o ''", 2, ("an empty name", "--out")),
    Edge("$L hit $U -n 5 -o -", 2, ("a record is a folder", "--json")),
    Edge("$L hit $U -n 5 -o json=a.json -o json=b.json", 2, ("two files of one format: json",)),
    Edge("ln -s l l; $L check l", 2, ("there is no study l\n  try ",)),
    Edge("$L init ${U}bad/interim_endless -o -", 3, ("interim responses",)),
    Edge("$L init ${U}bad/interim_100_times -o -", 0),
    Edge("$L hit http://nohost.invalid/", 3, ("nohost.invalid",)),
)


def shell(
    command: str, folder: Path, url: str = "", program: str = PROGRAM
) -> subprocess.CompletedProcess[bytes]:
    settings = {**os.environ, "L": program, "U": url}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=settings, capture_output=True, timeout=WITHIN_S, check=False
    )


@pytest.mark.parametrize("edge", [*STREAMS, *BYTES, *BOUNDS], ids=lambda edge: edge.command[:70])
def test_a_command_at_an_edge_ends_with_its_code_and_a_clear_line(
    edge: Edge, tmp_path: Path, url: str, forking_settings: dict[str, str]
) -> None:
    program = forking_settings["L"] if edge in BOUNDS else PROGRAM

    done = shell(edge.command, tmp_path, url, program)

    shown = done.stderr.decode(errors="replace")
    assert done.returncode in possible(edge.code, edge.command), shown
    assert all(part in shown for part in edge.stderr), shown
    assert all(part in done.stdout.decode() for part in edge.stdout), done.stdout
    assert "Traceback" not in shown
    assert "internal error" not in shown
    assert b"\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("limit_kib", "words", "keeps"),
    [
        (8, "cannot write: File too large", False),  # trial.json takes some 40 KB
        (100, "samples.bin ends early: File too large", False),
        (200, "samples.bin ends early: File too large", False),
        (300, "samples.bin ends early: File too large", True),  # a chunk of 4,096 rows of 64 bytes
    ],
)
def test_figures_are_shown_and_the_reason_kept_where_a_file_meets_its_limit(
    limit_kib: int, words: str, keeps: bool, tmp_path: Path, url: str
) -> None:
    done = shell(f"ulimit -f {limit_kib}; $L hit $U -c 1 -n {ROWS} -o r", tmp_path, url)

    assert done.returncode == 5, done.stderr
    assert b"requests/s" in done.stdout
    assert f"the record is incomplete: {words}".encode() in done.stderr
    (trial,) = loadlens.open(tmp_path / "r").trials
    assert trial.reasons[0].removeprefix("not sealed: ").startswith(words)
    kept = len(trial.samples(["status"]))  # a long load is written in smaller chunks
    assert (1 if keeps else 0) <= kept <= limit_kib * 1024 // 64
    assert kept < ROWS


def test_no_module_is_kept_that_a_limit_may_have_cut(tmp_path: Path, url: str) -> None:
    kept = "PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$PWD/kept"

    done = shell(f"ulimit -f 64; {kept} $L version", tmp_path, url)

    assert done.returncode == 0, done.stderr
    ours = {path.name.partition(".")[0] for path in tmp_path.glob("kept/**/loadlens/**/*.pyc")}
    assert ours == {"__init__", "__main__"}  # small, and loaded before the limit is looked at


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_seals_the_record_and_shows_the_figures(
    number: signal.Signals, code: int, tmp_path: Path, url: str
) -> None:
    command = [sys.executable, "-m", "loadlens", "hit", url, "-r", "50", "-d", "50s", "-o", "r"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + WITHIN_S
    while not list(tmp_path.glob("r/trials/*/*/live/start.json")):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(number)
    out, _ = process.communicate(timeout=WITHIN_S)

    assert process.returncode == code
    assert b"stopped early" in out
    assert loadlens.open(tmp_path / "r").trials[0].is_sealed


@pytest.mark.parametrize("limit", ["ulimit -St 1", "ulimit -t 5"])
def test_a_load_whose_cpu_time_is_used_up_is_sealed_and_shown(limit: str, tmp_path: Path, url: str) -> None:
    done = shell(f"{limit}; $L hit $U -c 8 -d 50s -o r", tmp_path, url)

    assert done.returncode == 152, done.stderr
    assert b"stopped early" in done.stdout
    assert b"the CPU time of this process is used up (ulimit -t)" in done.stderr
    assert loadlens.open(tmp_path / "r").trials[0].is_sealed


# A shell that is not interactive ignores SIGINT in a job that it begins with `&`, though not from its first
# instruction on.
STORM = "trap '' {0}; {1} & while kill -{0} $! 2>&-; do sleep 0.02; done; wait $!"


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_a_load_goes_on_under_a_signal_that_is_ignored(name: str, tmp_path: Path, url: str) -> None:
    command = STORM.format(name, "$L hit $U -r 50 -d 1s -q -o r")

    done = shell(command, tmp_path, url)

    assert done.returncode in possible(0, command), done.stderr
    assert loadlens.open(tmp_path / "r").trials[0].is_sealed


def test_a_study_and_its_reports_go_on_where_ctrl_c_is_ignored(settings: dict[str, str]) -> None:
    """Polars, which reads and writes the tables, takes SIGINT even where it is ignored."""
    folder = Path(settings["R"]).parent

    run = shell(STORM.format("INT", f"$L run {settings['S']} -q -o of-a-job"), folder)
    report = shell(STORM.format("INT", f"$L report {settings['R']}"), folder)

    assert run.returncode in possible(0, "$L run $S"), run.stderr
    assert report.returncode == 0, report.stderr
