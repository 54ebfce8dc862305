"""Connections of a trial, from rows written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure.requests import connections as connected
from loadlens.model import plain
from loadlens.model.result import StreamResult
from loadlens.model.trial import CONNECTION, SAMPLE
from loadlens.record import sample_rows
from tests.records import stream_result

EDGES = np.arange(1.0, 4.0 + 1e-9, 0.25)
RESULT = plain.read(StreamResult, stream_result(connections={"opened": 1}))
OPEN, CLIENT, SERVER = 0, 1, 2


def connection(
    number: int,
    requests: int,
    closed_by: int,
    *,
    opened: float = 0.0,
    took: float = 0.001,
    age: float = 0.5,
    stream: int = 0,
    thinned: int = 0,
) -> dict[str, int]:
    stood = opened + took
    return {
        "connection": number,
        "user": 0,
        "opened_ns": round(opened * 1e9),
        "established_ns": round(stood * 1e9),
        "closed_ns": round((stood + age) * 1e9) if closed_by else -1,
        "requests": requests,
        "closed_by": closed_by,
        "stream": stream,
        "outcome": 0,
        "resumed": 0,
        "bytes_in": 0,
        "tls_ns": -1,
        "thinned": thinned,
    }


def source(connections: list[dict[str, int]], samples: list[dict[str, int]] | None = None) -> Any:
    asked: list[str] = []

    def read_samples(columns: Sequence[str]) -> pl.DataFrame:
        asked.append("samples")
        return pl.DataFrame(samples or [], schema=sample_rows.schema(SAMPLE)).select(columns)

    table = pl.DataFrame(connections, schema=sample_rows.schema(CONNECTION))
    return SimpleNamespace(connections=lambda: table, samples=read_samples, asked=asked)


def request(sent: float, took: float, *, first: bool, thinned: int = 0, outcome: int = 0) -> dict[str, int]:
    made = dict.fromkeys(sample_rows.schema(SAMPLE), 0)
    return made | {
        "sent_ns": round(sent * 1e9),
        "done_ns": round((sent + took) * 1e9),
        "flags": 1 if first else 0,
        "thinned": thinned,
        "outcome": outcome,
    }


def read(connections: list[dict[str, int]], samples: list[dict[str, int]] | None = None) -> Any:
    summary = connected.read(source(connections, samples), 0, RESULT, EDGES)
    assert summary is not None
    return summary


def test_only_what_the_service_closed_of_the_load_counts_towards_a_limit() -> None:
    summary = read(
        [connection(i, 5, SERVER, age=0.1 * (i + 1)) for i in range(3)]
        + [connection(7, 9, CLIENT), connection(8, 2, OPEN), connection(9, 1, SERVER, stream=1)]
    )

    assert summary.requests.tolist() == [5, 5, 5]
    assert summary.age_s == pytest.approx([0.1, 0.2, 0.3])
    assert summary.connects == 6  # of probes as well


def test_first_requests_are_separated_from_others_where_ten_connections_were_closed() -> None:
    closed = [connection(i, 4, SERVER) for i in range(10)]
    sent = np.arange(1.0, 3.9, 0.05)
    samples = [request(t, 0.012 if i % 4 == 0 else 0.002, first=i % 4 == 0) for i, t in enumerate(sent)]
    strange = [request(2.0, 0.5, first=True, outcome=1), request(0.2, 0.5, first=True)]  # failed, too early

    summary = read(closed, [*samples, *strange])

    assert isinstance(summary.first_s, Interval)
    assert summary.first_s.point == pytest.approx(0.012)
    assert summary.other_s.point == pytest.approx(0.002)


def test_a_thinned_row_stands_for_as_many_as_it_says() -> None:
    closed = [connection(i, 4, SERVER) for i in range(10)]
    samples = [request(1.0 + i / 10, 0.010, first=True, thinned=1) for i in range(10)]
    samples += [request(1.05 + i / 10, 0.040, first=True) for i in range(10)]

    summary = read(closed, samples)

    assert summary.first_s.point == pytest.approx((20 * 0.010 + 10 * 0.040) / 30)


def test_connections_that_are_asked_for_again_are_counted_by_what_their_rows_stand_for() -> None:
    summary = read([connection(i, 1, CLIENT, took=1.0, thinned=2) for i in range(3)])

    assert (summary.connects, summary.resent) == (12, 12)


def test_samples_stay_unread_where_hardly_a_connection_was_closed() -> None:
    at = source([connection(i, 4, SERVER) for i in range(9)])

    summary = connected.read(at, 0, RESULT, EDGES)

    assert summary is not None
    assert isinstance(summary.first_s, Insufficient)
    assert at.asked == []


@pytest.mark.parametrize(("took", "resent"), [(0.98, 0), (1.0, 1), (1.04, 1), (1.1, 0), (3.02, 1), (6.0, 0)])
def test_a_connection_that_took_as_long_as_a_lost_one_is_counted(took: float, resent: int) -> None:
    assert read([connection(1, 4, OPEN, took=took, stream=1)]).resent == resent


def asked_by(counts: list[tuple[int, int]]) -> list[dict[str, int]]:
    """Requests of each connection in the first half of the measured part, 1 to 2.5 s, and in the second."""
    made = []
    for number, halves in enumerate(counts):
        for begin, count in zip((1.0, 2.5), halves, strict=True):
            times = begin + 1.4 * np.arange(count) / max(1, count)
            made += [request(t, 0.001, first=False) | {"connection": number} for t in times]
    return made


def test_connections_that_lived_all_the_time_are_compared() -> None:
    # begun up to 5 % into the measured part: 1.15 s
    kept = [connection(i, 100 if i < 5 else 400, OPEN, opened=1.1) for i in range(20)]
    asked = asked_by([(10, 10) if i < 5 else (40, 40) for i in range(20)])

    summary = read([*kept, connection(30, 1, OPEN, opened=1.2), connection(31, 1, SERVER)], asked)

    assert summary.lasting == 20
    # two best and two worst of twenty: 80 over 20; (sum)^2 / n sum of squares by hand
    assert summary.best_over_worst.point == pytest.approx(4.0)
    assert summary.fairness.jain == pytest.approx(6500**2 / (20 * (5 * 100**2 + 15 * 400**2)))


def test_connections_that_never_got_an_answer_are_not_served() -> None:
    kept = [connection(i, i % 3, OPEN) for i in range(20)]  # 0, 1 or 2 requests each; 7 have none

    assert (read(kept).lasting, read(kept).served) == (20, 13)


def test_connections_that_were_struck_by_chance_do_not_stay_the_worst() -> None:
    kept = [connection(i, 50 if i % 2 else 200, OPEN) for i in range(20)]
    asked = asked_by([(10, 40) if i % 2 else (40, 40) for i in range(20)])

    assert read(kept, asked).best_over_worst.point == pytest.approx(1.0)


def test_connections_served_alike_are_not_looked_at_again() -> None:
    at = source([connection(i, 150 + i, OPEN) for i in range(20)])

    summary = connected.read(at, 0, RESULT, EDGES)

    assert summary is not None
    assert isinstance(summary.best_over_worst, Interval)
    assert summary.best_over_worst.point == pytest.approx((168 + 169) / (150 + 151))
    assert at.asked == []


def test_few_connections_are_not_compared() -> None:
    assert isinstance(read([connection(i, 500, OPEN) for i in range(9)]).best_over_worst, Insufficient)


def test_where_nobody_told_of_connections_nothing_is_known() -> None:
    assert connected.read(source([]), 0, plain.read(StreamResult, stream_result()), EDGES) is None
