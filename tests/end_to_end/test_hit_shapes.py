"""Loads that change over time ask for what their shape says, by the server's books."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars
import pytest
from benches.measuring import Origin

from loadlens.record import open_run
from tests.end_to_end.hitting import check_law, hit, settled_books


def _due_in(record: Path, part_ns: int) -> dict[int, int]:
    """Requests by the part of the load in which they were due: no lateness moves them."""
    (trial,) = open_run(record).trials
    due = trial.samples().select(polars.col("due_ns") // part_ns).to_series()
    return dict(sorted(Counter(due.to_list()).items()))


@pytest.mark.parametrize(
    ("shape", "by_half_second"),
    [
        # Integrals: a rise from 0 to 400/s holds 50 and 150, a level 200, the fall 150 and 50.
        (
            ("--stages", "1s:400/s,500ms:400/s,1s:0"),
            {0: 50, 1: 150, 2: 200, 3: 150, 4: 50},
        ),
        (("--steps", "500ms:40/s,500ms:0/s,500ms:120/s"), {0: 20, 2: 60}),
        (("--bursts", "500ms:200/s,500ms", "-d", "2s"), {0: 100, 2: 100}),
        (("-r", "100", "--ramp", "1s", "-d", "2s"), {0: 13, 1: 37, 2: 50, 3: 50}),
    ],
)
def test_as_many_requests_are_sent_as_the_integral_of_the_shape(
    server: Origin, tmp_path: Path, shape: tuple[str, ...], by_half_second: dict[int, int]
) -> None:
    result = hit(server, "/", *shape, "-o", str(tmp_path / "record"))
    counts = settled_books(server)

    requests = result["requests"]
    check_law(requests)
    assert requests["due"] == sum(by_half_second.values())
    assert counts["received"] == requests["issued"] == requests["due"] - requests["waiting"]
    assert _due_in(tmp_path / "record", 500_000_000) == by_half_second


def test_a_replay_sends_one_request_for_each_due_time(server: Origin, tmp_path: Path) -> None:
    times = tmp_path / "access.csv"
    times.write_text("who,time\na,1000.0\nb,1000.1\nc,1000.1\nd,1000.8\n")

    replay = f"{times},column=time,from=first,speed=2"
    result = hit(server, "/", "--replay", replay, "-o", str(tmp_path / "record"))
    counts = settled_books(server)

    assert counts["received"] == counts["answered"] == result["requests"]["ok"] == 4
    assert _due_in(tmp_path / "record", 50_000_000) == {0: 1, 1: 2, 8: 1}


def test_users_at_a_pace_ask_as_often_as_it_says_or_wait(server: Origin) -> None:
    quick = hit(server, "/", "-c", "4", "--pace", "100ms", "-d", "1s")
    slow = hit(server, "/delay/400", "-c", "4", "--pace", "100ms", "-d", "1s")
    counts = settled_books(server)

    for result in (quick, slow):
        check_law(result["requests"])
        assert result["requests"]["due"] == 40
    # Each of 4 users had at most three 400 ms to ask in.
    assert counts["received"] == slow["requests"]["issued"] <= 12
    assert slow["requests"]["waiting"] >= 28
