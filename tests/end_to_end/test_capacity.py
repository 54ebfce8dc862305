"""`loadlens capacity` on a queue whose answer is known by formula."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import loadlens
from loadlens.record import open_run
from tests.calm import calmly
from tests.end_to_end.explaining import free_port, naming
from tests.end_to_end.hitting import environment
from tests.end_to_end.running import assert_sound, others_in

SERVICE = Path(__file__).with_name("timed_service.py")
SERVED_PER_S, MEAN_BELOW_S = 500, 0.02


def test_the_highest_rate_of_one_server_is_found_and_the_record_gives_the_answer_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records: list[Path] = []
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))

    def search() -> None:
        records.append(tmp_path / f"record-{free_port()}")
        is_found_again(records[-1])

    calmly(search, why=lambda: others_in(open_run(records[-1])))
    assert list(temporary.iterdir()) == []


def is_found_again(record: Path) -> None:
    """Search, and ask the record for the answer that was given."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/work"
    start, probe = (
        f"{sys.executable} {SERVICE} {port} {1000 // SERVED_PER_S} queue",
        f"http://127.0.0.1:{port}/ping",
    )

    made = loadlens.capacity(
        url, start=start, objective=f"mean<{MEAN_BELOW_S}s", probe=probe, budget="120s", out=record
    )

    assert made.exit_code == 0
    answer = made.to_dict()

    rates = answer["rates"]
    # M/M/1: the mean response time is 1 / (mu - lambda), so it is below T up to mu - 1 / T.
    most = SERVED_PER_S - 1 / MEAN_BELOW_S
    assert answer["capacity"]["point"] == pytest.approx(SERVED_PER_S, rel=0.1)
    assert rates["objectives"] == [
        "mean response time < 20.0 ms",
        "share of requests without success < 1.0 %",
    ]
    assert rates["low_per_s"] is not None, rates["sentence"]
    assert 0.6 * most <= rates["low_per_s"] <= 1.1 * most
    fresh = [trial for trial in rates["trials"] if trial["is_fresh"]]
    assert sum(trial["is_met"] for trial in fresh if trial["rate_per_s"] == rates["low_per_s"]) == 5
    assert all(math.isfinite(trial["rate_per_s"]) for trial in rates["trials"])
    assert answer["limit"] is not None
    assert made.headline == rates["sentence"]
    assert made.rate.low == rates["low_per_s"]
    (row,) = made.objectives
    assert (row.state, row.limit) == ("ok", "at some rate")
    again = subprocess.run(
        [sys.executable, "-m", "loadlens", "capacity", str(record), "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
    )
    assert json.loads(again.stdout)["rates"] == rates
    assert_sound(open_run(record))
    assert naming(f"{SERVICE} {port}") == []
