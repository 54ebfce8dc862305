"""The interval of a share against published ones."""

from __future__ import annotations

import pytest

from loadlens.model.finding import wilson


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_ends_are_those_of_a_published_table(hits: int, total: int, low: float, high: float) -> None:
    """R. G. Newcombe, Statistics in Medicine 17, 1998, table I, method 3; and the mirror image."""
    assert wilson(hits, total) == pytest.approx((low, high), abs=5e-5)
    assert wilson(total - hits, total) == pytest.approx((1 - high, 1 - low), abs=5e-5)
