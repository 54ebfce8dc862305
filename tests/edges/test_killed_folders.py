"""Temporary folders of a process that is killed go at once; the next start removes what its guard cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadlens.testbed import keeper_process, remains
from tests.end_to_end.testbed_cases import is_alive, still_there

FOLDER = """\
import time
from loadlens import temporary
with temporary.folder("test") as folder:
    (folder / "kept").write_text("content")
    print(folder, flush=True)
    input()
"""
UNFINISHED = """\
from pathlib import Path
from loadlens import temporary
with temporary.noted(Path("half").absolute(), marker="test"):
    Path("half").mkdir()
    print(Path("half").absolute(), flush=True)
    input()
"""
EMPTY_NOTE = """\
import fcntl, os
from loadlens import temporary
temporary.notes_folder().mkdir(parents=True)
note = os.open(temporary.notes_folder() / "begun.json", os.O_RDWR | os.O_CREAT)
print(temporary.notes_folder() / "begun.json", flush=True)
input()
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.fixture
def begun(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that runs a script, and what it said."""
    process = subprocess.Popen(
        [sys.executable, "-c", request.param],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    yield process, Path(process.stdout.readline().strip())
    process.kill()
    process.communicate()


def guards_of(process: subprocess.Popen[str]) -> list[int]:
    below = [each.pid for each in keeper_process.all_processes().values() if each.parent == process.pid]
    return [pid for pid in below if "temporary.py" in keeper_process.command_of(pid)]


def notes() -> list[str]:
    folder = Path(os.environ["LOADLENS_CACHE"]) / "keepers"
    return [path.name for path in folder.glob("*")]


@pytest.mark.parametrize("begun", [FOLDER], indirect=True)
def test_a_folder_goes_with_a_process_that_is_killed(begun: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = begun
    was_there = (folder / "kept").exists()

    process.kill()

    assert was_there
    assert still_there(lambda: [*filter(os.path.exists, [str(folder)]), *notes()], within_s=3.0) == []


@pytest.mark.parametrize("begun", [FOLDER], indirect=True)
def test_a_folder_whose_guard_is_killed_too_is_removed_by_the_next_start(
    begun: tuple[subprocess.Popen[str], Path],
) -> None:
    process, folder = begun
    assert still_there(lambda: [] if guards_of(process) else [folder], within_s=10.0) == []
    guards = guards_of(process)

    for guard in guards:
        os.kill(guard, 9)
    assert (
        still_there(lambda: [pid for pid in guards if is_alive(pid)], within_s=10.0) == []
    )  # they hold the lock
    while_it_lives = remains.end()
    was_there = folder.exists()
    process.kill()
    process.wait()
    ended = remains.end()

    assert len(guards) == 1
    assert while_it_lives == ()
    assert was_there
    assert [remains.in_words(left) for left in ended] == ["1 folder of run test"]
    assert not folder.exists()
    assert notes() == []


@pytest.mark.parametrize("begun", [UNFINISHED], indirect=True)
def test_a_folder_that_was_being_filled_is_removed_by_the_next_start(
    begun: tuple[subprocess.Popen[str], Path],
) -> None:
    process, folder = begun

    process.kill()
    process.wait()
    was_there = folder.exists()
    remains.end()

    assert was_there
    assert not folder.exists()
    assert notes() == []


@pytest.mark.parametrize("begun", [EMPTY_NOTE], indirect=True)
def test_a_note_that_was_never_written_is_removed_by_the_next_start(
    begun: tuple[subprocess.Popen[str], Path],
) -> None:
    process, _ = begun

    process.kill()
    process.wait()
    remains.end()

    assert notes() == []
