"""Failures in the sense of ApacheBench, counted by hand from a sample log."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from loadlens.measure.requests.failures import as_ab_counts
from loadlens.model.trial import Outcome

EDGES = np.array([1.0, 2.0, 3.0])


def source(rows: list[tuple[float, int, Outcome]], *, stream: int = 0, thinned: int = 0) -> Any:
    """A trial with these requests: when done, bytes of the body, outcome."""
    frame = pl.DataFrame(
        {
            "stream": [stream] * len(rows),
            "step": [0] * len(rows),
            "done_ns": [int(done * 1e9) for done, _, _ in rows],
            "body_bytes": [size for _, size, _ in rows],
            "outcome": [int(outcome) for _, _, outcome in rows],
            "thinned": [thinned] * len(rows),
        }
    )
    return SimpleNamespace(samples=frame.select)


def test_other_lengths_and_unanswered_requests_are_failed_and_bad_statuses_are_not() -> None:
    made = source(
        [
            (1.9, 700, Outcome.OK),  # written down out of order: the log has no order of its own
            (0.5, 999, Outcome.OK),  # in the warm-up
            (1.1, 612, Outcome.OK),  # the first: its length is the measure
            (1.2, 612, Outcome.UNEXPECTED_STATUS),  # a 500 of the same length is fine with ab
            (2.1, 612, Outcome.OK),
            (2.2, 0, Outcome.RESET),
            (2.3, 613, Outcome.CHECK_FAILED),
            (2.4, 0, Outcome.IN_FLIGHT),  # not ended
        ]
    )

    counted = as_ab_counts(made, stream=0, step=None, edges=EDGES)

    assert counted is not None
    assert counted.failed.tolist() == [1.0, 2.0]
    assert counted.ended.tolist() == [3.0, 3.0]
    assert (counted.first_bytes, counted.least_bytes, counted.most_bytes) == (612, 612, 700)


def test_an_answer_that_ends_the_load_is_counted_although_its_second_is_no_round_number() -> None:
    # a load of so many requests ends with its last answer; 15.5 + 0.175630183 is less than that by rounding
    last = 15.675630183
    made = source([(1.1, 612, Outcome.OK), (last, 612, Outcome.OK)])

    counted = as_ab_counts(made, stream=0, step=None, edges=np.array([0.0, 15.5, 15.5 + 0.175630183]))

    assert counted is not None
    assert counted.ended.tolist() == [1.0, 1.0]


def test_where_nothing_was_answered_all_are_failed() -> None:
    counted = as_ab_counts(source([(1.5, 0, Outcome.REFUSED)]), stream=0, step=0, edges=EDGES)

    assert counted is not None
    assert (counted.failed.tolist(), counted.ended.tolist()) == ([1.0, 0.0], [1.0, 0.0])


def test_a_thinned_log_or_another_stream_says_nothing() -> None:
    thinned = as_ab_counts(source([(1.5, 5, Outcome.OK)], thinned=1), stream=0, step=None, edges=EDGES)
    other = as_ab_counts(source([(1.5, 5, Outcome.OK)], stream=1), stream=0, step=None, edges=EDGES)

    assert thinned is None
    assert other is not None
    assert other.ended.sum() == 0
    assert other.first_bytes is None
