"""Refused requests, from the counters that a bucket of known rate and burst would leave."""

from __future__ import annotations

from typing import Any

import pytest

from loadlens.measure.requests.refused import Refused, by_status, read
from loadlens.model.counters import Counters

RATE, BURST, OFFERED, STEP_S, LATENCY_S = 100.0, 40.0, 300.0, 0.25, 0.02


def counters(
    *, seconds: float = 5.0, warmup_s: float = 0.5, status: str = "429", offered: float = OFFERED
) -> list[dict[str, Any]]:
    """Answers come one latency after a request was let in; refusals at once."""
    rows, let_in, answered = [], 0.0, 0
    for number in range(round(seconds / STEP_S)):
        start, end = number * STEP_S, (number + 1) * STEP_S
        let_in = min(BURST + RATE * (end - LATENCY_S), offered * (end - LATENCY_S))
        ok = int(let_in) - answered
        answered += ok
        refused = round(offered * STEP_S) - ok if BURST + RATE * end < offered * end else 0
        rows.append(
            {
                "start_s": start,
                "length_s": STEP_S,
                "phase": "warmup" if start < warmup_s else "measure",
                "stream": "load",
                "ok": ok,
                "status": {"200": ok, status: refused},
                "cells": {"0.ok": {"count": ok, "service_sum_s": ok * LATENCY_S}},
            }
        )
    return rows


def one(rows: list[dict[str, Any]]) -> Refused:
    (refused,) = read(Counters.from_rows(rows), "load")
    return refused


def test_rate_and_burst_of_a_bucket_are_read_from_the_begin_of_the_load() -> None:
    refused = one(counters())

    assert refused.status == 429
    assert refused.rate.point == pytest.approx(RATE, rel=0.01)
    assert refused.burst.covers(BURST)
    assert refused.dispersion < 0.05
    assert refused.share.point == pytest.approx(1 - (RATE + BURST / 5) / OFFERED, abs=0.01)
    assert refused.ended_per_s == pytest.approx(OFFERED, rel=0.01)


def test_what_was_under_way_at_the_edge_belongs_to_the_burst() -> None:
    slow = [
        {**row, "cells": {"0.ok": {"count": row["ok"], "service_sum_s": row["ok"] * 2 * LATENCY_S}}}
        for row in counters()
    ]

    assert one(slow).burst.point - one(counters()).burst.point == pytest.approx(RATE * LATENCY_S, rel=0.02)


def test_few_refusals_are_none() -> None:
    rows = counters(offered=80.0)
    rows[3]["status"]["429"] = 3  # of 400: 0.75 %

    assert read(Counters.from_rows(rows), "load") == ()


def test_less_than_two_seconds_of_refusals_are_not_enough() -> None:
    assert read(Counters.from_rows(counters(seconds=1.75)), "load") == ()  # 7 intervals


def test_other_streams_and_the_time_after_the_load_do_not_count() -> None:
    rows = counters()
    others = [{**row, "stream": "probe", "ok": 500, "status": {"429": 500}} for row in rows]
    after = [{**row, "phase": "drain", "start_s": row["start_s"] + 5, "ok": 900} for row in rows]

    assert one([*others, *rows, *after]) == one(rows)


def test_statuses_are_kept_apart_and_must_be_there_in_every_trial() -> None:
    limited, shed = (read(Counters.from_rows(rows), "load") for rows in (counters(), counters(status="503")))

    assert [refused.status for refused in (*limited, *shed)] == [429, 503]
    assert list(by_status([limited, limited])) == [429]
    assert by_status([limited, shed]) == {}


def test_other_errors_are_no_refusals() -> None:
    assert read(Counters.from_rows(counters(status="500")), "load") == ()
