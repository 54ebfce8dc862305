"""What the kernel saw of TCP, from rows of a monitor."""

from __future__ import annotations

import json

import polars as pl
import pytest

from loadlens.model.facts import KernelWatch, PortsWatch
from loadlens.model.workload import Target
from loadlens.signals.read import sockets


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


def taken(to: str, at: int, count: float, rests_s: float = 60.0) -> tuple[tuple[int, str, str, float], ...]:
    labels = json.dumps({"to": to})
    return (at, "ports_taken", labels, count), (at, "port_rests_s", labels, rests_s)


def test_ports_count_where_they_were_scarcest() -> None:
    found = sockets.read(
        readings(
            (-1_000_000_000, "connects_begun", "{}", 100.0),
            (2_000_000_000, "connects_begun", "{}", 1_300.0),
            (1, "ports_there", "{}", 28_232.0),
            *taken("127.0.0.1:9", 1, 400.0, 1.0),
            *taken("10.0.0.7:5432", 1, 700.0),
            *taken("10.0.0.7:5432", 2, 500.0),
        )
    )

    assert found is not None
    assert found.ports == PortsWatch("10.0.0.7:5432", False, 700.0, 28_232.0, 60.0)
    assert (found.begun, found.begun_s) == (1_200.0, 3.0)


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

    found = sockets.read(readings((1, "ports_there", "{}", 100.0), *taken(to, 1, 9.0)), [target])

    assert found is not None
    assert found.ports is not None
    assert found.ports.is_load is is_load


def test_of_several_trials_the_one_with_the_fewest_ports_left_counts() -> None:
    ports = [
        PortsWatch("a", False, taken, there, 60.0) for taken, there in ((500.0, 1_000.0), (400.0, 500.0))
    ]
    watches = [KernelWatch(None, None, None, None, None, 10.0, 2.0, one) for one in ports]

    found = sockets.worst(watches)

    assert found is not None
    assert (found.ports, found.begun, found.begun_s) == (ports[1], 20.0, 4.0)


def test_over_trials_counts_add_up_and_the_worst_queue_counts() -> None:
    one, two = KernelWatch(7.0, 128.0, 5.0, 1.0, None), KernelWatch(2.0, 128.0, 1.0, None, None)

    assert sockets.worst([one, None, two]) == KernelWatch(7.0, 128.0, 6.0, 1.0, None)
