"""Progress of several nodes as one: sums by hand."""

from __future__ import annotations

from typing import Any

import pytest

from loadlens.fleet.progress import quantile, total

KEYS = ("due", "issued", "answered", "ok", "failed", "in_flight", "waiting", "dropped")
COUNTS = dict(zip(KEYS, (10, 9, 8, 7, 1, 0, 1, 0), strict=True))


def part(phase: str, elapsed_s: float, histogram: list[list[float]], **generator: Any) -> dict[str, Any]:
    bad = {"unexpected_status": 1, "check_failed": 0, "failed": 1}
    last = {"seconds": 1.0, "rps": 7.0, "p50_s": 0.1, "p99_s": 0.2, **bad, "histogram": histogram}
    so_far = {"rps": 3.5, "p50_s": 0.1, "p99_s": 0.2, **bad}
    return {
        "phase": phase,
        "elapsed_s": elapsed_s,
        "total_s": 12.0,
        "t0_monotonic_ns": 5,
        "streams": [{"name": "load", **COUNTS, "last": last, "so_far": so_far}],
        "generator": {"busy": 0.5, "lag_p99_s": None, **generator},
    }


def test_counts_rates_and_histograms_are_added_and_the_last_node_sets_the_phase() -> None:
    first = part("measure", 3.0, [[0.001, 6], [0.002, 1]], lag_p99_s=0.0003)
    second = part("warmup", 2.9, [[0.001, 1], [0.004, 92]], busy=0.7)

    whole = total([first, second], t0_monotonic_ns=77)

    (stream,) = whole["streams"]
    assert (whole["phase"], whole["elapsed_s"], whole["total_s"]) == ("warmup", 3.0, 12.0)
    assert whole["t0_monotonic_ns"] == 77
    assert {key: stream[key] for key in COUNTS} == {key: 2 * count for key, count in COUNTS.items()}
    assert stream["last"]["histogram"] == [[0.001, 7], [0.002, 1], [0.004, 92]]
    assert (stream["last"]["rps"], stream["so_far"]["rps"]) == (14.0, 7.0)
    assert (stream["last"]["p50_s"], stream["last"]["p99_s"]) == (0.004, 0.004)
    assert stream["last"]["unexpected_status"] == stream["so_far"]["failed"] == 2
    assert whole["generator"] == {"busy": 0.7, "lag_p99_s": 0.0003}


def test_quantiles_of_the_time_so_far_are_not_made_up() -> None:
    whole = total([part("measure", 3.0, [[0.001, 1]])] * 2, 0)

    assert whole["streams"][0]["so_far"]["p99_s"] is None


def test_one_node_is_reported_as_it_reports_itself() -> None:
    alone = part("measure", 3.0, [[0.001, 1]])

    assert total([alone], 77) == alone | {"t0_monotonic_ns": 77}


@pytest.mark.parametrize(
    ("p", "expected"),
    [(0.0, 0.1), (0.5, 0.1), (0.51, 0.3), (0.99, 0.3), (1.0, 0.3)],
)
def test_a_quantile_is_the_end_of_the_bin_that_holds_it(p: float, expected: float) -> None:
    assert quantile([(0.1, 50), (0.2, 0), (0.3, 50)], p) == expected


def test_there_is_no_quantile_of_nothing() -> None:
    assert quantile([], 0.5) is None
    assert quantile([(0.1, 0)], 0.5) is None
