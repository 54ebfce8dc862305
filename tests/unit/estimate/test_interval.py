"""Products and quotients of quantities that are known with an error."""

from __future__ import annotations

import math

import pytest

from loadlens.estimate.interval import Interval, difference, inverse, product, total


def known(point: float, low: float | None, high: float | None) -> Interval:
    return Interval(point, low, high, 10.0, "built")


def test_errors_of_a_product_add_up_in_squares_of_logarithms() -> None:
    """3 and 4 parts in a hundred of a logarithm are 5."""
    first = known(2.0, 2 * math.exp(-0.03), 2 * math.exp(0.06))
    other = known(5.0, 5 * math.exp(-0.04), 5 * math.exp(0.08))

    combined = product(first, other, method="both")

    assert combined.point == pytest.approx(10.0)
    assert combined.low == pytest.approx(10 * math.exp(-0.05))
    assert combined.high == pytest.approx(10 * math.exp(0.10))
    assert combined.method == "both"


def test_an_end_that_one_of_them_leaves_open_is_open() -> None:
    combined = product(known(2.0, None, 3.0), known(5.0, 0.0, 6.0), method="both")

    assert combined.low is None
    assert combined.high == pytest.approx(10 * math.exp(math.hypot(math.log(1.5), math.log(1.2))))


def test_one_over_a_quantity_has_its_ends_the_other_way_round() -> None:
    combined = inverse(known(4.0, 2.0, 5.0))

    assert (combined.point, combined.low, combined.high) == pytest.approx((0.25, 0.2, 0.5))
    assert inverse(known(4.0, 0.0, None)).low is None
    assert inverse(known(4.0, 0.0, None)).high is None


def test_errors_of_a_sum_add_up_in_squares_at_each_end() -> None:
    combined = total(known(10.0, 7.0, 11.0), known(20.0, 16.0, 20.0), method="both")

    assert (combined.point, combined.low, combined.high) == (30.0, 25.0, 31.0)  # 3 and 4 are 5; 1 and 0 are 1
    assert total(known(1.0, None, 2.0), known(1.0, 0.0, None), method="open").low is None
    assert total(known(1.0, None, 2.0), known(1.0, 0.0, None), method="open").high is None


def test_errors_of_a_difference_add_up_in_squares_each_end_of_one_with_the_other_end_of_the_other() -> None:
    """3 below and 4 above are 5 at the low end, 12 above and 5 below 13 at the high end."""
    combined = difference(known(30.0, 27.0, 42.0), known(20.0, 15.0, 24.0), method="apart")

    assert (combined.point, combined.low, combined.high) == (10.0, 5.0, 23.0)
    assert combined.method == "apart"
    assert difference(known(1.0, 0.0, 2.0), known(1.0, None, 2.0), method="open").high is None
    assert difference(known(1.0, 0.0, 2.0), known(1.0, 0.0, None), method="open").low is None


def test_half_a_width_is_the_point_where_an_end_is_open() -> None:
    assert known(10.0, 7.0, 15.0).half_width == 4.0
    assert known(10.0, 7.0, None).half_width == 10.0
    assert known(10.0, None, 15.0).half_width == 10.0
