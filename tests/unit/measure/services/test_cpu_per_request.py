"""CPU time of one request from totals of single trials. Expected values by hand."""

from __future__ import annotations

import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure.services import cpu_per_request


def test_a_trial_that_was_read_twice_bounds_the_work_by_how_many_requests_it_had() -> None:
    # 0.9 cores over 60/s are 15 ms; of 100 requests whose work scatters by its mean 95 % lie within 19.6 %,
    # and 0.02 cores without any request would be a third of a millisecond of each.
    ratio = cpu_per_request._ratio(60.0, 100.0, Interval(0.9, None, None, 1.0, "difference of two readings"))

    assert isinstance(ratio, Interval)
    assert ratio.point == pytest.approx(0.015)
    assert ratio.low == pytest.approx(0.015 * (1 - 0.196) - 0.02 / 60, rel=1e-4)
    assert ratio.high == pytest.approx(0.015 * 1.196, rel=1e-4)


def test_an_interval_of_the_readings_is_kept() -> None:
    ratio = cpu_per_request._ratio(50.0, 400.0, Interval(0.5, 0.45, 0.55, 3.0, "t"))

    assert isinstance(ratio, Interval)
    assert (ratio.low, ratio.high) == pytest.approx((0.009 - 0.0004, 0.011))


def test_without_requests_nothing_is_said() -> None:
    assert isinstance(cpu_per_request._ratio(0.0, 0.0, Interval(0.5, None, None, 1.0, "t")), Insufficient)
