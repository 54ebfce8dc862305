"""Limits of address space, files, processes and memory: each verb ends with a code and a line, or goes on.

Each command stands under one limit. `ulimit -u` does not bind root: another account stands under it, with the
right to read our files; and control groups, where this machine lets us make them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from benches.measuring import origin

import loadlens
from loadlens.machine import cgroups
from tests import tiny
from tests.end_to_end.hitting import origin_program, url_of

WITHIN_S = 90.0
NOT_USED = 61234  # an account without a process
CODES = (0, 2, 3, 4, 5)  # no verb dies of a signal or of an internal error
VERBS = {
    "hit": "$L hit $U -n 20 -q",
    "hit with a record": "rm -rf r; $L hit $U -n 20 -q -o r",
    "hit with threads": "$L hit $U -n 20 -q -t 8",
    "wrk": "$L wrk -t 2 -c 2 -d 1s $U",
    "check": "$L check study",
    "run": "$L run study -o r --quiet",
    "show": "$L show record",
    "report": "$L report record",
    # it searches until it sees that the service only fails, which it says and is 3
    "explain": "$L explain ${U}status/500 --budget 15s -o r >out 2>err; code=$?; cat err >&2; "
    'if [ $code = 3 ]; then grep -q "status 500" out err; else exit $code; fi',
    "doctor": "$L doctor --no-measure",
    "version": "$L version",
}


@dataclass(frozen=True)
class Limit:
    """A limit, and what must be said by a verb that it refuses."""

    command: str  # $G: a control group of our own
    words: str
    refuses: frozenset[str] = frozenset()  # verbs that certainly need more
    allows: frozenset[str] = frozenset()  # and those that certainly do not


LAB = frozenset({"run", "show", "report", "explain"})
SMALL = frozenset({"check", "version"})
LIMITS = (
    Limit("ulimit -v 400000", "address space", refuses=LAB, allows=SMALL | {"hit", "hit with a record"}),
    Limit(
        "ulimit -v 4000000", "address space", refuses=frozenset({"run", "report"}), allows=SMALL | {"show"}
    ),
    Limit("ulimit -d 600000", "data", refuses=frozenset({"run", "report"}), allows=SMALL | {"hit", "show"}),
    Limit("ulimit -n 24", "open files", refuses=LAB, allows=SMALL),
    Limit("ulimit -n 12", "open files", refuses=LAB, allows=SMALL),
    Limit("ulimit -Sn 12", "", allows=SMALL | LAB),  # a soft limit is raised
)
PROCESSES = (
    # bash, python and one more; then a few threads of the generator
    Limit("3", "processes", refuses=LAB | {"hit"}, allows=SMALL),
    Limit("8", "processes", refuses=LAB | {"hit with threads"}, allows=SMALL),
    Limit("16", "processes", refuses=LAB, allows=SMALL | {"hit", "doctor"}),
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with origin(origin_program(), cpu=0) as server:
        yield url_of(server)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("record")
    tiny.write_study(folder / "study", trials=1, users="[1]")
    done = _shell(f"{VERBS['run']} && mv r record", folder, "")
    assert done.returncode == 0, done.stderr
    return folder


def _shell(command: str, folder: Path, url: str, group: str = "") -> subprocess.CompletedProcess[str]:
    settings = {**os.environ, "L": f"{sys.executable} -m loadlens", "U": url, "G": group}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=settings,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=WITHIN_S,
        check=False,
    )


def _check(done: subprocess.CompletedProcess[str], verb: str, limit: Limit) -> None:
    assert done.returncode in CODES, done.stderr
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    if verb in limit.allows:
        assert done.returncode == 0, done.stderr
    if verb in limit.refuses:
        assert done.returncode == 2, done.stderr
        line, advice = done.stderr.splitlines()[-2:]
        assert line.startswith("loadlens: ")
        assert limit.words in line
        assert "ulimit" in advice  # one thing to try


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.command)
def test_a_verb_under_a_limit_ends_in_a_clear_line(verb: str, limit: Limit, record: Path, url: str) -> None:
    done = _shell(f"rm -rf r; {limit.command}; {VERBS[verb]}", record, url)

    _check(done, verb, limit)


def test_a_search_climbs_with_few_open_files(record: Path, url: str) -> None:
    """A soft limit is raised, and a service that answers is searched to the end."""
    done = _shell("rm -rf r; ulimit -Sn 12; $L explain $U --budget 15s -o r", record, url)

    assert done.returncode == 0, done.stderr
    assert "users" in done.stdout


@contextlib.contextmanager
def _group(controller: str, setting: tuple[str, ...], number: int) -> Iterator[Path]:
    """A control group inside our own with a limit, which goes with all that is in it."""
    made = None
    for _, parent in cgroups.around(controller):
        folder = parent / f"loadlens-test-{secrets.token_hex(4)}"
        with contextlib.suppress(OSError):
            folder.mkdir()
            names = [name for name in setting if (folder / name).exists()]
            if names:
                (folder / names[0]).write_text(str(number))
                made = folder
                break
            folder.rmdir()
    if made is None:
        pytest.skip(f"no control group with {controller} can be made here")
    try:
        yield made
    finally:
        until = time.monotonic() + 20
        while pids := (made / "cgroup.procs").read_text().split():
            assert time.monotonic() < until, pids
            time.sleep(0.05)
        made.rmdir()


JOIN = 'echo $BASHPID > "$G/cgroup.procs"'


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("limit", PROCESSES, ids=lambda limit: f"pids {limit.command}")
def test_a_verb_with_few_processes_ends_in_a_clear_line(
    verb: str, limit: Limit, record: Path, url: str
) -> None:
    with _group("pids", ("pids.max",), int(limit.command)) as group:
        done = _shell(f"rm -rf r; {JOIN}; {VERBS[verb]}", record, url, str(group))

    _check(done, verb, limit)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
@pytest.mark.parametrize(("most", "verb", "code"), [(3, "hit", 2), (4, "hit", 0), (16, "run", 2)])
def test_a_user_with_few_processes_gets_a_clear_line(most: int, verb: str, code: int, url: str) -> None:
    """The program, the timer of bash and two threads of the generator make four."""
    rights = "-all,+dac_read_search,+dac_override"
    user = f"setpriv --reuid {NOT_USED} --clear-groups --inh-caps={rights} --ambient-caps={rights}"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        tiny.write_study(Path(folder) / "study", trials=1, users="[1]")
        done = _shell(f"{user} bash -c 'ulimit -u {most}; {VERBS[verb]}'", Path(folder), url)

    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert ("processes" in done.stderr) == (code == 2), done.stderr


def test_a_limit_that_is_met_in_the_middle_keeps_the_trial(record: Path) -> None:
    with _group("pids", ("pids.max",), 200) as group:
        command = f"rm -rf r; {JOIN}; exec {VERBS['run']}"
        settings = {**os.environ, "L": f"{sys.executable} -m loadlens", "G": str(group)}
        process = subprocess.Popen(
            ["bash", "-c", command], cwd=record, env=settings, stderr=subprocess.PIPE, text=True
        )
        until = time.monotonic() + WITHIN_S
        while not list(record.glob("r/trials/*/*/live/start.json")):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
        (group / "pids.max").write_text("1")
        _, shown = process.communicate(timeout=WITHIN_S)

    assert process.returncode == 4, shown
    assert "Traceback" not in shown
    assert "panicked" not in shown
    assert "this machine gives no more processes or threads" in shown
    (trial,) = loadlens.open(record / "r").trials
    assert not trial.is_sealed
    assert len(trial.samples()) > 0


def test_a_study_that_is_killed_for_its_memory_keeps_what_it_has(record: Path) -> None:
    """The kernel kills the lab, the service, or both: the record opens, and nothing stays."""
    with _group("memory", ("memory.max", "memory.limit_in_bytes"), 60 << 20) as group:
        with contextlib.suppress(OSError):
            (group / "memory.swap.max").write_text("0")
        done = _shell(f"rm -rf r; {JOIN}; {VERBS['run']}", record, "", str(group))

    assert done.returncode != 0  # 137 where the lab itself is killed
    assert "Traceback" not in done.stderr
    if (record / "r").exists():
        assert not any(trial.is_sealed for trial in loadlens.open(record / "r").trials)
