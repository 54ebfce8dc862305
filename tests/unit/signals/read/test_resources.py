"""Processes whose readings are added up; which of them stay follows from the readings by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl
import pytest

from loadlens.signals.read import resources
from loadlens.signals.read.trial_series import Readings

BEGIN, END = 2.0, 5.0


def read(**written: Sequence[tuple[float, float | None]]) -> resources.Resources:
    """Bytes written by the process of each service, at moments."""
    rows: list[tuple[int, str, str, str, str, float | None]] = []
    for pid, (service, values) in enumerate(written.items(), 1):
        own = json.dumps(
            {"service": service, "replica": "1", "pid": str(pid), "process": service}, sort_keys=True
        )
        for second, value in values:
            rows.append((int(second * 1e9), "proc", "rss_bytes", own, "bytes", 1.0))
            rows.append((int(second * 1e9), "proc", "write_bytes", own, "bytes", value))
    names = ["time_ns", "source", "metric", "labels", "unit", "value"]
    return resources.read(Readings(pl.DataFrame(rows, schema=names, orient="row")), BEGIN, END)


ALL = [(second / 2, 10.0 * second) for second in range(13)]


@pytest.mark.parametrize(
    "values",
    [
        [(second, None) for second, _ in ALL],  # may not be read
        [each for each in ALL if each[0] < 4.0],  # ended
        [each for each in ALL if each[0] > 2.5],  # began
    ],
)
def test_what_a_service_calls_counts_only_if_it_was_read_all_the_time(
    values: list[tuple[float, float | None]],
) -> None:
    used = read(app=ALL, store=values, cache=ALL)

    def kept(*called: str) -> list[str]:
        return [each.service for each in resources.read_throughout(used.services, called, BEGIN, END)]

    assert kept("store", "cache") == ["app", "cache"]
    assert kept("cache") == ["app", "cache", "store"]  # a process of the service itself stays
