"""Spread of requests over replicas, from logs and sockets that are counted by hand."""

from __future__ import annotations

import json

import polars as pl
import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.signals.read import balancer_log
from loadlens.signals.read.resources import Process
from loadlens.signals.read.trial_series import Readings

Row = tuple[str, str, dict[str, str], dict[int, float]]


def readings(*rows: Row) -> Readings:
    table = [
        {
            "source": source,
            "metric": metric,
            "labels": json.dumps(labels),
            "time_ns": int(second * 1e9),
            "value": float(value),
        }
        for source, metric, labels, course in rows
        for second, value in course.items()
    ]
    return Readings(pl.DataFrame(table))


def rising(each: float, seconds: int = 10) -> dict[int, float]:
    """A counter, read each second."""
    return {second: each * second for second in range(seconds + 1)}


def logged(backend: str, requests: float, seconds: float, status: str = "200") -> list[Row]:
    labels = {"service": "front", "backend": backend, "status": status}
    return [
        ("balancer", "requests", labels, rising(requests)),
        ("balancer", "backend_seconds", labels, rising(requests * seconds)),
    ]


def heard(
    replica: str, requests: float, seconds: float, *, port: str = "http", seen: float = 2.0, busy: float = 1.0
) -> list[Row]:
    labels = {"service": "web", "replica": replica, "port": port}
    return [
        ("tcp", "requests_in", labels, rising(requests)),
        ("tcp", "answers_seen", labels, rising(seen)),
        ("tcp", "answer_s", labels, rising(seen * seconds)),
        ("tcp", "busy", labels, dict.fromkeys(range(11), busy)),
    ]


def waiting(replica: str, cores: float) -> Process:
    used = Interval(cores, cores, cores, 1, "built")
    return Process("web", replica, "7", "x", used, used, 1)


def point(figure: Interval | Insufficient) -> float:
    assert isinstance(figure, Interval)
    return figure.point


def test_a_log_tells_counts_and_mean_times_of_the_measured_part() -> None:
    table = readings(*logged("web.1", 30, 0.02), *logged("web.2", 10, 0.05))

    (spread,) = balancer_log.read(table, 2.0, 10.0, [waiting("1", 0.3)], "front")

    assert (spread.source, spread.seconds) == ("log", 8.0)
    assert [r.requests for r in spread.replicas] == [240, 80]  # 8 s by 30 and by 10
    assert [point(r.time) for r in spread.replicas] == pytest.approx([0.02, 0.05])
    assert point(spread.replicas[0].waiting) == 0.3
    assert isinstance(spread.replicas[1].waiting, Insufficient)


def test_a_service_of_one_replica_goes_by_its_own_name() -> None:
    table = readings(*logged("web", 30, 0.02), *logged("other", 10, 0.05))

    (spread,) = balancer_log.read(table, 0.0, 10.0, [waiting("1", 0.3)], "front")

    of_web = next(replica for replica in spread.replicas if replica.name == "web")
    assert point(of_web.waiting) == 0.3


def test_statuses_of_one_replica_add_up_and_answers_without_one_are_left_out() -> None:
    table = readings(
        *logged("web.1", 30, 0.02), *logged("web.1", 10, 0.1, "500"), *logged("web.2", 40, 0.02),
        *logged("none", 5, 0.0, "502"),
    )  # fmt: skip

    (spread,) = balancer_log.read(table, 0.0, 10.0, [], "front")

    assert [(r.name, r.requests) for r in spread.replicas] == [("web.1", 400), ("web.2", 400)]
    assert point(spread.replicas[0].time) == pytest.approx(0.04)  # (30 x 0.02 + 10 x 0.1) / 40


def test_sockets_tell_the_same_where_no_log_does() -> None:
    table = readings(*heard("1", 30, 0.02), *heard("2", 10, 0.05))

    (spread,) = balancer_log.read(table, 2.0, 10.0, [], "front")

    assert spread.source == "sockets"
    assert [r.requests for r in spread.replicas] == [240, 80]
    assert [point(r.time) for r in spread.replicas] == pytest.approx([0.02, 0.05])


def test_a_replica_that_is_hardly_seen_idle_is_timed_by_littles_law() -> None:
    table = readings(*heard("1", 50, 0.0, seen=0.1, busy=5.0), *heard("2", 50, 0.02))

    (spread,) = balancer_log.read(table, 0.0, 10.0, [], "front")

    assert point(spread.replicas[0].time) == pytest.approx(0.1)  # 5 at a time by 50 a second


def test_the_service_that_is_asked_itself_is_behind_no_balancer() -> None:
    assert (
        balancer_log.read(readings(*heard("1", 30, 0.02), *heard("2", 10, 0.02)), 0.0, 10.0, [], "web") == ()
    )


def test_of_processes_that_ran_already_only_further_ports_are_behind_one() -> None:
    """The port that is asked goes by a name, those behind it by their numbers."""
    asked = readings(*heard("1", 40, 0.02), *heard("2", 39, 0.02, port="4711"))
    behind = readings(
        *heard("1", 40, 0.02), *heard("1", 20, 0.02, port="4710"), *heard("2", 20, 0.02, port="4711")
    )

    assert balancer_log.read(asked, 0.0, 10.0, [], "") == ()
    (spread,) = balancer_log.read(behind, 0.0, 10.0, [], "")
    assert [r.requests for r in spread.replicas] == [200, 200]


def test_the_busiest_port_of_a_replica_stands_for_it() -> None:
    table = readings(
        *heard("1", 20, 0.02, port="4710"),
        *heard("1", 1, 0.5, port="4790"),
        *heard("2", 20, 0.02, port="4711"),
    )

    (spread,) = balancer_log.read(table, 0.0, 10.0, [], "")

    assert [r.requests for r in spread.replicas] == [200, 200]
