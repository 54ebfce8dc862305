"""Verbs under conditions of their streams and folders: the exit code, the message, nothing left.

A verb's own code stays unless its standard output is lost (6); a reader that left lost nothing.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.edges.commands import WITHIN_S, assert_is_clean, possible, run
from tests.end_to_end.explaining import free_port

LOST = 6


@dataclass(frozen=True)
class Verb:
    """A command that is short, and what it needs."""

    command: str
    code: int = 0
    prints: bool = True  # on standard output
    writes: bool = False  # a file or folder below the working directory
    reads_stdin: bool = False
    needs_folder: bool = False  # for what the command refers to


# `ui` runs until a signal: it gets one when it listens, or has ended by itself.
SERVED = """bash -c '$L ui $R --port $PORT & page=$!
while kill -0 $page && ! (exec 3<>/dev/tcp/127.0.0.1/$PORT); do sleep 0.05; done 2>/dev/null
kill $page 2>/dev/null; wait $page'"""

VERBS = {
    "version": Verb("$L version"),
    "help": Verb("$L --help"),
    "schema": Verb("$L schema"),
    "completion": Verb("$L completion bash"),
    "hit": Verb("$L hit $U -n 5 -q"),
    "hit with a record": Verb("$L hit $U -n 5 -q -o r", writes=True),
    "hit with files": Verb("$L hit $U -n 5 --json -o json=a.json,md=a.md,csv=a.csv,junit=a.xml", writes=True),
    "hit of a slip": Verb("$L hit $U -d 5x", code=2, prints=False),
    "hit with an objective": Verb("$L hit $U -n 5 -q --objective 'rate>1000000000/s'", code=99),
    "explain a record": Verb("$L explain $R -q"),
    "explain of nothing": Verb("$L explain http://127.0.0.1:1/", code=3, prints=False),
    "run": Verb("$L run $S -q -o r", writes=True),
    "check": Verb("$L check $S"),
    "check of standard input": Verb("$L check -", reads_stdin=True, needs_folder=True),
    "show": Verb("$L show $R"),
    "report": Verb("$L report $R"),
    "init": Verb("$L init $U", prints=False, writes=True),
    "init from curl": Verb("$L init --from curl - -o -", reads_stdin=True),
    "demo": Verb("$L demo --list"),
    "compare": Verb("$L compare $R $R"),
    "history": Verb("$L history $R"),
    "capacity of a record": Verb("$L capacity $R -q"),
    "capacity of nothing": Verb("$L capacity http://127.0.0.1:1/ --objective 'p99<1s'", code=3, prints=False),
    "steer": Verb("$L steer $RUNNING --rate 5"),
    "steer of a load that has ended": Verb("$L steer $R --rate 5", code=2, prints=False),
    "ui": Verb(SERVED),
    "doctor": Verb("$L doctor --no-measure"),
    "fleet certs": Verb("$L fleet certs certificates", writes=True),
    "fleet doctor": Verb("$L fleet doctor --fleet local:1 --no-measure", needs_folder=True),
    "wrk": Verb("$L wrk -t1 -c1 -d1s ${U}delay/50"),
    "ab": Verb("$L ab -n 5 $U"),
    "hey": Verb("$L hey -n 5 -c 1 $U"),
    "no verb": Verb("$L frobnicate", code=2, prints=False),
}
# Around a command that is written as VERB.
CONDITIONS = {
    # and no HOME, which alone changes no code
    "stdin closed, reader gone": "unset HOME XDG_CACHE_HOME; exec 3> >(exec true); wait $!; VERB <&- >&3",
    "stdout closed": "VERB >&-",
    "stderr closed": "VERB 2>&-",
    "all closed": "VERB <&- >&- 2>&-",
    "stdout full": "VERB >/dev/full",
    "stderr full": "VERB 2>/dev/full",
    "reader of stderr gone": "exec 3> >(exec true); wait $!; VERB 2>&3",
    # and no TMPDIR, likewise
    "not encodable": "TMPDIR=/proc/nowhere LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 VERB",
    "folder deleted": "mkdir gone; cd gone; rmdir ../gone; VERB",
    "folder read-only": "cd /proc/self; VERB",
}
# Those under which an interpreter starts, which reads them then. Else a process that has the program forks.
STARTED = ("not encodable", "all closed", "folder deleted")
# What does the same for every verb is seen with a few: what writes, waits, reads its input, or has a page.
FEW = ("help", "hit", "hit with a record", "run", "wrk", "ui", "check of standard input", "init from curl")
SHOWN = (*FEW, "hit of a slip", "explain a record", "show", "report", "compare", "doctor", "no verb")
VERBS_UNDER = {
    "stdin closed, reader gone": FEW,
    "stderr closed": FEW,
    "all closed": FEW,
    "reader of stderr gone": FEW,
    "folder deleted": FEW,
    "not encodable": SHOWN,
}
CASES = [(name, condition) for condition in CONDITIONS for name in VERBS_UNDER.get(condition, tuple(VERBS))]


def expected(verb: Verb, condition: str) -> tuple[int, ...]:
    """Return the codes that a verb may end with."""
    if verb.reads_stdin and condition in ("stdin closed, reader gone", "all closed"):
        return (2,)
    if verb.needs_folder and condition == "folder deleted":
        return (2,)
    if condition in ("stdout closed", "all closed", "stdout full") and verb.prints:
        return (verb.code or LOST,)
    if condition in ("folder deleted", "folder read-only") and verb.writes:
        return (2, 5)
    return (verb.code,)


@pytest.fixture(scope="module")
def running(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The record of a load that goes on as long as the tests."""
    record = tmp_path_factory.mktemp("running") / "record"
    command = [sys.executable, "-m", "loadlens", "hit", url, "-r", "1", "-d", "1h", "-q", "-o", str(record)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as load:
        until = time.monotonic() + WITHIN_S
        while not list(record.glob("trials/*/*/live/start.json")):
            assert load.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        yield record
        load.terminate()


@pytest.mark.parametrize(("name", "condition"), CASES)
def test_a_verb_ends_with_its_code_and_a_clear_line(
    name: str, condition: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    verb = VERBS[name]
    settings = request.getfixturevalue("settings" if condition in STARTED else "forking_settings")
    command = verb.command
    if "$RUNNING" in command:
        settings = {**settings, "RUNNING": str(request.getfixturevalue("running"))}
    if "$PORT" in command:
        settings = {**settings, "PORT": str(free_port())}
    if verb.reads_stdin and "stdin" not in condition and condition != "all closed":
        given = "curl $U" if "curl" in command else 'cat "$S"'
        command = f"{command} < <({'echo ' + given if 'curl' in command else given})"

    done = run(CONDITIONS[condition].replace("VERB", command), tmp_path, settings)

    assert_is_clean(done)
    codes = {code for own in expected(verb, condition) for code in possible(own, verb.command)}
    assert done.code in codes, done.shown
    is_heard = "stderr" not in condition and condition != "all closed"
    if done.code not in (0, 4, verb.code) and is_heard:
        assert done.stderr.startswith("loadlens: ") or "\nloadlens: " in done.stderr, done.shown
