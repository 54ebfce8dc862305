"""Pauses of a service, read from the counters of each interval, and what they do to its steady state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loadlens.estimate.interval import Insufficient
from loadlens.estimate.interval_counts import counts_from_values
from loadlens.estimate.pauses import Pauses
from loadlens.measure.requests import standstill
from loadlens.model.counters import Counters

RESPONSE = counts_from_values(4, np.zeros(100, dtype=np.int64), np.full(100, 0.005))


def rows(stalled: float = 0.0, **of_load: Any) -> Counters:
    """Counters of 60 s in quarters: 50 answers each, but none from 10.0 to 10.6 and from 30.0 to 30.6."""
    lines: list[dict[str, Any]] = []
    for place in range(240):
        start = place * 0.25
        stop = next((s for s in (10.0, 30.0) if s <= start < s + 0.75), None)
        end = start + 0.25 if stop is None else min(stop + 0.6, start + 0.25)
        gap, begin = (0.02, start) if stop is None else (end - stop, stop)
        lines.append(
            {"start_s": start, "length_s": 0.25, "phase": "measure", "stream": "load", "answered": 50,
             "max_gap_s": gap, "max_gap_at_s": begin, **of_load}
        )  # fmt: skip
        own = stalled if start == 30.5 else 0.0
        lines.append(
            {"start_s": start, "length_s": 0.25, "phase": "measure", "stream": None,
             "generator": {"stalled_s": [0.0, own]}}
        )  # fmt: skip
    return Counters.from_rows(lines)


def read(counters: Counters) -> Pauses:
    pauses = standstill.read(counters, "load", RESPONSE, 60.0)
    assert isinstance(pauses, Pauses), pauses
    return pauses


def test_a_pause_over_several_intervals_is_one() -> None:
    pauses = read(rows())

    assert pauses.begin_s.tolist() == [10.0, 30.0]
    assert pauses.length_s == pytest.approx([0.6, 0.6])
    assert pauses.shortest_s == pytest.approx(np.log(12_000 / 0.001) / 200)  # ln(n / alpha) / X


def test_a_pause_of_the_generator_is_not_the_services() -> None:
    assert read(rows(stalled=0.6)).begin_s.tolist() == [10.0]


def test_other_phases_and_streams_are_left_out() -> None:
    assert isinstance(standstill.read(rows(phase="warmup"), "load", RESPONSE, 60.0), Insufficient)
    assert isinstance(standstill.read(rows(stream="probe"), "load", RESPONSE, 60.0), Insufficient)


def test_users_in_step_who_all_wait_are_no_pause() -> None:
    slow = counts_from_values(4, np.zeros(100, dtype=np.int64), np.full(100, 0.5))

    pauses = standstill.read(rows(), "load", slow, 60.0)

    assert isinstance(pauses, Pauses)
    assert pauses.begin_s.size == 0  # five of the shortest answers would be 2.5 s


def test_intervals_with_a_pause_are_marked() -> None:
    marks = standstill.without(read(rows()), np.arange(0.0, 60.25, 0.25))

    assert np.flatnonzero(marks == 0).tolist() == [40, 41, 42, 120, 121, 122]
    assert standstill.without(Insufficient("x"), np.arange(5.0)).tolist() == [1.0] * 4


def test_records_without_gaps_say_so() -> None:
    assert isinstance(standstill.read(rows(max_gap_s=None), "load", RESPONSE, 60.0), Insufficient)
