"""A load that is changed while it runs: the books of the server are ours, and the trial is exploratory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from benches.measuring import Origin

from loadlens.errors import UsageError
from loadlens.load_control import WantedChange, change_load
from loadlens.model.result import LoadChange
from loadlens.model.trial import TrialStatus
from loadlens.record import open_run
from tests.end_to_end.hitting import begin, check_law, settled_books, tried, url_of

BEFORE_LOAD = 1  # connections made to see that the port takes any


def changed(run: Path, *wanted: WantedChange) -> list[LoadChange]:
    """Make changes of a load that runs, a moment after each other."""
    made = []
    for each in wanted:
        time.sleep(0.4)
        made.append(change_load(run, each))
    return made


def counted(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the JSON of a hit; a generator without a core is said to be late, and counts all the same."""
    out, err = process.communicate(timeout=60)
    assert process.returncode in (0, 4), err
    result: dict[str, Any] = json.loads(out)
    return result


def test_every_request_of_a_changed_rate_is_in_the_books(server: Origin, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = begin(server, "/", "-r", "200", "-d", "3s", "-o", str(run), "--objective", "p99<10s")
    changes = changed(run, *(WantedChange(rate_per_s=rate) for rate in (900.0, 40.0, 400.0)))
    result = counted(process)
    counts = settled_books(server)

    requests = result["requests"]
    check_law(requests)
    # Arrival k is due when the integral of the rate reaches k.
    bounds = [0.0, *(change.at_ns / 1e9 for change in changes), 3.0]
    rates = (200, 900, 40, 400)
    expected = sum(
        rate * (until - at) for rate, at, until in zip(rates, bounds[:-1], bounds[1:], strict=True)
    )
    assert abs(requests["due"] - expected) <= 1
    assert counts["received"] == counts["answered"] == requests["issued"]
    assert [change.words for change in open_result(run)] == [change.words for change in changes]
    assert [row["state"] for row in result["objectives"]] == ["unknown"]
    assert result["throughput_rps"] is None
    assert [row["new"] for row in result["load_changes"]] == [900, 40, 400]


def test_every_request_of_changed_users_is_in_the_books(server: Origin, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = begin(server, "/", "-c", "4", "-d", "3s", "-o", str(run))
    changed(run, WantedChange(users=9), WantedChange(users=2), WantedChange(users=6))
    result = counted(process)
    counts = settled_books(server)

    requests = result["requests"]
    check_law(requests)
    assert requests["failed"] == 0
    assert requests["answered"] <= counts["answered"] <= counts["received"]
    assert counts["received"] <= requests["issued"]
    assert requests["in_flight"] <= 6
    assert counts["connections"]["accepted"] - BEFORE_LOAD == result["connections"]["opened"] == 9
    assert counts["violations"] == 0
    assert [change.new for change in open_result(run)] == [9, 2, 6]


def open_result(run: Path) -> tuple[LoadChange, ...]:
    """Return the changes that the record holds; the trial must not count, and each change be an event."""
    (trial,) = open_run(run).trials
    assert trial.status is TrialStatus.EXPLORATORY
    assert trial.result is not None
    assert json.loads((trial.path / "trial.json").read_text())["schema_version"] == 3
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    changed_at = [event["at_ns"] for event in events if event["event"] == "load_changed"]
    assert changed_at == [change.at_ns for change in trial.result.load_changes]
    assert trial.reasons[1:] == tuple(change.words for change in trial.result.load_changes)
    return trial.result.load_changes


def test_a_load_that_cannot_be_changed_so_goes_on_as_it_was(server: Origin, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = begin(server, "/", "-c", "2", "-d", "3s", "-o", str(run))
    for wanted, reason in (
        (WantedChange(rate_per_s=5.0), "a closed load has users, and no rate"),
        (WantedChange(users=0), "at least 1"),
        (WantedChange(users=100_000_000), "file descriptors"),
        (WantedChange("other", users=3), "there is no load other"),
    ):
        with pytest.raises(UsageError, match=reason):
            change_load(run, wanted)
    counted(process)

    (trial,) = open_run(run).trials
    assert trial.status is not TrialStatus.EXPLORATORY


def test_a_killed_lab_leaves_nothing_that_takes_a_change(server: Origin, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = begin(server, "/", "-c", "2", "-d", "30s", "-o", str(run))
    changed(run, WantedChange(users=3))
    process.kill()
    process.communicate(timeout=20)

    with pytest.raises(UsageError, match="no load runs in this record"):
        change_load(run, WantedChange(users=4))
    assert tried(url_of(server), "-n", "5").returncode == 0


def test_the_verb_says_what_was_changed(server: Origin, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = begin(server, "/", "-r", "50", "-d", "3s", "-o", str(run))
    command = [sys.executable, "-m", "loadlens", "steer", str(run), "--rate", "3k/min"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    counted(process)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("load: 50/s to 50/s from ")
