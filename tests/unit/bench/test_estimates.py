"""The interval that the bench prints beside a ratio."""

from __future__ import annotations

import pytest
from benches.estimates import Middle, middle, rank_interval


@pytest.mark.parametrize("count", [1, 5])
def test_fewer_than_six_rounds_have_no_interval(count: int) -> None:
    # Even between the smallest and the largest of five the median lies with 1 - 2/32 = 94 % only.
    assert rank_interval([1.0] * count) == (None, None)


def test_six_rounds_have_the_interval_between_the_extremes() -> None:
    assert rank_interval([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]) == (1.0, 6.0)


def test_nine_rounds_leave_out_one_at_each_end() -> None:
    # 1 - 2 (1 + 9) / 512 = 96 %; one more at each end would leave 82 %.
    assert rank_interval([float(value) for value in range(1, 10)]) == (2.0, 8.0)


def test_the_middle_of_no_rounds_is_unknown() -> None:
    assert middle([]) is None
    assert middle([2.0, 8.0]) == Middle(5.0, None, None, 2)
