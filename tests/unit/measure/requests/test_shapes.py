"""Standstills on the clock of the record, and the requests that met none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from loadlens.estimate.pauses import Pauses
from loadlens.measure.requests import shapes
from loadlens.measure.requests.kept import Requests, counted, step_rows
from loadlens.measure.requests.samples import Rows
from loadlens.model.finding import Estimate
from loadlens.model.recorded import ServiceProcess


def test_readings_of_metrics_stand_on_the_same_clock_as_standstills() -> None:
    readings = pl.DataFrame(
        {
            "time_ns": [1_000_000_000, 1_500_000_000, 1_500_000_000],
            "source": ["scrape", "scrape", "proc"],
            "metric": ["scrape_seconds", "scrape_seconds", "cpu"],
        }
    )
    stops = Pauses(np.array([1.5]), np.array([0.3]), 0.072, None)
    none = np.zeros(0)
    rows = Rows(1.0, stops, (False,), 0.01, 0.01, (), lambda _: Requests(none, none, none), none, none)
    source: Any = SimpleNamespace(
        t0_monotonic_ns=100_000_000_000, services=(ServiceProcess("s", pid=7),), readings=lambda: readings
    )
    trial: Any = SimpleNamespace(source=source, rows=rows, grid=SimpleNamespace(edges_s=np.array([1.0, 3.0])))

    (watch,) = shapes.standstills(SimpleNamespace(usable=(trial,)))  # type: ignore[arg-type]

    assert watch.scrapes_s == pytest.approx((101.0, 101.5))
    assert watch.stops[0].begin_s == pytest.approx(101.5)


EDGES = np.arange(0.0, 10.25, 0.25)


def looked(stops: Pauses, *, met: int = 7) -> Any:
    """A trial of 10 s: 399 requests of the load of 10 or 30 ms, the first on its connection 90 ms; probes of
    1 ms every 5 ms, which wait for the end of a standstill.
    """
    took = np.tile([0.01, 0.03], 200)[:399]
    due = np.linspace(0.0, 9.9, took.size)
    first = counted(np.array([0.1]), np.array([0.09]), EDGES)
    requests = Requests(due, took, 0 * took)
    part = step_rows(requests, first, met, EDGES)
    probe_due = np.arange(0.0, 9.95, 0.005)
    probe_took = np.full(probe_due.size, 0.001)
    for begin, length in zip(stops.begin_s, stops.length_s, strict=True):
        held = (probe_due >= begin) & (probe_due < begin + length)
        probe_took[held] = begin + length - probe_due[held]
    is_cut = (False,) * stops.begin_s.size
    rows = Rows(0.0, stops, is_cut, 0.01, 0.01, (part,), lambda _: requests, probe_due, probe_took)
    return SimpleNamespace(rows=rows, grid=SimpleNamespace(edges_s=EDGES))


def case(*trials: Any, probes: tuple[str, ...] = ("ping",)) -> Any:
    return SimpleNamespace(usable=trials, probe_names=probes)


NONE = Pauses(np.zeros(0), np.zeros(0), 0.07, None)
STOPS = Pauses(np.array([2.0025, 6.0025]), np.array([0.3, 0.3]), 0.07, None)


def test_requests_that_met_no_standstill_include_those_that_opened_connections() -> None:
    spared = shapes.spared(case(looked(STOPS), looked(NONE, met=0)))

    assert spared is not None
    assert (spared.requests, spared.met) == (800, 7)
    assert isinstance(spared.took.mean, Estimate)
    assert isinstance(spared.took.p99, Estimate)
    # 200 of 10 ms, 199 of 30 and one of 90 in each trial
    assert spared.took.mean.point == pytest.approx((200 * 0.01 + 199 * 0.03 + 0.09) / 400, rel=1e-3)
    assert spared.took.mean.low is not None
    assert spared.took.mean.low < spared.took.mean.point
    assert spared.took.p99.point == pytest.approx(0.03, rel=1e-3)
    assert spared.took.mean.trials == 2


def test_probes_that_were_due_in_a_standstill_or_in_what_it_left_behind_met_it() -> None:
    """60 are due in each of 300 ms, and 30 in the half as long after it."""
    spared = shapes.spared_probes(case(looked(STOPS)))

    assert spared is not None
    assert spared.met == 2 * (60 + 30)
    assert spared.requests == 1990 - 180
    assert isinstance(spared.took.p99, Estimate)
    assert spared.took.p99.point == pytest.approx(0.001, rel=1e-3)


def test_where_nothing_stood_still_nobody_was_spared() -> None:
    assert shapes.spared(case(looked(NONE))) is None
    assert shapes.spared_probes(case(looked(NONE))) is None


def test_several_probes_are_not_told_apart() -> None:
    assert shapes.spared_probes(case(looked(STOPS), probes=("a", "b"))) is None
