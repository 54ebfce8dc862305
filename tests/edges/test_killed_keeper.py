"""The lab and its keeper are killed, at random moments: nothing of a service stays, however it forked."""

from __future__ import annotations

import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadlens.testbed import keeper_process
from tests import tiny
from tests.end_to_end.test_testbed_death import LAB, ROOT
from tests.end_to_end.testbed_cases import (
    carriers,
    is_alive,
    shared_memory_of,
    sleepers_below,
    still_there,
)

DATABASE = LAB.replace(
    "service = odd(manners=manners, replicas=2, stop=Stop(within_s=1.0))",
    "from loadlens.model.topology import Service; service = Service('db', use='postgres', ports=('sql',))",
)
FORKS = "ignore=TERM descendants=child,session,orphan,cleared"
WITHIN_S = 60.0


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADLENS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that the account of PostgreSQL may enter: pytest's own is closed to all but us."""
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def begin(folder: Path, marker: str, manners: str, script: str = LAB) -> subprocess.Popen[str]:
    """A lab of its own process, which brings up a testbed of two replicas and says the keeper's pid."""
    settings = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT}", "PATH": "/usr/bin:/bin"}
    return subprocess.Popen(
        [sys.executable, "-c", script, str(folder), marker, manners],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env=settings | {"LOADLENS_CACHE": os.environ["LOADLENS_CACHE"]},
    )


def keepers_of(lab: subprocess.Popen[str]) -> list[int]:
    """The keeper below a lab; none before it starts one."""
    below = [p.pid for p in keeper_process.all_processes().values() if p.parent == lab.pid]
    return [pid for pid in below if "keeper_process" in keeper_process.command_of(pid)]


def watch_of(keeper: int) -> list[int]:
    """The process that waits for the end of a keeper."""
    below = [p.pid for p in keeper_process.all_processes().values() if p.parent == keeper]
    return [pid for pid in below if " --watch " in keeper_process.command_of(pid)]


def makers_of_shared_memory() -> set[int]:
    """The processes that made the segments of System V."""
    table = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {int(line.split()[4]) for line in table}


def memory_below(lab: int) -> dict[int, str]:
    """The processes below a lab that map a file in /dev/shm, and one of its name."""
    processes = keeper_process.all_processes()
    below = keeper_process.members(processes, roots=(lab,), sessions=(), entries=())
    return shared_memory_of(process.pid for process in below)


def kill(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def notes(folder: Path) -> list[Path]:
    return list((folder / "cache" / "keepers").glob("*.json"))


def doctor_clean() -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "loadlens", "doctor", "--clean"]
    return subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=False)


def gone(pids: tuple[int, ...]) -> list[int]:
    return still_there(lambda: [pid for pid in pids if is_alive(pid)], within_s=3.0)


def test_nothing_stays_when_lab_and_keeper_are_killed(tmp_path: Path) -> None:
    marker = f"test-{secrets.token_hex(6)}"
    lab = begin(tmp_path, marker, FORKS)
    assert lab.stdout is not None
    keeper = int(lab.stdout.readline())
    sleepers, watch = sleepers_below(keeper), watch_of(keeper)

    kill(lab.pid, keeper)
    left = gone((*sleepers, *watch))
    lab.communicate()

    assert len(sleepers) == 2 * 4  # of each replica: child, session, orphan, cleared
    assert len(watch) == 1
    assert left == []
    assert carriers(marker) == []
    assert still_there(lambda: [*tmp_path.glob("scratch"), *notes(tmp_path)], within_s=3.0) == []


def test_what_stays_when_the_watch_is_killed_too_is_found_by_doctor(tmp_path: Path) -> None:
    marker = f"test-{secrets.token_hex(6)}"
    lab = begin(tmp_path, marker, FORKS)
    assert lab.stdout is not None
    keeper = int(lab.stdout.readline())
    sleepers = sleepers_below(keeper)

    kill(*watch_of(keeper), lab.pid, keeper)
    lab.communicate()
    stayed = [pid for pid in sleepers if is_alive(pid)]
    done = doctor_clean()
    again = doctor_clean()

    assert len(stayed) == 2 * 4
    assert (done.returncode, again.returncode) == (0, 0), done.stderr
    assert "ended 8 processes (sleep 600) and " in done.stdout
    assert marker in done.stdout
    assert gone(sleepers) == []
    assert not (tmp_path / "scratch").exists()
    assert "nothing is left" in again.stdout
    assert notes(tmp_path) == []


def test_the_next_run_ends_what_stayed_before_it_starts_a_service(tmp_path: Path) -> None:
    marker = f"test-{secrets.token_hex(6)}"
    lab = begin(tmp_path, marker, FORKS)
    assert lab.stdout is not None
    keeper = int(lab.stdout.readline())
    sleepers = sleepers_below(keeper)
    kill(*watch_of(keeper), lab.pid, keeper)
    lab.communicate()
    study = tiny.write_study(tmp_path / "study", trials=1, users="[1]")

    command = [sys.executable, "-m", "loadlens", "run", str(study), "-o", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=False)

    assert done.returncode == 0, done.stderr
    ended, started = (done.stderr.index(words) for words in ("ended what a killed run left", "1/1"))
    assert ended < started
    assert f"8 processes (sleep 600) and 2 folders of run {marker}" in done.stderr
    assert gone(sleepers) == []


