"""Kernel counters of TCP, from rows of a monitor."""

from __future__ import annotations

import json

import polars as pl
import pytest

from loadlens.measure.services.filled import filled
from loadlens.model.facts import KernelWatch, PortsWatch
from loadlens.model.finding import NotMeasured
from loadlens.model.workload import Target
from loadlens.signals.read import fields, sockets
from loadlens.signals.read.trial_series import Readings

A, B = json.dumps({"service": "a"}), json.dumps({"service": "b"})


def readings(*rows: tuple[int, str, str, float | None], source: str = "tcp") -> Readings:
    frame = pl.DataFrame(
        [
            {"time_ns": at, "source": source, "metric": metric, "labels": labels, "unit": "", "value": value}
            for at, metric, labels, value in rows
        ]
    )
    return Readings(frame)


def kernel(*trials: Readings) -> KernelWatch:
    """Return what the kernel saw in some trials."""
    ports = sockets.scarcest([ports for trial in trials if (ports := sockets.read(trial)) is not None])
    values = [fields.read(trial, (), 0.0, 0.0) for trial in trials]
    return filled(KernelWatch, values, lambda *_: NotMeasured("", ""), ports=ports)


def test_queues_count_at_their_highest_and_counters_by_their_growth() -> None:
    watch = kernel(
        readings(
            (-1, "accept_queue", A, 0.0),
            (1, "accept_queue", A, 7.0),
            (2, "accept_queue", A, 3.0),
            (1, "accept_queue_bound", A, 128.0),
            (-1, "listen_drops", A, 10.0),
            (2, "listen_drops", A, 14.0),
            (-1, "listen_drops", B, 0.0),
            (2, "listen_drops", B, 1.0),
            (-1, "segments_retransmitted", "{}", 100.0),
            (1, "segments_retransmitted", "{}", None),
            (2, "segments_retransmitted", "{}", 100.0),
        )
    )

    assert watch == KernelWatch(7.0, 128.0, 5.0, 0.0, None, unaccepted=3.0)  # of 0, 3 and 7


def test_where_nobody_watched_nothing_is_known() -> None:
    unwatched = readings((1, "cpu_user_s", "{}", 1.0), source="proc")

    assert sockets.read(unwatched) is None
    assert "tcp" not in fields.read(unwatched, (), 0.0, 0.0).monitors


def taken(to: str, at: int, count: float, rests_s: float = 60.0) -> tuple[tuple[int, str, str, float], ...]:
    labels = json.dumps({"to": to})
    return (at, "ports_taken", labels, count), (at, "port_rests_s", labels, rests_s)


def test_ports_count_where_they_were_scarcest() -> None:
    watch = kernel(
        readings(
            (-1_000_000_000, "connects_begun", "{}", 100.0),
            (2_000_000_000, "connects_begun", "{}", 1_300.0),
            (1, "ports_there", "{}", 28_232.0),
            *taken("127.0.0.1:9", 1, 400.0, 1.0),
            *taken("10.0.0.7:5432", 1, 700.0),
            *taken("10.0.0.7:5432", 2, 500.0),
        )
    )

    assert watch.ports == PortsWatch("10.0.0.7:5432", False, 700.0, 28_232.0, 60.0)
    assert (watch.begun, watch.begun_s) == (1_200.0, 3.0)


@pytest.mark.parametrize(
    ("to", "host", "is_load"),
    [
        ("127.0.0.1:80", "127.0.0.1", True),
        ("127.0.0.1:81", "127.0.0.1", False),
        ("10.0.0.7:80", "127.0.0.1", False),
        ("[::1]:80", "::1", True),
        ("[::1]:80", "[::1]", True),
        ("10.0.0.7:80", "api.example.org", True),  # which address it has is not recorded
    ],
)
def test_ports_where_the_load_goes_are_the_generators(to: str, host: str, is_load: bool) -> None:
    target = Target(host, 80, f"{host}:80")

    ports = sockets.read(readings((1, "ports_there", "{}", 100.0), *taken(to, 1, 9.0)), [target])

    assert ports is not None
    assert ports.is_load is is_load


def test_of_several_trials_the_one_with_the_fewest_ports_left_counts() -> None:
    def trial(count: float, there: float) -> Readings:
        begun = ((0, "connects_begun", "{}", 0.0), (2_000_000_000, "connects_begun", "{}", 10.0))
        return readings((1, "ports_there", "{}", there), *taken("a", 1, count), *begun)

    watch = kernel(trial(500.0, 1_000.0), trial(400.0, 500.0))

    assert watch.ports == PortsWatch("a", False, 400.0, 500.0, 60.0)
    assert (watch.begun, watch.begun_s) == (20.0, 4.0)


def test_over_trials_counts_add_up_and_the_worst_queue_counts() -> None:
    def trial(queue: float, drops: float, again: float | None) -> Readings:
        rows = [(1, "accept_queue", A, queue), (1, "accept_queue_bound", A, 128.0)]
        rows += [(0, "listen_drops", A, 0.0), (1, "listen_drops", A, drops)]
        if again is not None:
            rows += [(0, "segments_retransmitted", "{}", 0.0), (1, "segments_retransmitted", "{}", again)]
        return readings(*rows)

    watch = kernel(trial(7.0, 5.0, 1.0), trial(2.0, 1.0, None))

    assert watch == KernelWatch(7.0, 128.0, 6.0, 1.0, None, unaccepted=7.0)


def test_calls_that_hang_since_before_the_load_are_under_way() -> None:
    """Two connections to a program that answers nothing any more; another port saw five messages in 5 s."""
    to = [json.dumps({"to": name}) for name in ("db:5432", "web:80")]
    rows = [
        (second * 10**9, metric, labels, value)
        for second in range(6)
        for labels, made, held in ((to[0], 40.0, 2.0), (to[1], 10.0 + second, 0.0))
        for metric, value in (("calls", made), ("calls_under_way", held))
    ]

    hung, served = sockets.read_calls(readings(*rows), 0.0, 5.0)

    assert (hung.to, hung.rate, hung.under_way.point, hung.before) == ("db:5432", 0.0, 2.0, 2.0)
    assert (served.to, served.rate, served.under_way.point) == ("web:80", 1.0, 0.0)


def test_calls_seen_once_are_not_known() -> None:
    once = readings(
        *((0, metric, json.dumps({"to": "db:1"}), 1.0) for metric in ("calls", "calls_under_way"))
    )

    assert sockets.read_calls(once, 0.0, 5.0) == ()
