"""A small trial by hand: one stream of two steps, two intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from loadlens.export.tally import NS, Snapshot, Tally
from loadlens.model.counters import Counters
from loadlens.model.workload import Closed, Plan, Scenario, Step, Stream, Target
from loadlens.record import IntervalHistogram

T0_NS = 1_700_000_000 * NS
STEPS = (Step("read", "GET", "/a"), Step('say "hi", now', "POST", "/b c\\"))
PLAN = Plan(
    seed=7,
    streams=(
        Stream("load", "load", Target("127.0.0.1", 80, "x"), (Scenario("both", 1.0, STEPS),), Closed(2)),
    ),
)


def histogram(
    start_s: float, step: str, klass: str, values: Sequence[int], counts: Sequence[int]
) -> IntervalHistogram:
    """Counts of service times in nanoseconds, of one second of the load."""
    numbers = (np.array(each, dtype=np.uint64) for each in (values, counts))
    return IntervalHistogram(start_s, 1.0, "load", step, klass, "service", *numbers)


# 10 requests due; 9 issued, of which 5 succeed, 2 have another status, 1 times out, 1 is in flight; 1 waits.
ROWS = (
    {
        "start_s": 0.0, "length_s": 1.0, "phase": "measure", "stream": "load", "due": 6, "issued": 6,
        "answered": 4, "ok": 3, "unexpected_status": 1, "status": {"200": 3, "500": 1}, "in_flight": 2,
        "opened": 2, "bytes_out": 600, "bytes_in_wire": 800,
        "cells": {
            "0.ok": {"count": 3, "response_sum_s": 0.06, "service_sum_s": 0.05},
            "1.unexpected_status": {"count": 1, "response_sum_s": 0.3, "service_sum_s": 0.3},
        },
    },
    {
        "start_s": 1.0, "length_s": 1.0, "phase": "measure", "stream": "load", "due": 4, "issued": 3,
        "answered": 3, "ok": 2, "unexpected_status": 1, "status": {"200": 2, "500": 1}, "in_flight": 1,
        "waiting": 1, "failed": {"timeout": 1}, "closed_by_error": 1, "bytes_out": 300, "bytes_in_wire": 600,
        "cells": {
            "0.ok": {"count": 2, "response_sum_s": 0.04, "service_sum_s": 0.03},
            "1.unexpected_status": {"count": 1, "response_sum_s": 0.2, "service_sum_s": 0.2},
            "0.censored": {"count": 1, "response_sum_s": 2.0, "service_sum_s": 2.0},
        },
    },
)  # fmt: skip
HISTOGRAMS = (
    histogram(0.0, "read", "ok", [10_000_000, 20_000_000], [1, 2]),
    histogram(0.0, 'say_"hi"__now', "unexpected_status", [300_000_000], [1]),
    histogram(1.0, "read", "ok", [15_000_000], [2]),
    histogram(1.0, 'say_"hi"__now', "unexpected_status", [200_000_000], [1]),
    histogram(1.0, "read", "censored", [2_000_000_000], [1]),
)


def snapshots() -> Iterator[Snapshot]:
    """The trial at the end of each second."""
    tally = Tally(PLAN, T0_NS, {"loadlens.run": "r", "loadlens.case": "c", "loadlens.trial": "block-1"})
    for row in ROWS:
        for each in Counters.from_rows([row]).streams:
            tally.add(each)
        for interval in HISTOGRAMS:
            if interval.start_s == row["start_s"]:
                tally.add_histogram(interval, "measure")
        yield tally.snapshot(whole=row is ROWS[-1])
