"""Effects of quotas, from readings of control groups that are counted by hand."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.model.recorded import PlacedService, Placement
from loadlens.signals.read import quotas
from loadlens.signals.read.resources import Process
from loadlens.signals.read.trial_series import Readings


def process(service: str, replica: str, cores: float) -> Process:
    used = Interval(cores, cores, cores, 10, "built")
    return Process(service, replica, "7", "x", used, used, 1)


def point(figure: Interval | Insufficient) -> float:
    assert isinstance(figure, Interval)
    return figure.point


def readings(*groups: dict[str, Any]) -> Readings:
    """Ten seconds, a reading each second; counters rise by so much a second."""
    rows = []
    for number, group in enumerate(groups, 1):
        labels = json.dumps({"service": group.get("service", "api"), "replica": str(number)})
        for second in range(11):
            for metric, rate in group["rates"].items():
                rows.append(("cgroup", metric, labels, int(second * 1e9), rate * second))
            for metric, level in group.get("levels", {}).items():
                rows.append(("cgroup", metric, labels, int(second * 1e9), level))
    columns = ("source", "metric", "labels", "time_ns", "value")
    table = [dict(zip(columns, row, strict=True)) for row in rows]
    return Readings(pl.DataFrame(table, schema_overrides={"value": pl.Float64}))


STOPPED = {"cpu_periods": 10.0, "cpu_throttled_periods": 4.0, "cpu_throttled_s": 0.5}
SIZE = {"cpu_quota_cores": 0.4, "cpu_period_s": 0.1}


def test_shares_and_rates_are_of_the_measured_part() -> None:
    (quota,) = quotas.read(
        readings({"rates": STOPPED, "levels": SIZE}), 2.0, 10.0, [process("api", "1", 0.38)], Placement()
    )

    assert (quota.cores, quota.period_s) == (0.4, 0.1)
    assert point(quota.throttled) == pytest.approx(0.4)  # 4 of 10
    assert point(quota.held_back) == pytest.approx(0.5)
    assert point(quota.used) == 0.38


def test_a_group_without_a_quota_is_none() -> None:
    assert quotas.read(readings({"rates": {"memory_bytes": 0.0}}), 0.0, 10.0, [], Placement()) == ()


def test_one_group_around_several_replicas_holds_all_of_them() -> None:
    both = [process("api", "1", 0.2), process("api", "2", 0.1), process("db", "1", 0.9)]

    (quota,) = quotas.read(readings({"rates": STOPPED}), 0.0, 10.0, both, Placement())

    assert point(quota.used) == pytest.approx(0.3)


def test_each_replica_has_its_own_where_there_are_several() -> None:
    both = [process("api", "1", 0.2), process("api", "2", 0.1)]

    each = quotas.read(readings({"rates": STOPPED}, {"rates": STOPPED}), 0.0, 10.0, both, Placement())

    assert [point(q.used) for q in each] == [0.2, 0.1]


def test_an_older_record_says_what_was_asked_for() -> None:
    asked = Placement(services={"api": PlacedService(cpu=0.3, period_s=0.01)})

    (quota,) = quotas.read(readings({"rates": STOPPED}), 0.0, 10.0, [], asked)

    assert (quota.cores, quota.period_s) == (0.3, 0.01)
    assert isinstance(quota.used, Insufficient)  # no process was watched


def test_periods_in_which_nothing_ran_are_no_share() -> None:
    idle = dict.fromkeys(STOPPED, 0.0)

    (quota,) = quotas.read(readings({"rates": idle}), 0.0, 10.0, [], Placement())

    assert isinstance(quota.throttled, Insufficient)
