"""However the lab dies, nothing of the testbed is left 3 s later."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.testbed_cases import carriers, sleepers_below, wait_until_gone

ROOT = Path(__file__).parents[2]
LAB = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background is started without it
from loadlens.model.topology import Stop
from tests.end_to_end.testbed_cases import bed_of, odd
folder, marker, manners = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
service = odd(manners=manners, replicas=2, stop=Stop(within_s=1.0))
with bed_of(service, folder=folder, marker=marker) as bed:
    bed.start()
    print(bed.keeper_pid, flush=True)
    time.sleep(600)
"""

FORK = """
    import os
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    print(child, flush=True)
    time.sleep(60)
"""


def start_lab(folder: Path, marker: str, manners: str) -> tuple[subprocess.Popen[str], int]:
    """A lab of its own process with a testbed that is up; and its keeper."""
    lab = subprocess.Popen(
        [sys.executable, "-c", LAB, str(folder), marker, manners],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'python'}:{ROOT}", "PATH": "/usr/bin:/bin"},
    )
    assert lab.stdout is not None
    return lab, int(lab.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_three_seconds_after_the_lab_was_ended_by(
    tmp_path: Path, number: signal.Signals
) -> None:
    marker = f"test-{secrets.token_hex(6)}"
    manners = "ignore=TERM descendants=child,session,orphan,cleared"
    lab, keeper = start_lab(tmp_path, marker, manners)
    sleepers = sleepers_below(keeper)
    before = carriers(marker)

    lab.send_signal(number)
    left = wait_until_gone(marker, (keeper, *sleepers), within_s=3.0)
    lab.kill()
    lab.communicate()

    assert len(before) >= 1 + 2 * (1 + 3)  # the keeper; of each replica itself and its marked descendants
    assert len(sleepers) == 2 * 4
    assert left == []
    assert not (tmp_path / "scratch").exists()


def test_signals_for_the_lab_do_not_end_the_keeper(tmp_path: Path) -> None:
    marker = f"test-{secrets.token_hex(6)}"
    lab, keeper = start_lab(tmp_path, marker, "")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        subprocess.run(["kill", f"-{int(number)}", str(keeper)], check=True)
    still_there = carriers(marker)
    lab.kill()
    left = wait_until_gone(marker)
    lab.communicate()

    assert len(still_there) == 3, still_there  # the keeper and two replicas
    assert left == []


def test_a_child_of_the_lab_that_holds_its_descriptors_does_not_keep_the_testbed_alive(
    tmp_path: Path,
) -> None:
    marker = f"test-{secrets.token_hex(6)}"
    forking = LAB.replace("    time.sleep(600)\n", FORK)
    lab = subprocess.Popen(
        [sys.executable, "-c", forking, str(tmp_path), marker, ""],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'python'}:{ROOT}", "PATH": "/usr/bin:/bin"},
    )
    assert lab.stdout is not None
    keeper, child = int(lab.stdout.readline()), int(lab.stdout.readline())

    lab.kill()
    left = wait_until_gone(marker, (keeper,), within_s=4.0)
    os.kill(child, signal.SIGKILL)
    lab.communicate()

    assert left == []
