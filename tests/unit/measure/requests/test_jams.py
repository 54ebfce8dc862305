"""Standstills that end in failures, counted by hand from a log."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from loadlens.measure.requests.jams import jams
from loadlens.model.facts import Jam

OK, ERROR = 200, 500
Row = tuple[float, float, int]  # sent, ended, status
USUAL: list[Row] = [(at / 10, at / 10 + 0.1, OK) for at in range(10)]  # the last one ends at 1.0


def seen(*rows: Row) -> tuple[Jam, ...]:
    """Return what one trial of a level shows."""
    frame = pl.DataFrame(
        {
            "stream": [0] * len(rows),
            "outcome": [0 if status == OK else 1 for _, _, status in rows],
            "status": [status for _, _, status in rows],
            "sent_ns": [int(sent * 1e9) for sent, _, _ in rows],
            "done_ns": [int(done * 1e9) for _, done, _ in rows],
        }
    )
    load = SimpleNamespace(status={str(status): 1 for _, _, status in rows})
    trial = SimpleNamespace(source=SimpleNamespace(result=SimpleNamespace(load=load), samples=frame.select))
    case: Any = SimpleNamespace(usable=[trial])
    return jams(case)


def failing(count: int, *, at: float = 5.0, status: int = ERROR) -> list[Row]:
    return [(1.0, at + number / 1000, status) for number in range(count)]


def test_requests_that_fail_together_after_a_standstill_are_a_jam() -> None:
    (jam,) = seen(*USUAL, *failing(3), (5.1, 5.2, OK))

    assert jam.failed == 3
    assert jam.seconds == pytest.approx(4.0)  # from the last answer at 1.0


def test_each_standstill_counts() -> None:
    later: list[Row] = [(5.1, 5.2, OK), *[(5.2, 9.2, ERROR)] * 4]

    assert [jam.failed for jam in seen(*USUAL, *failing(3), *later)] == [3, 4]


def test_requests_that_fail_again_before_any_succeeds_are_of_one_standstill() -> None:
    outage: list[Row] = [*[(1.0, 3.0, ERROR)] * 4, *[(3.0, 5.0, ERROR)] * 4]

    assert [jam.failed for jam in seen(*USUAL, *outage)] == [4]


@pytest.mark.parametrize(
    "rows",
    [
        failing(1),  # too few
        [*failing(3), (2.0, 4.5, OK)],  # half a second before, one was answered
        [*failing(3), *[(2.0, 6.0, OK)] * 4],  # most that were open were answered: a pause
        failing(3, at=1.9),  # 0.9 s
        [(4.99, 5.0, ERROR)] * 8,  # users who paused for 4 s, and fail at once
        [(1.0, 5.0, ERROR), *[(4.99, 5.0, ERROR)] * 7],  # most of them
        failing(3, status=404),
        [(1.0, 5.0, ERROR), (1.0, 5.5, ERROR), (1.0, 6.0, ERROR)],  # one after the other
    ],
)
def test_failures_without_a_standstill_and_pauses_without_failures_are_none(rows: list[Row]) -> None:
    assert seen(*USUAL, *rows) == ()


def test_a_standstill_is_long_beside_a_usual_answer() -> None:
    slow: list[Row] = [(at, at + 0.5, OK) for at in (0.0, 0.5)]

    assert seen(*slow, *failing(3, at=5.9)) == ()
    assert len(seen(*slow, *failing(3, at=6.0))) == 1  # 5 s are ten times half a second
