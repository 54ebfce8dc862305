"""Bytes of answers and the parts of their time, counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.interval_counts import IntervalCounts, counts_from_values
from loadlens.measure.requests import received
from loadlens.model.counters import Counters


def row(start: float, count: int, phase: str = "measure", stream: str | None = "load") -> dict[str, Any]:
    return {"start_s": start, "length_s": 0.5, "phase": phase, "stream": stream, "bytes_in_wire": count}


def times(seconds: float, count: int = 40) -> IntervalCounts:
    return counts_from_values(1, np.zeros(count, dtype=np.int64), np.full(count, seconds))


def point(figure: Interval | Insufficient) -> float:
    assert isinstance(figure, Interval)
    return figure.point


def test_bytes_are_those_of_the_load_in_the_measured_part() -> None:
    counters = [
        row(0.0, 9_999, "warmup"),
        *(row(0.5 + 0.5 * place, 1_000) for place in range(10)),
        row(0.5, 77, stream="probe"),
        {"start_s": 0.5, "length_s": 0.5, "phase": "measure", "stream": None},
    ]

    bytes_in = received.read(Counters.from_rows(counters), "load", times(0.01), times(0.03))

    assert bytes_in is not None
    assert point(bytes_in.bytes_per_s) == pytest.approx(2_000)  # 1,000 each half second
    assert (point(bytes_in.waited), point(bytes_in.coming)) == pytest.approx((0.01, 0.03))


def test_few_answers_have_no_mean_of_their_parts() -> None:
    bytes_in = received.read(Counters.from_rows([row(0.0, 10)]), "load", times(0.01, 5), times(0.03, 5))

    assert bytes_in is not None
    assert isinstance(bytes_in.coming, Insufficient)
    assert point(bytes_in.bytes_per_s) == 20  # one short interval is a point all the same


def test_an_engine_that_counted_no_bytes_says_nothing() -> None:
    counters = [{key: value for key, value in row(0.0, 1).items() if key != "bytes_in_wire"}]

    assert received.read(Counters.from_rows(counters), "load", times(0.01), times(0.03)) is None
    assert received.read(Counters(), "load", times(0.01), times(0.03)) is None
