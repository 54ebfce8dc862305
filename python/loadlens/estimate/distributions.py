"""Quantiles and tails of the standard distributions, and rank tests on them.

They rest on `scipy.special`: importing `scipy.stats` costs a second of CPU time in every process.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from loadlens.estimate.interval import Floats

EXACT_UP_TO = 33  # values: up to here all orders are counted, beyond it the normal distribution is close


class Line(NamedTuple):
    """A least-squares line."""

    slope: float
    slope_error: float  # standard error
    r: float  # correlation coefficient


def t_quantile(p: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution."""
    return float(special.stdtrit(freedom, p))


def t_tail(t: float, freedom: float) -> float:
    """Return P(T > t) of Student's t distribution."""
    return float(special.stdtr(freedom, -t))


def normal_tail(z: float) -> float:
    """Return P(Z > z) of the standard normal distribution."""
    return float(special.ndtr(-z))


def normal_tail_quantile(p: float) -> float:
    """Return the z that the standard normal distribution exceeds with probability p."""
    return float(-special.ndtri(p))


def chi2_quantile(p: float, freedom: float) -> float:
    """Return the quantile of the chi-square distribution."""
    return float(special.chdtri(freedom, 1 - p))


def chi2_tail(x: float, freedom: float) -> float:
    """Return P(X > x) of the chi-square distribution."""
    return float(special.chdtrc(freedom, x))


def binomial_at_most(k: int, n: int, p: float) -> float:
    """Return P(X <= k) of n trials with probability p each."""
    return float(special.bdtr(k, n, p))


def binomial_at_least(k: int, n: int, p: float) -> float:
    """Return P(X >= k) of n trials with probability p each: the p-value of a one-sided binomial test."""
    return 1.0 if k <= 0 else float(special.bdtrc(k - 1, n, p))


def uniform_p_value(counts: Floats) -> float:
    """Return the p-value of Pearson's chi-square test that all counts, shape (n,), have one mean."""
    mean = counts.mean()
    return chi2_tail(float(((counts - mean) ** 2 / mean).sum()), counts.size - 1)


def line(x: Floats, y: Floats) -> Line:
    """Fit y, shape (n,), by a line in x of the same shape, with more than two different values."""
    across, up = x - x.mean(), y - y.mean()
    sxx, sxy, syy = float(across @ across), float(across @ up), float(up @ up)
    r = sxy / math.sqrt(sxx * syy) if syy > 0 else 0.0
    return Line(sxy / sxx, math.sqrt(max(0.0, 1 - r * r) * syy / sxx / (x.size - 2)), r)


def theil_sen_slope(y: Floats) -> float:
    """Return the median slope over all pairs of y, shape (n,), by index.

    Source: H. Theil 1950, P. K. Sen 1968.
    """
    first, second = np.triu_indices(y.size, 1)
    return float(np.median((y[second] - y[first]) / (second - first)))


def order_p_value(y: Floats) -> float:
    """Return the two-sided p-value of Kendall's rank correlation of y, shape (n,), with its index.

    Exact without ties and with at most 33 values or at most one pair out of order; else from the normal
    distribution, corrected for ties. Not a number if all values are equal.

    Source: M. G. Kendall, Rank Correlation Methods, 1970.
    """
    n = y.size
    first, second = np.triu_indices(n, 1)
    signs = np.sign(y[second] - y[first])
    ties = np.unique(y, return_counts=True)[1].astype(np.float64)
    if ties.size < 2:
        return math.nan
    fewer = int(min((signs > 0).sum(), (signs < 0).sum()))
    if ties.size == n and (n <= EXACT_UP_TO or fewer <= 1):
        # The share of all orders of n values that have at most so many inversions
        shares = np.zeros(fewer + 1)
        shares[0] = 1.0
        for size in range(2, n + 1):  # the new value goes before 0 to size - 1 of the others, each as likely
            sums = np.cumsum(shares)
            shares = (sums - np.concatenate([np.zeros(min(size, sums.size)), sums[:-size]])) / size
        return min(1.0, 2 * float(shares.sum()))
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    return 2 * normal_tail(abs(float(signs.sum())) / math.sqrt(variance))


def rising_fit(y: Floats) -> Floats:
    """Return the best fit by least squares that never falls, shape (n,).

    Source: pool adjacent violators, R. E. Barlow et al. 1972.
    """
    sums: list[float] = []
    sizes: list[int] = []
    for value in y.tolist():
        sums.append(value)
        sizes.append(1)
        while len(sums) > 1 and sums[-2] * sizes[-1] >= sums[-1] * sizes[-2]:
            sums[-2:] = [sums[-2] + sums[-1]]
            sizes[-2:] = [sizes[-2] + sizes[-1]]
    return np.repeat(np.array(sums) / np.array(sizes), sizes)
