"""Storage in the measured part, from readings that are counted by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from loadlens.estimate.interval import Insufficient
from loadlens.model.facts import StorageWatch
from loadlens.model.readings import METRICS, ProcMetrics
from loadlens.signals.read import storage
from loadlens.signals.read.resources import UNREAD, Process
from loadlens.signals.read.trial_series import Readings, Series
from tests.unit.signals.read.declared import point, unread, values


def host(**rates: float) -> Readings:
    """Counters of the machine that rise by so much a second; `sda_disk_busy_s` is that of a device."""
    rows = []
    for name, rate in rates.items():
        device, _, metric = name.partition("_") if name.startswith("sd") else ("", "", name)
        labels = json.dumps({"device": device}) if device else ""
        for second in range(11):
            rows.append(("host", metric, labels, int(second * 1e9), rate * second))
    columns = ("source", "metric", "labels", "time_ns", "value")
    return Readings(pl.DataFrame([dict(zip(columns, row, strict=True)) for row in rows]))


def process(**rates: float) -> Process:
    seconds = np.arange(11.0)
    series = {
        metric: Series(seconds, rates[metric.name] * seconds)
        for metric in METRICS["proc"]
        if metric.name in rates
    }
    return Process("web", "1", "7", "x", UNREAD, UNREAD, 1, series=series)


def asleep(*threads: int) -> Process:
    """A process with so many sleeping threads at each second."""
    series = Series(np.arange(float(len(threads))), np.array(threads, dtype=np.float64))
    return replace(process(), series={ProcMetrics.threads_blocked: series})


def test_rates_of_all_processes_add_up() -> None:
    both = [process(write_bytes=100.0, appended_bytes=40.0), process(write_bytes=20.0, appended_bytes=2.0)]

    figures = values(StorageWatch, host(pressure_io_full_s=0.25, pressure_io_some_s=0.5), 2.0, 10.0, both)

    assert point(figures["written"]) == 120.0
    assert point(figures["appended"]) == 42.0
    assert unread(figures["read"])  # not read, and so not zero
    assert (point(figures["stalled"]), point(figures["waiting"])) == pytest.approx((0.25, 0.5))


def test_a_process_that_could_not_be_read_leaves_the_sum_unknown() -> None:
    figures = values(
        StorageWatch, host(pressure_io_some_s=0.1), 0.0, 10.0, [process(write_bytes=5.0), process()]
    )

    assert unread(figures["written"])


def test_the_busiest_device_stands_for_storage() -> None:
    table = host(sda_disk_busy_s=0.2, sda_disk_write_bytes=9e6, sdb_disk_busy_s=0.9, sdb_disk_write_bytes=1e6)

    watch = storage.read(table, 0.0, 10.0, [])

    assert watch is not None
    assert watch.device == "sdb"
    assert (point(watch.device_busy), point(watch.device_written)) == pytest.approx((0.9, 1e6))


def test_looks_at_sleeping_threads_are_counted_over_all_processes() -> None:
    # at 0 to 10 s; the part from 1 to 8 s has eight looks
    first = asleep(0, 1, 1, 0, 0, 2, 0, 0, 1, 9, 9)
    second = asleep(9, 0, 1, 0, 0, 0, 0, 0, 0, 9, 9)

    watch = storage.read(host(sda_disk_busy_s=0.2), 1.0, 8.0, [first, second])

    assert watch is not None
    ((share, threads),) = storage.asleep_over([watch])
    assert point(share) == 4 / 8
    assert point(threads) == 6 / 8


def test_trials_that_are_too_short_by_themselves_are_pooled() -> None:
    def trial(*threads: int) -> storage.Storage:
        watch = storage.read(host(sda_disk_busy_s=0.2), 0.0, 10.0, [asleep(*threads)])
        assert watch is not None
        return watch

    short, other, long = trial(0, 1, 3), trial(1, 1, 0), trial(0, 0, 0, 1, 1, 1, 0, 0)

    ((share, threads),) = storage.asleep_over([short, other])
    assert (point(share), point(threads)) == pytest.approx((4 / 6, 6 / 6))
    assert len(storage.asleep_over([short, other, long])) == 3  # one is long enough to speak by itself
    assert all(isinstance(part, Insufficient) for part in storage.asleep_over([short])[0])


def test_looks_that_found_another_file_changed_are_counted() -> None:
    series = Series(np.arange(11.0), np.array([0, 1, 2, 0, 0, 0, 0, 0, 0, 5, 5], dtype=np.float64))

    watch = storage.read(
        host(sda_disk_busy_s=0.2), 1.0, 8.0, [replace(process(), series={ProcMetrics.files_changed: series})]
    )

    assert watch is not None
    assert watch.stored == (2, 8)


def test_four_looks_are_too_few_and_one_process_is_not_all() -> None:
    few = storage.read(host(sda_disk_busy_s=0.2), 1.0, 4.0, [asleep(*range(11))])
    part = storage.read(host(sda_disk_busy_s=0.2), 0.0, 10.0, [asleep(*range(11)), process()])

    for watch in (few, part):
        assert watch is not None
        assert all(isinstance(part, Insufficient) for part in storage.asleep_over([watch])[0])


def test_more_than_all_of_the_time_is_all_of_it() -> None:
    watch = storage.read(host(sda_disk_busy_s=1.02), 0.0, 10.0, [])

    assert watch is not None
    assert point(watch.device_busy) == 1.0


def test_a_kernel_without_pressure_is_not_one_without_waiting() -> None:
    figures = values(StorageWatch, host(sda_disk_busy_s=0.2), 0.0, 10.0, [])

    assert unread(figures["stalled"])


def test_where_nobody_looked_there_is_nothing() -> None:
    assert storage.read(host(cpu_user_s=1.0), 0.0, 10.0, []) is None
