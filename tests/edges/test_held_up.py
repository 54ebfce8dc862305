"""The lab is stopped during a load, at random moments: what it measured is never called valid.

The service is an origin of known behaviour that goes on meanwhile, and its books are compared with ours.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benches.measuring import Origin, origin

import loadlens
from loadlens.model.trial import TrialStatus
from tests import tiny
from tests.end_to_end.hitting import begin, ended, origin_program, settled_books, stop_for, url_of

STOPPED_S = 0.8
LOST_S = STOPPED_S - 0.03  # at least: the longest gap that is none
WITHIN_S = 60.0
LOOK_S = 0.01
OPEN, CLOSED, NEW = ("-r", "20"), ("-c", "4"), ("-c", "4", "--connection", "new")


@pytest.fixture(scope="module")
def server() -> Iterator[Origin]:
    with origin(origin_program(), cpu=0) as made:
        yield made


@pytest.mark.parametrize("load", [OPEN, CLOSED, NEW], ids=["open", "closed", "new connections"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_load_without_its_generator_for_a_while_is_invalid(
    server: Origin, load: tuple[str, ...], seed: int
) -> None:
    process = begin(server, "/delay/20", *load, "-d", "2s")
    time.sleep(random.Random(seed).uniform(0, 0.7))
    stop_for(process, STOPPED_S)
    result = ended(process, 4)

    requests, counts = result["requests"], settled_books(server)
    assert result["generator"]["verdict"] == "stood_still"
    # what others keep from the core adds to it
    assert LOST_S <= result["generator"]["stood_still_s"] <= 2
    assert counts["received"] == requests["issued"]
    assert requests["answered"] <= counts["answered"] <= requests["answered"] + requests["in_flight"]


def test_the_summary_says_how_long_was_lost(server: Origin) -> None:
    command = [sys.executable, "-m", "loadlens", "hit", url_of(server, "/delay/20"), "-c", "4", "-d", "2s"]
    server.new_books()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _until(lambda: server.books()["received"] > 0)
    stop_for(process, STOPPED_S)
    out, _ = process.communicate(timeout=WITHIN_S)

    assert process.returncode == 4
    assert "■ invalid" in out
    assert "trustworthy" not in out
    lost = re.search(r"■ the load generator stood still for ([\d.]+) s of 2\.0 s", out)
    assert lost is not None, out
    assert float(lost[1]) >= round(LOST_S, 2)


def test_a_stop_beyond_the_end_counts_up_to_the_end(server: Origin) -> None:
    process = begin(server, "/delay/20", *OPEN, "-d", "1s")
    stop_for(process, 1.5)
    result = ended(process, 4)

    assert 0.25 <= result["generator"]["stood_still_s"] <= 1.0  # the second that was left
    assert settled_books(server)["received"] == result["requests"]["issued"]


def test_a_trial_of_a_study_is_repeated(tmp_path: Path) -> None:
    file = tiny.write_study(tmp_path / "study", trials=1, duration="2s", users="[1]")
    command = [sys.executable, "-m", "loadlens", "run", str(file), "-o", str(tmp_path / "run"), "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    _until(lambda: bool(list(tmp_path.glob("run/trials/*/*/live/start.json"))))
    time.sleep(0.3)
    stop_for(process, STOPPED_S)
    out, _ = process.communicate(timeout=WITHIN_S)

    assert process.returncode == 0, out
    stopped, again = loadlens.open(tmp_path / "run").trials
    assert stopped.status is TrialStatus.INVALID
    lost = re.search(r"the load generator stood still for ([\d.]+) s of 2\.0 s", stopped.reasons[0])
    assert lost is not None, stopped.reasons
    assert float(lost[1]) >= round(LOST_S, 2)
    assert again.status is TrialStatus.COMPLETE


def test_explain_measures_the_level_again(server: Origin, tmp_path: Path) -> None:
    url, record = url_of(server, "/delay/20"), tmp_path / "record"
    command = [sys.executable, "-m", "loadlens", "explain", url, "--budget", "25s", "--out", str(record)]
    process = subprocess.Popen(
        [*command, "--no-pid", "--no-metrics"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    _until(lambda: bool(list(record.glob("trials/ladder-*/*/live/start.json"))))
    time.sleep(0.3)
    stop_for(process, STOPPED_S)
    out, err = process.communicate(timeout=WITHIN_S)

    assert process.returncode == 0, err
    assert "s of" not in out.splitlines()[0]  # the answer is not about the generator
    trials = loadlens.open(record).trials
    invalid = [trial for trial in trials if trial.status is TrialStatus.INVALID]
    assert invalid
    assert all("stood still" in trial.reasons[0] for trial in invalid)  # others may hold a trial up, too
    valid = {trial.case.slug for trial in trials if trial.status is TrialStatus.COMPLETE}
    assert {trial.case.slug for trial in invalid} <= valid


def _until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(LOOK_S)
