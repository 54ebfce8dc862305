"""Storage in the measured part, from readings that are counted by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.signals.read import storage
from loadlens.signals.read.resources import Process, Series


def host(**rates: float) -> pl.DataFrame:
    """Counters of the machine that rise by so much a second; `sda_disk_busy_s` is that of a device."""
    rows = []
    for name, rate in rates.items():
        device, _, metric = name.partition("_") if name.startswith("sd") else ("", "", name)
        labels = json.dumps({"device": device}) if device else ""
        for second in range(11):
            rows.append(("host", metric, labels, int(second * 1e9), rate * second))
    columns = ("source", "metric", "labels", "time_ns", "value")
    return pl.DataFrame([dict(zip(columns, row, strict=True)) for row in rows])


def process(**rates: float) -> Process:
    unread = Insufficient("not read")
    return Process("web", "1", "7", "x", unread, None, unread, 1, {}, rates, {})


def asleep(*threads: int) -> Process:
    """How many threads slept at each second."""
    series = Series(np.arange(float(len(threads))), np.array(threads, dtype=np.float64))
    return replace(process(), series={"threads_blocked": series})


def point(found: Interval | Insufficient) -> float:
    assert isinstance(found, Interval)
    return found.point


def test_rates_of_all_processes_add_up() -> None:
    both = [process(write_bytes=100.0, appended_bytes=40.0), process(write_bytes=20.0, appended_bytes=2.0)]

    found = storage.read(host(pressure_io_full_s=0.25, pressure_io_some_s=0.5), 2.0, 10.0, both)

    assert found is not None
    assert point(found.written) == 120.0
    assert point(found.appended) == 42.0
    assert isinstance(found.read, Insufficient)  # not read, and so not zero
    assert (point(found.stalled), point(found.waiting)) == pytest.approx((0.25, 0.5))


def test_a_process_that_could_not_be_read_leaves_the_sum_unknown() -> None:
    found = storage.read(host(pressure_io_some_s=0.1), 0.0, 10.0, [process(write_bytes=5.0), process()])

    assert found is not None
    assert isinstance(found.written, Insufficient)


def test_the_busiest_device_stands_for_storage() -> None:
    table = host(sda_disk_busy_s=0.2, sda_disk_write_bytes=9e6, sdb_disk_busy_s=0.9, sdb_disk_write_bytes=1e6)

    found = storage.read(table, 0.0, 10.0, [])

    assert found is not None
    assert found.device == "sdb"
    assert (point(found.device_busy), point(found.device_written)) == pytest.approx((0.9, 1e6))


def test_looks_at_sleeping_threads_are_counted_over_all_processes() -> None:
    # at 0 to 10 s; the part from 1 to 8 s has eight looks
    first = asleep(0, 1, 1, 0, 0, 2, 0, 0, 1, 9, 9)
    second = asleep(9, 0, 1, 0, 0, 0, 0, 0, 0, 9, 9)

    found = storage.read(host(sda_disk_busy_s=0.2), 1.0, 8.0, [first, second])

    assert found is not None
    ((share, threads),) = storage.asleep_over([found])
    assert point(share) == 4 / 8
    assert point(threads) == 6 / 8


def test_trials_that_are_too_short_by_themselves_are_pooled() -> None:
    def trial(*threads: int) -> storage.Storage:
        found = storage.read(host(sda_disk_busy_s=0.2), 0.0, 10.0, [asleep(*threads)])
        assert found is not None
        return found

    short, other, long = trial(0, 1, 3), trial(1, 1, 0), trial(0, 0, 0, 1, 1, 1, 0, 0)

    ((share, threads),) = storage.asleep_over([short, other])
    assert (point(share), point(threads)) == pytest.approx((4 / 6, 6 / 6))
    assert len(storage.asleep_over([short, other, long])) == 3  # one is long enough to speak by itself
    assert all(isinstance(part, Insufficient) for part in storage.asleep_over([short])[0])


def test_looks_that_found_another_file_changed_are_counted() -> None:
    series = Series(np.arange(11.0), np.array([0, 1, 2, 0, 0, 0, 0, 0, 0, 5, 5], dtype=np.float64))

    found = storage.read(
        host(sda_disk_busy_s=0.2), 1.0, 8.0, [replace(process(), series={"files_changed": series})]
    )

    assert found is not None
    assert found.stored == (2, 8)


def test_four_looks_are_too_few_and_one_process_is_not_all() -> None:
    few = storage.read(host(sda_disk_busy_s=0.2), 1.0, 4.0, [asleep(*range(11))])
    part = storage.read(host(sda_disk_busy_s=0.2), 0.0, 10.0, [asleep(*range(11)), process()])

    for found in (few, part):
        assert found is not None
        assert all(isinstance(part, Insufficient) for part in storage.asleep_over([found])[0])


def test_more_than_all_of_the_time_is_all_of_it() -> None:
    found = storage.read(host(sda_disk_busy_s=1.02), 0.0, 10.0, [])

    assert found is not None
    assert point(found.device_busy) == 1.0


def test_a_kernel_without_pressure_is_not_one_without_waiting() -> None:
    found = storage.read(host(sda_disk_busy_s=0.2), 0.0, 10.0, [])

    assert found is not None
    assert isinstance(found.stalled, Insufficient)


def test_where_nobody_looked_there_is_nothing() -> None:
    assert storage.read(host(cpu_user_s=1.0), 0.0, 10.0, []) is None