def test_a_keeper_that_lives_is_left_alone(tmp_path: Path) -> None:
    marker = f"test-{secrets.token_hex(6)}"
    lab = begin(tmp_path, marker, FORKS)
    assert lab.stdout is not None
    keeper = int(lab.stdout.readline())
    sleepers = sleepers_below(keeper)

    done = doctor_clean()
    alive = [pid for pid in (keeper, *sleepers) if is_alive(pid)]
    lab.kill()
    lab.communicate()

    assert "nothing is left" in done.stdout
    assert alive == [keeper, *sleepers]
    assert gone((keeper, *sleepers)) == []


@pytest.mark.parametrize("is_watched", [True, False], ids=["lab and keeper", "and the watch"])
def test_no_shared_memory_of_postgres_stays(folder: Path, *, is_watched: bool) -> None:
    lab = begin(folder, f"test-{secrets.token_hex(6)}", "", DATABASE)
    assert lab.stdout is not None
    keeper = int(lab.stdout.readline())
    below = {p.pid for p in keeper_process.all_processes().values() if p.parent == keeper}
    made = below & makers_of_shared_memory()

    kill(*(() if is_watched else watch_of(keeper)), lab.pid, keeper)
    lab.communicate()
    if not is_watched:
        doctor_clean()

    assert len(made) == 1
    assert (
        still_there(lambda: [*(makers_of_shared_memory() & made), *folder.glob("scratch")], within_s=3.0)
        == []
    )


@pytest.mark.parametrize("killed", ["the lab", "lab and keeper"])
def test_no_shared_memory_of_initdb_stays(folder: Path, killed: str) -> None:
    """`initdb` runs servers of its own, with files in /dev/shm."""
    lab = begin(folder, f"test-{secrets.token_hex(6)}", "", DATABASE)
    until = time.monotonic() + WITHIN_S
    while not (made := memory_below(lab.pid)):
        assert time.monotonic() < until

    kill(lab.pid, *(keepers_of(lab) if "keeper" in killed else ()))
    lab.communicate()

    assert still_there(lambda: [*filter(os.path.exists, made.values())], within_s=4.0) == []
    assert still_there(lambda: [*makers_of_shared_memory().intersection(made)], within_s=4.0) == []


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("is_watched", [True, False], ids=["lab and keeper", "and the watch"])
def test_nothing_stays_of_a_start_that_is_cut_anywhere(
    tmp_path: Path, seed: int, *, is_watched: bool
) -> None:
    marker = f"test-{secrets.token_hex(6)}"
    lab = begin(tmp_path, marker, FORKS)
    until = time.monotonic() + WITHIN_S
    while not (keepers := keepers_of(lab)) and time.monotonic() < until:
        time.sleep(0.002)
    time.sleep(random.Random(seed).uniform(0, 0.5))
    watches = [watch for keeper in keepers for watch in watch_of(keeper)]
    sleepers = tuple(sleeper for keeper in keepers for sleeper in sleepers_below(keeper))

    kill(*(() if is_watched else watches), lab.pid, *keepers)
    lab.communicate()
    if not is_watched:
        doctor_clean()
    left = gone((*sleepers, *watches))

    assert left == []
    assert still_there(lambda: carriers(marker), within_s=3.0) == []
    assert still_there(lambda: list(tmp_path.glob("scratch")), within_s=3.0) == []
    if still_there(lambda: notes(tmp_path), within_s=3.0):
        assert sleepers == ()  # killed before the watch began, which is before anything else begins
        doctor_clean()
    assert notes(tmp_path) == []


def test_the_stamp_survives_everything_a_daemon_does() -> None:
    """Its parents are gone, its session and environment new; the shell closes what it inherited."""
    number = (1 << 60) + 12345
    daemon = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "import keeper_process; keeper_process.stamp(int(sys.argv[2]))\n"
        "child = os.fork()\n"
        "if child: os.waitpid(child, 0); os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "print(os.getpid(), flush=True)\n"
        "os.execve('/bin/sleep', ['sleep', '60'], {})\n"
    )
    folder = str(Path(keeper_process.__file__).parent)
    process = subprocess.Popen(
        [sys.executable, "-c", daemon, folder, str(number)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.wait()
    stamped = keeper_process.members(
        keeper_process.all_processes(), roots=(), sessions=(), entries=(), stamped=number
    )
    os.kill(pid, signal.SIGKILL)
    process.stdout.close()

    assert [each.pid for each in stamped] == [pid]
    assert not keeper_process.has_stamp(os.getpid(), number)
