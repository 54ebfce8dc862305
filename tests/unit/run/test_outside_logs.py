"""Logs of a process that ran already: what it appends while a load runs, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadlens.model.topology import Outside
from loadlens.run import outside_logs

# Says a line for each line on its input: on its output, in a log that it appends to, and in a file that it
# may also read, as databases have them.
PROGRAM = """
import sys
folder = sys.argv[1]
log, data = open(folder + "/app.log", "a"), open(folder + "/data.db", "r+")
for line in sys.stdin:
    for file in (sys.stdout, log, data):
        print(file.name.rpartition("/")[2], line.strip(), file=file, flush=True)
    print("done", file=sys.stderr, flush=True)
"""


class Service:
    def __init__(self, folder: Path) -> None:
        (folder / "data.db").write_text("data\n")
        self.output = folder / "out.txt"
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(folder)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
            )

    def say(self, words: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        print(words, file=self.process.stdin, flush=True)
        self.process.stderr.readline()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    started = Service(tmp_path)
    started.say("before")  # so that its files are open
    yield started
    assert started.process.stdin is not None
    started.process.stdin.close()
    started.process.wait()


def outside(*pids: int, is_here: bool = True) -> Outside:
    return Outside("app", "127.0.0.1", is_here=is_here, pids=pids)


def test_what_was_appended_since_is_kept_and_not_what_stood_there(service: Service, tmp_path: Path) -> None:
    logs = outside_logs.of(outside(service.process.pid))
    service.say("database is locked")
    assert logs is not None
    (tmp_path / "kept").mkdir()
    logs.keep(tmp_path / "kept")

    assert sorted(_kept(tmp_path).splitlines()) == [
        "<stdout> database is locked",
        "app.log database is locked",
    ]


def _kept(folder: Path) -> str:
    return (folder / "kept" / "app.log").read_text()


def test_nothing_is_kept_of_a_silent_service_or_of_one_elsewhere(service: Service, tmp_path: Path) -> None:
    logs = outside_logs.of(outside(service.process.pid))
    assert logs is not None
    logs.keep(tmp_path / "none")

    assert not (tmp_path / "none").exists()
    assert outside_logs.of(outside(service.process.pid, is_here=False)) is None
    assert outside_logs.of(outside()) is None
    assert outside_logs.of(None) is None


def test_of_a_flood_the_end_is_kept(service: Service, tmp_path: Path) -> None:
    logs = outside_logs.of(outside(service.process.pid))
    service.say("x" * outside_logs.MOST_BYTES)
    service.say("the last words")
    assert logs is not None
    (tmp_path / "kept").mkdir()
    logs.keep(tmp_path / "kept")

    kept = _kept(tmp_path)
    assert len(kept) == 2 * outside_logs.MOST_BYTES
    assert kept.endswith("the last words\n")


def test_a_log_that_was_removed_is_left_out(service: Service, tmp_path: Path) -> None:
    service.output.unlink()

    logs = outside_logs.of(outside(service.process.pid))

    assert logs is not None
    assert [path for path, _ in logs.sizes] == [tmp_path / "app.log"]
