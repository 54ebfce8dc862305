"""Standstills on the clock of the record, beside the moments at which metrics were read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from loadlens.analyse import shapes
from loadlens.analyse.rowwise import Rows
from loadlens.stats.pauses import Pauses


def test_readings_of_metrics_stand_on_the_same_clock_as_standstills() -> None:
    readings = pl.DataFrame(
        {
            "time_ns": [1_000_000_000, 1_500_000_000, 1_500_000_000],
            "source": ["scrape", "scrape", "proc"],
            "metric": ["scrape_seconds", "scrape_seconds", "cpu"],
        }
    )
    stops = Pauses(np.array([1.5]), np.array([0.3]), 0.072, None)
    rows = Rows(1.0, stops, (False,), 0.01, (), np.zeros(0), np.zeros(0))
    source: Any = SimpleNamespace(
        t0_monotonic_ns=100_000_000_000, services=[{"pid": 7}], readings=lambda: readings
    )
    trial: Any = SimpleNamespace(source=source, rows=rows, grid=SimpleNamespace(edges_s=np.array([1.0, 3.0])))

    (watch,) = shapes.standstills(SimpleNamespace(usable=(trial,)))  # type: ignore[arg-type]

    assert watch.scrapes_s == pytest.approx((101.0, 101.5))
    assert watch.stops[0].begin_s == pytest.approx(101.5)
