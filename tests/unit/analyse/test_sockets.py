"""What the kernel saw of TCP, from rows of a monitor."""

from __future__ import annotations

import polars as pl

from loadlens.analyse import sockets
from loadlens.model.facts import KernelWatch


def readings(*rows: tuple[int, str, str, float | None], source: str = "tcp") -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"time_ns": at, "source": source, "metric": metric, "labels": labels, "unit": "", "value": value}
            for at, metric, labels, value in rows
        ]
    )


def test_queues_count_at_their_highest_and_counters_by_their_growth() -> None:
    found = sockets.read(
        readings(
            (-1, "accept_queue", "a", 0.0),
            (1, "accept_queue", "a", 7.0),
            (2, "accept_queue", "a", 3.0),
            (1, "accept_queue_bound", "a", 128.0),
            (-1, "listen_drops", "a", 10.0),
            (2, "listen_drops", "a", 14.0),
            (-1, "listen_drops", "b", 0.0),
            (2, "listen_drops", "b", 1.0),
            (-1, "segments_retransmitted", "{}", 100.0),
            (1, "segments_retransmitted", "{}", None),
            (2, "segments_retransmitted", "{}", 100.0),
        )
    )

    assert found == KernelWatch(7.0, 128.0, 5.0, 0.0, None)


def test_where_nobody_watched_nothing_is_known() -> None:
    assert sockets.read(readings((1, "cpu_user_s", "{}", 1.0), source="proc")) is None
    assert sockets.worst([None, None]) is None


def test_over_trials_counts_add_up_and_the_worst_queue_counts() -> None:
    one, two = KernelWatch(7.0, 128.0, 5.0, 1.0, None), KernelWatch(2.0, 128.0, 1.0, None, None)

    assert sockets.worst([one, None, two]) == KernelWatch(7.0, 128.0, 6.0, 1.0, None)
