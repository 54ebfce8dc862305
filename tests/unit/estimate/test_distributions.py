"""Distributions and rank tests, against scipy.stats and sums of whole numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize, stats

from loadlens.estimate import distributions
from loadlens.estimate.interval import Floats

P = st.floats(1e-6, 1 - 1e-6)
FREEDOM = st.integers(1, 500)
SERIES = arrays(np.float64, st.integers(4, 60), elements=st.floats(-1e3, 1e3).map(lambda x: round(x, 3)))
FEW_VALUES = arrays(np.float64, st.integers(4, 60), elements=st.integers(0, 5).map(float))


@given(P, FREEDOM)
def test_quantiles_are_those_of_scipy(p: float, freedom: int) -> None:
    assert distributions.t_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-8, abs=1e-9)
    assert distributions.chi2_quantile(p, freedom) == pytest.approx(stats.chi2.ppf(p, freedom), rel=1e-8)
    assert distributions.normal_tail_quantile(p) == pytest.approx(stats.norm.isf(p), rel=1e-8, abs=1e-9)


@given(st.floats(-30, 30), FREEDOM)
def test_tails_are_those_of_scipy(x: float, freedom: int) -> None:
    assert distributions.t_tail(x, freedom) == pytest.approx(stats.t.sf(x, freedom), rel=1e-8)
    assert distributions.normal_tail(x) == pytest.approx(stats.norm.sf(x), rel=1e-8)
    assert distributions.chi2_tail(abs(x), freedom) == pytest.approx(stats.chi2.sf(abs(x), freedom), rel=1e-8)


@given(st.integers(1, 200), P, st.data())
def test_binomial_tails_are_the_sums_of_their_terms(n: int, p: float, data: st.DataObject) -> None:
    """In whole numbers: scipy's own tails are off by 2e-7 near 1e-293."""
    k = data.draw(st.integers(0, n))
    a, b = p.as_integer_ratio()
    terms = [math.comb(n, i) * a**i * (b - a) ** (n - i) for i in range(n + 1)]

    at_least, at_most = (float(Fraction(sum(part), b**n)) for part in (terms[k:], terms[: k + 1]))

    assert distributions.binomial_at_least(k, n, p) == pytest.approx(at_least, rel=1e-7, abs=1e-300)
    assert distributions.binomial_at_most(k, n, p) == pytest.approx(at_most, rel=1e-7, abs=1e-300)


@given(SERIES | FEW_VALUES)
def test_the_p_value_of_an_order_is_that_of_scipy(y: Floats) -> None:
    by_scipy = stats.kendalltau(np.arange(y.size), y).pvalue

    assert distributions.order_p_value(y) == pytest.approx(by_scipy, rel=1e-7, nan_ok=True)


def test_four_values_in_order_have_a_p_value_of_two_in_24() -> None:
    """Of 4! orders, two are all rising or all falling."""
    assert distributions.order_p_value(np.array([1.0, 2, 3, 4])) == pytest.approx(2 / 24)
    assert distributions.order_p_value(np.array([4.0, 3, 2, 1])) == pytest.approx(2 / 24)


@given(SERIES | FEW_VALUES)
def test_slopes_and_rising_fits_are_those_of_scipy(y: Floats) -> None:
    index = np.arange(y.size, dtype=np.float64)

    assert distributions.theil_sen_slope(y) == pytest.approx(stats.theilslopes(y, index).slope, abs=1e-9)
    assert distributions.rising_fit(y) == pytest.approx(optimize.isotonic_regression(y).x, abs=1e-9)


@given(SERIES)
def test_a_line_is_that_of_scipy(y: Floats) -> None:
    x = np.arange(y.size, dtype=np.float64) ** 1.5
    fit = stats.linregress(x, y)

    found = distributions.line(x, y)

    assert found.slope == pytest.approx(fit.slope, rel=1e-6, abs=1e-9)
    if not math.isnan(fit.stderr):
        assert found.slope_error == pytest.approx(fit.stderr, rel=1e-4, abs=1e-6)
        assert found.r == pytest.approx(fit.rvalue, abs=1e-6)


@given(arrays(np.float64, st.integers(2, 12), elements=st.integers(1, 500).map(float)))
def test_the_p_value_of_equal_counts_is_pearsons(counts: Floats) -> None:
    assert distributions.uniform_p_value(counts) == pytest.approx(stats.chisquare(counts).pvalue, rel=1e-7)
